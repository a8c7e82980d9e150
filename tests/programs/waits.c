/* SPDX-License-Identifier: Apache-2.0 */
/* waits: waits in known ways and reports how long. One word selects the scenario. On stdout: `log TID NAME FUNCTION NANOSECONDS WAITS`
 * per thread and function that waited in it, by the thread's own clock. The functions that wait are called nap, take, hear, pause_here,
 * ... and are on the stack during the wait. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KNOWN __attribute__((noipa))

struct log {
	const char *function;
	uint64_t ns;
	unsigned nr;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void add(struct log *log, const char *function, uint64_t began_ns)
{
	log->function = function;
	log->ns += now_ns() - began_ns;
	log->nr++;
}

static void say(const struct log *log)
{
	char name[17] = "";

	if (!log->nr)
		return;
	prctl(PR_GET_NAME, name);
	printf("log %d %s %s %llu %u\n", (int)syscall(SYS_gettid), name, log->function, (unsigned long long)log->ns, log->nr);
	fflush(stdout);
}

KNOWN static void nap(unsigned ms, struct log *log)
{
	struct timespec time = { ms / 1000, (long)(ms % 1000) * 1000000 };
	uint64_t began_ns = now_ns();

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time) == EINTR)
		;
	add(log, __func__, began_ns);
}

KNOWN static void take(pthread_mutex_t *mutex, struct log *log)
{
	uint64_t began_ns = now_ns();

	pthread_mutex_lock(mutex);
	add(log, __func__, began_ns);
}

KNOWN static void hear(int fd, struct log *log)
{
	uint64_t began_ns = now_ns();
	char byte;

	if (read(fd, &byte, 1) != 1)
		exit(1);
	add(log, __func__, began_ns);
}

/* --- handover: a consumer works with the lock held, a producer sleeps most of that time and waits for the lock in the rest of it ------ */

static struct {
	pthread_mutex_t mutex;
	/* rounds so far: the consumer holds the lock; the producer is about to sleep; it has had the lock */
	atomic_int held, napping, handed;
	int rounds;
} handover = { .mutex = PTHREAD_MUTEX_INITIALIZER };

KNOWN static void work(unsigned ms)
{
	uint64_t end_ns = now_ns() + ms * 1000000ull;

	while (now_ns() < end_ns)
		;
}

KNOWN static void release(void)
{
	pthread_mutex_unlock(&handover.mutex);
}

KNOWN static void consume(int round)
{
	pthread_mutex_lock(&handover.mutex);
	atomic_store(&handover.held, round);
	while (atomic_load(&handover.napping) < round) /* so that they wait only in the logged functions */
		sched_yield();
	work(100);
	release();
	while (atomic_load(&handover.handed) < round)
		sched_yield();
}

static void *consumer(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "consumer");
	for (int round = 1; round <= handover.rounds; round++)
		consume(round);
	return NULL;
}

KNOWN static void produce(int round, struct log *naps, struct log *locks)
{
	while (atomic_load(&handover.held) < round)
		sched_yield();
	atomic_store(&handover.napping, round);
	nap(80, naps);
	take(&handover.mutex, locks);
	pthread_mutex_unlock(&handover.mutex);
	atomic_store(&handover.handed, round);
}

static void *producer(void *unused)
{
	struct log naps = { 0 }, locks = { 0 };

	(void)unused;
	prctl(PR_SET_NAME, "producer");
	for (int round = 1; round <= handover.rounds; round++)
		produce(round, &naps, &locks);
	say(&naps);
	say(&locks);
	return NULL;
}

static void hand_over(int rounds)
{
	pthread_t threads[2];

	handover.rounds = rounds;
	pthread_create(&threads[0], NULL, consumer, NULL);
	pthread_create(&threads[1], NULL, producer, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

/* --- crowd: threads that sleep, hear of a pipe, or wait for a lock, each for itself --------------------------------------------------- */

struct member {
	pthread_t thread, partner;
	int number, rounds;
	int pipe[2];
	pthread_mutex_t mutex;
	atomic_int turn;
};

static void *speaker(void *arg)
{
	struct member *member = arg;
	struct log unused = { 0 };

	for (int i = 0; i < member->rounds; i++) {
		nap(20 + (unsigned)member->number % 10, &unused);
		if (write(member->pipe[1], "x", 1) != 1)
			exit(1);
	}
	return NULL;
}

static void *holder(void *arg)
{
	struct member *member = arg;
	struct log unused = { 0 };

	for (int i = 1; i <= member->rounds; i++) {
		pthread_mutex_lock(&member->mutex);
		atomic_store(&member->turn, i);
		nap(20 + (unsigned)member->number % 10, &unused);
		pthread_mutex_unlock(&member->mutex);
		while (atomic_load(&member->turn) == i)
			nap(1, &unused);
	}
	return NULL;
}

static void *wait_in_turn(void *arg)
{
	struct member *member = arg;
	struct log log = { 0 }, unused = { 0 };
	char name[16];

	snprintf(name, sizeof(name), "member%d", member->number);
	prctl(PR_SET_NAME, name);
	for (int i = 1; i <= member->rounds; i++) {
		if (member->number % 3 == 0) {
			nap(20 + (unsigned)member->number % 10, &log);
		} else if (member->number % 3 == 1) {
			hear(member->pipe[0], &log);
		} else {
			while (atomic_load(&member->turn) != i)
				nap(1, &unused);
			take(&member->mutex, &log);
			pthread_mutex_unlock(&member->mutex);
			atomic_store(&member->turn, 0);
		}
	}
	say(&log);
	return NULL;
}

static void wait_in_a_crowd(int nr, int rounds)
{
	struct member *members = calloc((size_t)nr, sizeof(*members));

	for (int i = 0; i < nr; i++) {
		struct member *member = &members[i];

		member->number = i;
		member->rounds = rounds;
		pthread_mutex_init(&member->mutex, NULL);
		if (pipe(member->pipe))
			exit(1);
		pthread_create(&member->thread, NULL, wait_in_turn, member);
		if (i % 3)
			pthread_create(&member->partner, NULL, i % 3 == 1 ? speaker : holder, member);
	}
	for (int i = 0; i < nr; i++) {
		pthread_join(members[i].thread, NULL);
		if (i % 3)
			pthread_join(members[i].partner, NULL);
	}
}

/* --- lives ---------------------------------------------------------------------------------------------------------------------------- */

/* Under two names. */
static void rename_itself(void)
{
	struct log first = { 0 }, second = { 0 };

	prctl(PR_SET_NAME, "first");
	nap(200, &first);
	say(&first);
	prctl(PR_SET_NAME, "second");
	nap(300, &second);
	say(&second);
}

KNOWN static void pause_here(void)
{
	for (;;)
		pause();
}

static void say_of(int pid, const char *name, const char *function, uint64_t ns)
{
	printf("log %d %s %s %llu 1\n", pid, name, function, (unsigned long long)ns);
	fflush(stdout);
}

/* A child that is killed while it waits. The kernel switches to it only once more, to end it. */
static void kill_a_child(void)
{
	struct log unused = { 0 };
	uint64_t began_ns = now_ns();
	int pid = fork();

	if (!pid) {
		prctl(PR_SET_NAME, "victim");
		pause_here();
	}
	nap(500, &unused);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	say_of(pid, "victim", "pause_here", now_ns() - began_ns);
}

/* A child that is stopped for a while, during a sleep that continues meanwhile. */
static void stop_a_child(void)
{
	struct log unused = { 0 };
	uint64_t began_ns;
	int pid = fork();

	if (!pid) {
		prctl(PR_SET_NAME, "stopped");
		pause_here();
	}
	nap(200, &unused);
	kill(pid, SIGSTOP);
	began_ns = now_ns();
	nap(300, &unused);
	say_of(pid, "stopped", "stopped", now_ns() - began_ns);
	kill(pid, SIGCONT);
	nap(200, &unused);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* It starts each wait on one CPU and resumes on another. */
static void migrate(void)
{
	int nr_cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	struct log log = { 0 };

	prctl(PR_SET_NAME, "nomad");
	for (int i = 0; i < 20; i++) {
		struct log unused = { 0 };
		cpu_set_t cpus;
		int parent = (int)syscall(SYS_gettid), child = fork();

		if (!child) { /* moves it while it sleeps */
			nap(10, &unused);
			CPU_ZERO(&cpus);
			CPU_SET(i % nr_cpus, &cpus);
			sched_setaffinity(parent, sizeof(cpus), &cpus);
			_exit(0);
		}
		nap(30, &log);
		waitpid(child, NULL, 0);
	}
	say(&log);
}

/* Two threads with the same tid, one after the other, with a pause between them. 77: the kernel does not let us choose a tid. */
static void reuse_a_number(void)
{
	struct log unused = { 0 };
	int first = 0, fd;

	for (int turn = 0; turn < 2; turn++) {
		uint64_t began_ns;
		int pid;

		if (turn) {
			char number[16];
			int size = snprintf(number, sizeof(number), "%d", first - 1);

			nap(300, &unused);
			fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
			if (fd < 0 || write(fd, number, (size_t)size) != size)
				exit(77);
			close(fd);
		}
		began_ns = now_ns();
		pid = fork();
		if (!pid) {
			struct log log = { 0 };

			prctl(PR_SET_NAME, turn ? "heir" : "late");
			nap(100, &log);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		if (turn && pid != first)
			exit(77); /* another thread got it first */
		first = pid;
		say_of(pid, turn ? "heir" : "late", "nap", now_ns() - began_ns);
	}
}

/* Two processes that wake each other all the time, by pipes. */
static void play_ping_pong(unsigned ms)
{
	uint64_t end_ns = now_ns() + ms * 1000000ull;
	int there[2], back[2], pid;
	char byte = 0;

	if (pipe(there) || pipe(back))
		exit(1);
	pid = fork();
	while (!pid && read(there[0], &byte, 1) == 1) {
		if (write(back[1], &byte, 1) != 1)
			exit(1);
	}
	while (now_ns() < end_ns) {
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			exit(1);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Until it is killed. */
static void rest(void)
{
	printf("pid %d\nready\n", (int)getpid());
	fflush(stdout);
	pause_here();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "handover"))
		hand_over(atoi(argv[2]));
	else if (!strcmp(what, "crowd"))
		wait_in_a_crowd(atoi(argv[2]), atoi(argv[3]));
	else if (!strcmp(what, "renamed"))
		rename_itself();
	else if (!strcmp(what, "killed"))
		kill_a_child();
	else if (!strcmp(what, "stopped"))
		stop_a_child();
	else if (!strcmp(what, "migrated"))
		migrate();
	else if (!strcmp(what, "reused"))
		reuse_a_number();
	else if (!strcmp(what, "pingpong"))
		play_ping_pong((unsigned)atoi(argv[2]));
	else if (!strcmp(what, "rest"))
		rest();
	else
		return 2;
	return 0;
}
