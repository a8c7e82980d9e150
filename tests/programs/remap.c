// SPDX-License-Identifier: Apache-2.0
/* remap SECONDS WAY LIBRARY: main > remap_runs > code that changes its address or bytes without a new library. The thread's name says
 * which code runs: "file", the library's own code; "copy", the same code at another address or in other memory; "code", code made here,
 * which has a frame pointer and no tables. Ways:
 *   unmapped   the library is closed, memory is mapped in its place, filled, and then made executable
 *   fixed      the library's code is copied out, memory is mapped over it, filled with the copy and made executable, as programs do that
 *              want large pages
 *   moved      the same, but the copy is moved over it by mremap
 *   away       the library's code is moved to an unused address
 *   strange    other code than the library's is moved over it by mremap */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "known.h"

typedef unsigned long (*entry_fn)(unsigned long n, volatile sig_atomic_t *done);

static volatile unsigned long sink;

/* push %rbp; mov %rsp,%rbp; sub $200,%rsp; 1: mov (%rsi),%eax; test %eax,%eax; je 1b; leave; ret */
static const unsigned char spin[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0xc8, 0,   0,
				      0,    0x8b, 0x06, 0x85, 0xc0, 0x74, 0xfa, 0xc9, 0xc3 };

struct text {
	char *start;
	size_t bytes;
};

/* The executable mapping that contains the address. */
static struct text text_of(const void *address)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[4096];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && (unsigned long)address >= start && (unsigned long)address < end) {
			fclose(maps);
			return (struct text){(char *)start, end - start};
		}
	}
	exit(2);
}

static void *checked(void *at)
{
	if (at == MAP_FAILED)
		exit(3);
	return at;
}

static char *anonymous(void *at, size_t bytes, int protection)
{
	return checked(mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0));
}

/* Distance of the code from its old address. */
static ptrdiff_t change(const char *way, void *library, struct text text, const void *entry)
{
	char *copy = anonymous(NULL, text.bytes, PROT_READ | PROT_WRITE);

	if (strcmp(way, "away") == 0)
		return (char *)checked(mremap(text.start, text.bytes, text.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, copy)) - text.start;
	if (strcmp(way, "fixed") == 0 || strcmp(way, "moved") == 0)
		memcpy(copy, text.start, text.bytes);
	else
		memcpy(copy + ((const char *)entry - text.start), spin, sizeof(spin));
	if (strcmp(way, "unmapped") == 0 && dlclose(library))
		exit(4);
	if (strcmp(way, "unmapped") == 0 || strcmp(way, "fixed") == 0) {
		anonymous(text.start, text.bytes, PROT_READ | PROT_WRITE);
		memcpy(text.start, copy, text.bytes);
		if (mprotect(text.start, text.bytes, PROT_READ | PROT_EXEC))
			exit(5);
		return 0;
	}
	if (mprotect(copy, text.bytes, PROT_READ | PROT_EXEC))
		exit(6);
	checked(mremap(copy, text.bytes, text.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, text.start));
	return 0;
}

KNOWN static void remap_runs(entry_fn entry, const char *comm)
{
	struct itimerval timer = {.it_value = {1, 0}};

	known_done = 0;
	setitimer(ITIMER_REAL, &timer, NULL);
	prctl(PR_SET_NAME, comm);
	sink = entry(0, &known_done);
	prctl(PR_SET_NAME, "remap");
}

int main(int argc, char **argv)
{
	void *library = argc < 4 ? NULL : dlopen(argv[3], RTLD_NOW);
	entry_fn entry = library ? (entry_fn)dlsym(library, "reload_entry") : NULL;
	struct text text;
	bool same;
	ptrdiff_t off;

	if (!entry)
		return 1;
	same = strcmp(argv[2], "fixed") == 0 || strcmp(argv[2], "moved") == 0 || strcmp(argv[2], "away") == 0;
	text = text_of((const void *)(uintptr_t)entry);
	signal(SIGALRM, known_alarm);
	remap_runs(entry, "file");
	off = change(argv[2], library, text, (const void *)(uintptr_t)entry);
	remap_runs((entry_fn)((uintptr_t)entry + (uintptr_t)off), same ? "copy" : "code");
	_exit(0); /* what the library would do at its end is no longer at its address */
}
