// SPDX-License-Identifier: Apache-2.0
/* Allocates and frees as it is told: each line on stdin is the name of a scene. After each scene it prints "live FUNCTION COUNT BYTES" for
 * what it has not freed, by the function that asked for it, then "done". It uses no stdio, so that all blocks are its own. Also a program
 * for `--`: scenes as arguments. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noipa)) /* also: equal ones are not made one */
#define KEEP(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")
#define THREADS 4
#define SLOTS 64

static long nr_pairs = 25000;

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	char line[256];
	va_list args;
	int size;

	va_start(args, fmt);
	size = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (write(1, line, (size_t)size) != size)
		_exit(1);
}

/* --- plain ---------------------------------------------------------------------------------------------------------------------------- */

static NOINLINE void leak_plain(void)
{
	for (int i = 0; i < 10; i++) {
		void *volatile block = malloc(1024);

		KEEP(block);
	}
}

static void plain(void)
{
	leak_plain();
	say("live leak_plain 10 10240\n");
}

/* --- every function ------------------------------------------------------------------------------------------------------------------- */

/* Each gives two blocks of that size. */
#define KIND(name, bytes, expression) \
	static NOINLINE void *kind_##name(void) \
	{ \
		void *volatile block = (expression); \
\
		KEEP(block); \
		return block; \
	}
static void *by_posix_memalign(void)
{
	void *block;

	return posix_memalign(&block, 64, 330) ? NULL : block;
}
#define KINDS(X) \
	X(malloc, 101, malloc(101)) X(calloc, 91, calloc(7, 13)) X(realloc, 203, realloc(NULL, 203)) \
	    X(reallocarray, 150, reallocarray(NULL, 3, 50)) X(aligned_alloc, 320, aligned_alloc(64, 320)) \
		X(posix, 330, by_posix_memalign()) \
		X(memalign, 340, memalign(64, 340)) X(valloc, 350, valloc(350)) X(big, 52428800, malloc(52428800))
KINDS(KIND)

static NOINLINE void *kind_pvalloc(void) /* rounds up, but was asked for less */
{
	void *volatile block = pvalloc(360);

	KEEP(block);
	return block;
}

static NOINLINE void *kind_mmap(void)
{
	void *volatile region = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return region;
}

static NOINLINE void *kind_mremap(void *region)
{
	void *volatile moved = mremap(region, 8192, 16384, MREMAP_MAYMOVE);

	return moved;
}

static void kinds(void)
{
#define X(name, bytes, expression) \
	free(kind_##name()); \
	KEEP(kind_##name()); \
	say("live kind_" #name " 1 " #bytes "\n");
	KINDS(X)
#undef X
	free(kind_pvalloc());
	KEEP(kind_pvalloc());
	say("live kind_pvalloc 1 360\n");
	munmap(kind_mmap(), 8192);
	kind_mmap();
	say("live kind_mmap 1 8192\n");
	kind_mremap(kind_mmap());
	say("live kind_mremap 1 16384\n");
}

/* --- realloc -------------------------------------------------------------------------------------------------------------------------- */

static NOINLINE void *realloc_first(size_t bytes)
{
	void *volatile block = malloc(bytes);

	KEEP(block);
	return block;
}

static NOINLINE void *realloc_second(void *block, size_t bytes)
{
	void *volatile moved = realloc(block, bytes);

	KEEP(moved);
	return moved;
}

static NOINLINE void *realloc_array(void *block, size_t nr)
{
	void *volatile moved = reallocarray(block, nr, 10);

	KEEP(moved);
	return moved;
}

static void reallocs(void)
{
	void *block = realloc_first(1000), *behind = malloc(16);

	realloc_second(block, 50000); /* moves, as its neighbour is not free; nothing else of that size comes to its old place */
	free(behind);
	realloc_second(realloc_first(100), 96);
	realloc_array(realloc_first(100), 70);
	realloc_second(realloc_first(777), (size_t)PTRDIFF_MAX - 4096); /* fails: the block stays */
	realloc_second(realloc_first(100), 0);
	say("live realloc_second 2 50096\nlive realloc_array 1 700\nlive realloc_first 1 777\n");
}

/* --- threads that free each other's blocks -------------------------------------------------------------------------------------------- */

static void *slots[SLOTS];

static NOINLINE void *thread_block(size_t bytes)
{
	void *volatile block = malloc(bytes);

	KEEP(block);
	return block;
}

static NOINLINE void thread_leak(void)
{
	void *volatile block = malloc(48);

	KEEP(block);
}

static void *work(void *arg)
{
	uint32_t random = (uint32_t)(uintptr_t)arg * 2654435761u + 1;

	for (long i = 1; i <= nr_pairs; i++) {
		random = random * 1664525 + 1013904223;
		free(__atomic_exchange_n(&slots[random >> 26], thread_block(16 + (random >> 8 & 511)), __ATOMIC_SEQ_CST));
		if (i % 1000 == 0)
			thread_leak();
	}
	return NULL;
}

static void stress(void)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SLOTS; i++)
		free(__atomic_exchange_n(&slots[i], NULL, __ATOMIC_SEQ_CST));
	say("live thread_leak %ld %ld\n", THREADS * (nr_pairs / 1000), THREADS * (nr_pairs / 1000) * 48);
}

/* --- a signal's handler, on the same stack and on one of its own ---------------------------------------------------------------------- */

static NOINLINE void handler_leak(void)
{
	void *volatile block = malloc(555);

	KEEP(block);
}

static void on_signal(int signo __attribute__((unused)))
{
	handler_leak();
}

static void signals(void)
{
	static char stack[65536];
	const stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	sigaltstack(&other, NULL);
	for (int i = 0; i < 5; i++) {
		raise(SIGUSR1);
		raise(SIGUSR2);
	}
	say("live handler_leak 10 5550\n");
}

/* --- processes and threads that end --------------------------------------------------------------------------------------------------- */

static NOINLINE void *forked(size_t bytes)
{
	void *volatile block = malloc(bytes);

	KEEP(block);
	return block;
}

/* The child frees copies of its parent's blocks, and leaks some of its own. */
static void forks(void)
{
	void *block = forked(2000);

	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (!child) {
			free(block);
			for (int k = 0; k < 100; k++)
				forked(64);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	say("live forked 1 2000\n");
}

static NOINLINE void *ending_leak(void *arg __attribute__((unused)))
{
	for (int i = 0; i < 3; i++) {
		void *volatile block = malloc(640);

		KEEP(block);
	}
	return NULL;
}

static void ends(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, ending_leak, NULL);
	pthread_join(thread, NULL);
	say("live ending_leak 3 1920\n");
}

static NOINLINE void many_leak(void)
{
	void *volatile block = malloc(32);

	KEEP(block);
}

static void many(void)
{
	for (int i = 0; i < 20000; i++)
		many_leak();
}

/* An allocator that is loaded later: its own malloc, which is not the program's. */
static void loads(void)
{
	void *library = dlopen(getenv("HEAP_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
	void *(*give)(size_t bytes) = library ? (void *(*)(size_t bytes))dlsym(library, "je_malloc") : NULL;

	if (!give)
		_exit(1);
	say("done\n");
	(void)!read(0, &(char){ 0 }, 1);
	for (int i = 0; i < 7; i++)
		give(123);
}

static void *(*second_malloc)(size_t bytes);

/* Another C library beside the program's own: a file and a namespace of its own. */
static void load_second(void)
{
	void *library = getenv("HEAP_LIBC") ? dlmopen(LM_ID_NEWLM, getenv("HEAP_LIBC"), RTLD_NOW) : NULL;

	second_malloc = library ? (void *(*)(size_t bytes))dlsym(library, "malloc") : NULL;
}

static NOINLINE void ask_second(void)
{
	for (int i = 0; i < 7; i++) {
		void *volatile block = second_malloc(123);

		KEEP(block);
	}
}

static void second(void)
{
	if (!second_malloc)
		_exit(1);
	ask_second();
	say("live ask_second 7 861\n");
}

static NOINLINE void before_exec(void)
{
	void *volatile block = malloc(4000);

	KEEP(block);
}

static NOINLINE void after_exec(void)
{
	for (int i = 0; i < 2; i++) {
		void *volatile block = malloc(512);

		KEEP(block);
	}
}

/* --- blocks from before the start ----------------------------------------------------------------------------------------------------- */

static void *old[50];

static void frees_old(void)
{
	for (int i = 0; i < 50; i++)
		free(old[i]);
}

/* --- regions -------------------------------------------------------------------------------------------------------------------------- */

#define PAGE 4096

static inline __attribute__((always_inline)) char *map_pages(void *at, size_t nr, int flags)
{
	char *region = mmap(at, nr * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (region == MAP_FAILED)
		abort();
	return region;
}

/* Four neighbours in the place of one region; one call ends all. */
static NOINLINE void map_neighbours(void)
{
	char *region = map_pages(NULL, 64, 0);

	munmap(region, 64 * PAGE);
	for (size_t i = 0; i < 4; i++)
		map_pages(region + i * 16 * PAGE, 16, MAP_FIXED);
	munmap(region, 64 * PAGE);
}

static NOINLINE void map_over(void)
{
	map_pages(map_pages(NULL, 16, 0), 16, MAP_FIXED);
}

/* Four of 20 pages become eight elsewhere. */
static NOINLINE void map_part(void)
{
	if (mremap(map_pages(NULL, 20, 0), 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED)
		abort();
}

static NOINLINE void map_refused(void)
{
	if (!munmap(map_pages(NULL, 12, 0), (size_t)-PAGE))
		abort();
}

/* Said to be whole, with a line that says so. */
static NOINLINE void map_hole(void)
{
	munmap(map_pages(NULL, 10, 0) + 4 * PAGE, 2 * PAGE);
}

static void regions(void)
{
	map_neighbours();
	map_over();
	map_part();
	map_refused();
	map_hole();
	say("live map_over 1 %d\nlive map_part 2 %d\n", 16 * PAGE, 24 * PAGE);
	say("live map_refused 1 %d\nlive map_hole 1 %d\n", 12 * PAGE, 10 * PAGE);
}

static void play(const char *scene, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(void);
	} scenes[] = { { "plain", plain }, { "kinds", kinds }, { "reallocs", reallocs }, { "stress", stress },
		       { "signals", signals }, { "forks", forks }, { "ends", ends }, { "frees_old", frees_old },
		       { "loads", loads }, { "many", many }, { "regions", regions }, { "second", second } };

	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		if (!strcmp(scene, scenes[i].name))
			scenes[i].play();
	}
	if (!strcmp(scene, "exec")) {
		before_exec();
		execv("/proc/self/exe", (char *[]){ argv[0], "interactive", "after", NULL });
	}
	if (!strcmp(scene, "after")) {
		after_exec();
		say("live after_exec 2 1024\nlive main 50 5000\n");
	}
	say("done\n");
}

/* One line of stdin; false: its end. */
static int read_line(char *line, size_t room)
{
	size_t size = 0;

	while (size + 1 < room && read(0, line + size, 1) == 1) {
		if (line[size] == '\n') {
			line[size] = '\0';
			return 1;
		}
		size++;
	}
	return 0;
}

static void *play_lines(void *argv)
{
	char line[64];

	while (read_line(line, sizeof(line)))
		play(line, argv);
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (getenv("HEAP_PAIRS"))
		nr_pairs = atol(getenv("HEAP_PAIRS"));
	for (int i = 0; i < 50; i++)
		old[i] = malloc(100);
	load_second();
	if (getenv("HEAP_LOSES_FIRST_THREAD") && !pthread_create(&thread, NULL, play_lines, argv)) {
		say("pid %d\nready\n", getpid());
		pthread_exit(NULL);
	}
	say("pid %d\nready\n", getpid());
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "interactive") != 0)
			play(argv[i], argv);
	}
	if (argc < 2 || !strcmp(argv[1], "interactive"))
		play_lines(argv);
	return 0;
}
