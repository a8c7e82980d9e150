// SPDX-License-Identifier: Apache-2.0
/* contend SECONDS MODE: threads that compete for CPUs in known ways.
 *   together   on CPU 0, in real time with one priority, "hog" uses 5 ms of every 10 ms and "worker" 1 ms of every 3 ms: the worker
 *              waits for the hog
 *   apart      the same on two CPUs: neither waits
 *   crowd      six threads "crowd" spin on CPU 0
 *   moved      four threads "moved" spin, two to a CPU, and are sent to the other CPU every few ms, some of them while they wait. They
 *              start at a line of input. When the time is over they print "done", and end when the input ends
 * Prints "tid NAME N" for each thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>

#include "known.h"

#define NR_CROWD 6
#define NR_MOVED 4
#define PRIORITY 20

struct worker {
	const char *name;
	double busy_ms, period_ms;
	int cpu, priority;
	pid_t tid;
};

static pthread_barrier_t started;
static atomic_int is_going, is_over;

static double ms_of(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void pin(pid_t tid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(tid, sizeof(set), &set))
		perror("sched_setaffinity");
}

static void begin(struct worker *worker)
{
	struct sched_param param = {.sched_priority = worker->priority};

	prctl(PR_SET_NAME, worker->name);
	worker->tid = (pid_t)syscall(SYS_gettid);
	if (worker->cpu >= 0)
		pin(0, worker->cpu);
	if (worker->priority && sched_setscheduler(0, SCHED_FIFO, &param))
		perror("sched_setscheduler");
	flockfile(stdout);
	printf("tid %s %d\n", worker->name, (int)worker->tid);
	funlockfile(stdout);
	pthread_barrier_wait(&started);
}

/* Where the thread always leaves the CPU voluntarily. */
static KNOWN void rests(double ms)
{
	if (ms > 0)
		nanosleep(&(struct timespec){0, (long)(ms * 1e6)}, NULL);
	atomic_signal_fence(memory_order_seq_cst); /* no tail call */
}

/* Bursts of CPU time. Each begins one period after the previous one began. */
static void *in_bursts(void *arg)
{
	struct worker *worker = arg;

	begin(worker);
	while (!known_done) {
		double began = ms_of(CLOCK_MONOTONIC), used = ms_of(CLOCK_THREAD_CPUTIME_ID);

		while (ms_of(CLOCK_THREAD_CPUTIME_ID) - used < worker->busy_ms)
			;
		rests(began + worker->period_ms - ms_of(CLOCK_MONOTONIC));
	}
	return arg;
}

/* Spins from the start signal to the end; sleeps before and after. */
static void *spins(void *arg)
{
	begin(arg);
	while (!is_going)
		usleep(1000);
	while (!known_done)
		;
	while (!is_over)
		usleep(100000);
	return arg;
}

static void move_about(struct worker *workers)
{
	unsigned turn = 0;

	while (!known_done) {
		usleep(3000);
		for (int i = 0; i < NR_MOVED; i++)
			pin(workers[i].tid, (int)((turn + (unsigned)i) % 2));
		turn += turn % 3 == 0 ? 2 : 1; /* some pause between moves */
	}
	puts("done");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "together";
	bool moved = !strcmp(mode, "moved"), crowd = !strcmp(mode, "crowd"), apart = !strcmp(mode, "apart");
	int nr = moved ? NR_MOVED : crowd ? NR_CROWD : 2;
	struct worker workers[NR_CROWD] = {{"hog", 5, 10, 0, PRIORITY, 0}, {"worker", 1, 3, apart ? 1 : 0, PRIORITY, 0}};
	pthread_t threads[NR_CROWD];

	if (!moved)
		known_start(argv[1]);
	else
		setvbuf(stdout, NULL, _IOFBF, 1 << 16), printf("pid %d\n", (int)getpid());
	pthread_barrier_init(&started, NULL, (unsigned)nr + 1);
	for (int i = 0; i < nr; i++) {
		if (moved || crowd)
			workers[i] = (struct worker){moved ? "moved" : "crowd", 0, 0, crowd ? 0 : -1, 0, 0};
		if (pthread_create(&threads[i], NULL, moved || crowd ? spins : in_bursts, &workers[i]))
			return 1;
	}
	is_going = !moved;
	pthread_barrier_wait(&started);
	known_ready();
	if (moved) {
		if (getchar() == EOF)
			return 1;
		signal(SIGALRM, known_alarm);
		setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {atoi(argv[1]), 0}}, NULL);
		is_going = 1;
		move_about(workers);
	}
	is_over = 1;
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
