// SPDX-License-Identifier: Apache-2.0
/* Programs whose memory or files block a profiler that reads them. FILE is on a file system whose server accepts requests and never
 * answers. Each program says "ready" when it is set up.
 *   hung code FILE            maps the file's first page as code, and spins
 *   hung data FILE CODE {START SIZE OFF}...  maps pieces of another program's file CODE as its loader would, the last piece, its data,
 *                                            from FILE; sleeps
 *   hung stack FILE           has its stack in the file, and sleeps
 *   hung lock FILE            writes a page of it and maps another over it: the kernel holds the lock of the process's memory while it
 *                             waits for the page to be written
 *   hung lock-later FILE      does so when it gets SIGUSR1
 *   hung environment FILE     a page of its environment is the file's; it spins
 *   hung names                runs code in no file, and its perf map is a FIFO without a writer */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile unsigned long count;

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void *map(void *at, size_t size, int rights, int flags, const char *path, off_t off)
{
	int fd = open(path, rights & PROT_WRITE && flags & MAP_SHARED ? O_RDWR : O_RDONLY);
	void *memory = fd < 0 ? MAP_FAILED : mmap(at, size, rights, flags, fd, off);

	if (memory == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	return memory;
}

static void sleep_for_ever(void)
{
	ready();
	for (;;)
		pause();
}

static void run_as_data(char **arguments, int nr)
{
	for (int i = 0; i + 3 <= nr; i += 3) {
		bool is_last = i + 6 > nr;
		uintptr_t start = strtoul(arguments[2 + i], NULL, 0);

		map((void *)start, strtoul(arguments[3 + i], NULL, 0), is_last ? PROT_READ | PROT_WRITE : PROT_READ | PROT_EXEC,
		    MAP_PRIVATE | MAP_FIXED, is_last ? arguments[0] : arguments[1],
		    is_last ? 0 : (off_t)strtoul(arguments[4 + i], NULL, 0));
	}
	sleep_for_ever();
}

static void run_on_stack(const char *path)
{
	char *memory = map(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE, path, 0);

	ready();
	__asm__ volatile("mov %0, %%rsp\n1: mov $34, %%eax\nsyscall\njmp 1b" : : "r"(memory + (1 << 15)) : "memory"); /* pause(2) */
}

static void *lock_memory(void *path)
{
	char *memory = map(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, path, 0);

	memory[0] = 1;
	ready();
	mmap(memory, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return NULL;
}

static void *lock_memory_later(void *path)
{
	sigset_t signals;
	int number;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	ready();
	sigwait(&signals, &number);
	return lock_memory(path);
}

/* Executes itself once more, with an environment of several pages. */
static void cover_environment(char **argv)
{
	static char filler[1 << 15];

	if (!getenv("FILLER")) {
		memset(filler, 'x', sizeof(filler) - 1);
		setenv("FILLER", filler, 1);
		execv("/proc/self/exe", argv);
	}
	map((void *)(((uintptr_t)environ[0] + 4095) & ~(uintptr_t)4095), 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, argv[2], 0);
	ready();
}

static void run_in_no_file(void)
{
	static const unsigned char loop[] = { 0xeb, 0xfe }; /* jmp to itself */
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), name[64];

	memcpy(code, loop, sizeof(loop));
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	if (mkfifo(name, 0666))
		perror(name);
	ready();
	((void (*)(void))code)();
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2 || (argc < 3 && strcmp(argv[1], "names")))
		return 1;
	if (!strcmp(argv[1], "code")) {
		map(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, argv[2], 0);
		ready();
	} else if (!strcmp(argv[1], "data")) {
		run_as_data(argv + 2, argc - 4);
	} else if (!strcmp(argv[1], "stack")) {
		run_on_stack(argv[2]);
	} else if (!strcmp(argv[1], "environment")) {
		cover_environment(argv);
	} else if (!strcmp(argv[1], "lock")) {
		pthread_create(&thread, NULL, lock_memory, argv[2]);
	} else if (!strcmp(argv[1], "lock-later")) {
		sigset_t all;

		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, NULL);
		pthread_create(&thread, NULL, lock_memory_later, argv[2]);
	} else if (!strcmp(argv[1], "names")) {
		run_in_no_file();
	}
	for (;;)
		count++;
}
