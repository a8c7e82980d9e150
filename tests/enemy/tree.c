// SPDX-License-Identifier: Apache-2.0
/* tree END_NS ALPHA GAMMA: a tree of processes that call their own functions at random. In the middle of it they fork, execute another
 * program and start threads. They give their children pids next to their own, one or two bits different, or used by a process that died
 * before. Built twice, without position independence, with different function names (PREFIX): an address is another function in the
 * other build. Processes end at END_NS of CLOCK_MONOTONIC. */
#include <alloca.h>
#include <pthread.h>
#include <linux/sched.h>
#include <sys/wait.h>

#include "enemy.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NODE(i) JOIN(PREFIX, _f##i)
#define MAX_CHILDREN 3
#define MAX_GENERATIONS 4

static char **arguments;
static unsigned nr_children, generation;
static uint64_t own_end_ns; /* of this process, if it is a child */
static pid_t dead[4];
static unsigned nr_dead;
static int is_plain = 1; /* libc knows how this process was created, so it may start threads */
static __thread int is_thread;

typedef void (*node_fn)(unsigned depth, unsigned seed);
static const node_fn nodes[8];

static int is_at_end(void)
{
	return enemy_is_over() || (own_end_ns && enemy_now() >= own_end_ns);
}

static void reap(int options)
{
	pid_t pid;

	while (nr_children && (pid = waitpid(-1, NULL, options)) > 0) {
		nr_children--;
		dead[nr_dead++ % 4] = pid;
	}
}

static void end_process(void)
{
	enemy_note('Z', "");
	_exit(0);
}

static pid_t wanted_pid(void)
{
	switch (enemy_random(4)) {
	case 0: return dead[enemy_random(4)];
	case 1: return getpid() + 1 + (pid_t)enemy_random(2);
	default: return getpid() ^ (pid_t)(1 + enemy_random(7));
	}
}

static pid_t fork_as(pid_t want)
{
	struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&want, .set_tid_size = 1};
	long pid = want > 1 ? syscall(SYS_clone3, &args, sizeof(args)) : -1;

	if (pid >= 0) {
		is_plain &= pid != 0;
		return (pid_t)pid;
	}
	return fork();
}

static void become(void)
{
	char generation_text[12], end_text[24];

	snprintf(generation_text, sizeof(generation_text), "%u", generation + 1);
	snprintf(end_text, sizeof(end_text), "%llu", (unsigned long long)own_end_ns);
	enemy_note('Z', "");
	execl(arguments[2 + enemy_random(2)], "tree", arguments[1], arguments[2], arguments[3], generation_text, end_text, NULL);
	_exit(3);
}

/* The child continues where its parent was, and returns from calls that the parent made. */
static void have_child(void)
{
	pid_t pid;

	reap(WNOHANG);
	if (is_thread || nr_children >= MAX_CHILDREN || generation >= MAX_GENERATIONS)
		return;
	pid = fork_as(wanted_pid());
	if (pid > 0)
		nr_children++;
	if (pid)
		return;
	nr_children = 0;
	generation++;
	enemy_begin();
	own_end_ns = enemy_now() + 10000000 + 1000000ull * enemy_random(1200);
	if (enemy_random(3) == 0)
		become();
}

static inline __attribute__((always_inline)) void wander(unsigned depth, unsigned seed);

static void *thread_main(void *unused)
{
	(void)unused;
	is_thread = 1;
	enemy_seed();
	enemy_note('R', "");
	ENEMY_ENTER();
	ENEMY_CALL();
	for (int i = 0; i < 4 && !is_at_end(); i++) {
		nodes[enemy_random(8)](6, 1);
		enemy_back_one();
		ENEMY_CALL();
	}
	enemy_note('Z', "");
	return NULL;
}

static void have_thread(void)
{
	pthread_t thread;

	if (is_thread || !is_plain || pthread_create(&thread, NULL, thread_main, NULL))
		return;
	pthread_join(thread, NULL);
}

static void doze(void)
{
	struct timespec time = {0, 20000 + (long)enemy_random(1500000)};

	nanosleep(&time, NULL);
}

/* The action of the calling function: most of the time it is the leaf, or calls another. */
static inline __attribute__((always_inline)) void wander(unsigned depth, unsigned seed)
{
	for (unsigned turns = 1 + enemy_random(3); turns && !is_at_end(); turns--) {
		unsigned what = enemy_random(100);

		if (what < 50) {
			enemy_spin(20000 + enemy_random(1000000));
		} else if (what < 53) {
			ENEMY_CALL();
			doze();
			enemy_note('S', "");
		} else if (what < 54) {
			ENEMY_CALL();
			have_child();
			enemy_note('S', "");
		} else if (what < 55) {
			ENEMY_CALL();
			have_thread();
			enemy_note('S', "");
		} else if (what < 56 && own_end_ns && !is_thread && !nr_children) {
			become();
		} else if (depth) {
			ENEMY_CALL();
			nodes[enemy_random(8)](depth - 1, seed + turns);
			enemy_back_one();
		}
	}
}

#define DEFINE_NODE(i, before, after) \
	ENEMY_KEPT void NODE(i)(unsigned depth, unsigned seed) \
	{ \
		enemy_push('E', __func__); \
		before; \
		wander(depth, seed); \
		after; \
		ENEMY_LEAVE(); \
	}
#define BUFFER(bytes) \
	volatile unsigned char room[bytes]; \
	room[seed % (bytes)] = (unsigned char)depth
#define DYNAMIC \
	volatile unsigned char *room = alloca(16 + (seed & 63)); \
	room[seed & 15] = (unsigned char)depth

DEFINE_NODE(0, , )
DEFINE_NODE(1, BUFFER(24), room[0]++)
DEFINE_NODE(2, DYNAMIC, room[0]++)
DEFINE_NODE(3, BUFFER(120), room[0]++)
DEFINE_NODE(4, , )
DEFINE_NODE(5, DYNAMIC, room[0]++)
DEFINE_NODE(6, BUFFER(4000), room[0]++)
DEFINE_NODE(7, BUFFER(8), room[0]++)

static const node_fn nodes[8] = {NODE(0), NODE(1), NODE(2), NODE(3), NODE(4), NODE(5), NODE(6), NODE(7)};

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	arguments = argv;
	enemy_end_ns = strtoull(argv[1], NULL, 10);
	generation = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
	own_end_ns = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
	if (generation > 100)
		own_end_ns = 1;
	enemy_begin();
	ENEMY_ENTER();
	while (!is_at_end()) {
		ENEMY_CALL();
		nodes[enemy_random(8)](12, 1);
		enemy_back_one();
		reap(WNOHANG);
	}
	reap(0);
	end_process();
	return 0;
}
