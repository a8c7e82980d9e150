// SPDX-License-Identifier: Apache-2.0
/* Any bytes as an ELF file with DWARF: every answer has its frames, texts and one function, and is the same when requested again. libdw
 * is not our own and trusts its input. The worker process exists for its faults and hangs (docs/internals/sandbox.md); here they end
 * only the input. A fault or hang in our own functions, or a report of AddressSanitizer there, is a failure. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include "dwarf/dwarf_lines.h"

#define MAX_FRAMES    8
#define MAX_QUESTIONS 256
#define MAX_SECONDS   4 /* libFuzzer's own limit is 10 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
const char *__asan_default_suppressions(void);
const char *__lsan_default_suppressions(void);
int __lsan_is_turned_off(void);

static sigjmp_buf back;
static volatile sig_atomic_t is_in_walk;
static struct sigaction other_handler[NSIG];
static uint32_t nr_faults_of_libdw;

/* Ignores errors of memcpy and the like when libdw calls them. */
const char *__asan_default_suppressions(void)
{
	return "interceptor_via_lib:libdw\ninterceptor_via_lib:libelf\n";
}

const char *__lsan_default_suppressions(void)
{
	return "leak:libdw\nleak:libelf\n";
}

/* After a fault the memory that the walk held is lost, so leaks cannot be attributed any more. */
int __lsan_is_turned_off(void)
{
	return nr_faults_of_libdw > 0;
}

/* The bytes may name a .dwo or dwz file of this machine. */
int open(const char *path, int flags, ...)
{
	(void)path, (void)flags;
	errno = ENOENT;
	return -1;
}

int open64(const char *path, int flags, ...)
{
	(void)path, (void)flags;
	errno = ENOENT;
	return -1;
}

static bool is_libdw(const void *context)
{
	const ucontext_t *machine = context;
	Dl_info info;

#ifdef __x86_64__
	void *pc = (void *)machine->uc_mcontext.gregs[REG_RIP];
#else
	void *pc = (void *)machine->uc_mcontext.pc;
#endif
	return dladdr(pc, &info) && info.dli_fname && (strstr(info.dli_fname, "libdw") || strstr(info.dli_fname, "libelf"));
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
	if (is_in_walk && is_libdw(context))
		siglongjmp(back, signo);
	if (signo == SIGVTALRM) {
		if (is_in_walk)
			abort(); /* our own code takes that long */
		return;
	}
	other_handler[signo].sa_sigaction(signo, info, context); /* AddressSanitizer's handler, which reports it */
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGVTALRM };
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER };

	(void)argc, (void)argv;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, &other_handler[signals[i]]);
	return 0;
}

static void set_timer(long seconds)
{
	const struct itimerval timer = { .it_value.tv_sec = seconds };

	setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

static void check_that(bool is_so)
{
	if (!is_so)
		abort();
}

static void ask(struct dwarf_lines *lines, uint64_t elf_vaddr)
{
	struct dwarf_frame frames[MAX_FRAMES], again[MAX_FRAMES];
	uint32_t nr = 0, nr_again = 0;

	if (dwarf_lines_find(lines, elf_vaddr, frames, MAX_FRAMES, &nr))
		return;
	check_that(nr >= 1 && nr <= MAX_FRAMES);
	for (uint32_t i = 0; i < nr; i++)
		check_that(frames[i].name && frames[i].file && strlen(frames[i].name) < 1u << 20 &&
			   frames[i].start_vaddr == frames[0].start_vaddr);
	check_that(!dwarf_lines_find(lines, elf_vaddr, again, MAX_FRAMES, &nr_again) && nr_again == nr);
	for (uint32_t i = 0; i < nr; i++) /* texts are stored once */
		check_that(again[i].name == frames[i].name && again[i].file == frames[i].file && again[i].line == frames[i].line);
}

static void walk(const struct elf_file *elf, const uint8_t *data, size_t size)
{
	CLEANUP(dwarf_lines_freep) struct dwarf_lines *lines = NULL;
	size_t step = size / MAX_QUESTIONS / 8 * 8 + 8;

	if (dwarf_lines_open(elf, "/nonexistent", NULL, &lines))
		return;
	for (uint64_t elf_vaddr = 0x200; elf_vaddr < 0x500; elf_vaddr += 5) /* the seeds' code is here */
		ask(lines, elf_vaddr);
	for (size_t at = 0; at + sizeof(uint64_t) <= size; at += step) { /* numbers in the file: addresses among them */
		uint64_t elf_vaddr;

		memcpy(&elf_vaddr, data + at, sizeof(elf_vaddr));
		ask(lines, elf_vaddr);
	}
}

/* In a file, as the worker has it: an image in memory is not decompressed. */
static int open_bytes(const uint8_t *data, size_t size, struct elf_file **ret_elf)
{
	int fd = memfd_create("elf", MFD_CLOEXEC), err = -EIO;

	if (fd >= 0 && write(fd, data, size) == (ssize_t)size)
		err = elf_file_open_fd(fd, NULL, ret_elf);
	if (err && fd >= 0)
		close(fd);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;

	if (size > 65536 || open_bytes(data, size, &elf))
		return 0;
	set_timer(MAX_SECONDS);
	if (!sigsetjmp(back, 1)) {
		is_in_walk = 1;
		walk(elf, data, size);
	} else {
		nr_faults_of_libdw++;
	}
	is_in_walk = 0;
	set_timer(0);
	return 0;
}
