// SPDX-License-Identifier: Apache-2.0
/* jitted SECONDS DIR|map: writes two functions to memory as a JIT compiler does, the first of which calls the second, which spins. Says
 * their names and lines in DIR/jit-PID.dump (Linux tools/perf/Documentation/jitdump-specification.txt), or their names in
 * /tmp/perf-PID.map. */
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "known.h"

#define OUTER 0x00 /* in the memory */
#define INNER 0x40

static const unsigned char outer_code[] = {
	0x55, 0x48, 0x89, 0xe5,	      /* push %rbp; mov %rsp, %rbp */
	0xe8, 0x37, 0x00, 0x00, 0x00, /* call INNER */
	0x5d, 0xc3,		      /* pop %rbp; ret */
};
static const unsigned char inner_code[] = {
	0x55, 0x48, 0x89, 0xe5,		    /* push %rbp; mov %rsp, %rbp */
	0x8b, 0x07, 0x85, 0xc0, 0x74, 0xfa, /* 1: mov (%rdi), %eax; test %eax, %eax; jz 1b */
	0x5d, 0xc3,			    /* pop %rbp; ret */
};

struct line {
	uint32_t off, line;
};
static const struct line outer_lines[] = { { 0, 10 }, { 4, 11 }, { 9, 12 } };
static const struct line inner_lines[] = { { 0, 20 }, { 4, 21 }, { 10, 22 } };

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void put(FILE *file, const void *bytes, size_t size)
{
	if (fwrite(bytes, 1, size, file) != size) {
		perror("jitdump");
		exit(1);
	}
}

static void put_u32(FILE *file, uint32_t value)
{
	put(file, &value, sizeof(value));
}

static void put_u64(FILE *file, uint64_t value)
{
	put(file, &value, sizeof(value));
}

static void put_record(FILE *file, uint32_t id, size_t size)
{
	put_u32(file, id);
	put_u32(file, (uint32_t)(16 + size));
	put_u64(file, now());
}

static void put_header(FILE *file)
{
	put_u32(file, 0x4A695444); /* "JiTD" */
	put_u32(file, 1);
	put_u32(file, 40);
	put_u32(file, 62); /* EM_X86_64 */
	put_u32(file, 0);
	put_u32(file, (uint32_t)getpid());
	put_u64(file, now());
	put_u64(file, 0);
}

static void put_function(FILE *file, const unsigned char *code, size_t size, uint64_t index, const char *name, const struct line *lines,
			 unsigned nr_lines)
{
	static const char source[] = "/made/up/source.jit";

	put_record(file, 2, 16 + nr_lines * (16 + sizeof(source))); /* JIT_CODE_DEBUG_INFO */
	put_u64(file, (uintptr_t)code);
	put_u64(file, nr_lines);
	for (unsigned i = 0; i < nr_lines; i++) {
		put_u64(file, (uintptr_t)code + lines[i].off);
		put_u32(file, lines[i].line);
		put_u32(file, 0);
		put(file, source, sizeof(source));
	}
	put_record(file, 0, 40 + strlen(name) + 1 + size); /* JIT_CODE_LOAD */
	put_u32(file, (uint32_t)getpid());
	put_u32(file, (uint32_t)syscall(SYS_gettid));
	put_u64(file, (uintptr_t)code);
	put_u64(file, (uintptr_t)code);
	put_u64(file, size);
	put_u64(file, index);
	put(file, name, strlen(name) + 1);
	put(file, code, size);
}

/* With the mark that profilers look for: a page of it is mapped executable. */
static void write_dump(const char *dir, const unsigned char *code)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", dir, (int)getpid());
	file = fopen(path, "w+");
	if (!file || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0) == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	put_header(file);
	put_function(file, code + OUTER, sizeof(outer_code), 0, "jit_outer", outer_lines, 3);
	put_function(file, code + INNER, sizeof(inner_code), 1, "jit_inner", inner_lines, 3);
	fclose(file);
}

static void write_map(const unsigned char *code)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		exit(1);
	}
	fprintf(file, "%lx %zx jit_outer\n%lx %zx jit_inner\n", (unsigned long)(code + OUTER), sizeof(outer_code),
		(unsigned long)(code + INNER), sizeof(inner_code));
	fclose(file);
}

KNOWN static int run(const unsigned char *code)
{
	ENTER();
	known_enter("jit_outer");
	known_enter("jit_inner");
	known_print();
	known_ready();
	return ((int (*)(volatile sig_atomic_t *))(uintptr_t)(code + OUTER))(&known_done);
}

int main(int argc, char **argv)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ENTER();
	if (argc < 3 || code == MAP_FAILED)
		return 2;
	memcpy(code + OUTER, outer_code, sizeof(outer_code));
	memcpy(code + INNER, inner_code, sizeof(inner_code));
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC))
		return 1;
	known_start(argv[1]);
	if (strcmp(argv[2], "map") == 0)
		write_map(code);
	else
		write_dump(argv[2], code);
	return run(code) == 0;
}
