// SPDX-License-Identifier: Apache-2.0
/* shares SECONDS KIND...: one thread for each kind, with its own name and chain. KIND says how it spends its time:
 *   spin    on a CPU
 *   half    in turn 10 ms of its own CPU time and 10 ms asleep
 *   sleep   asleep
 *   lock    waiting for a mutex that the main thread holds
 *   pipe    reading a pipe into which nobody writes
 *   brief   starts threads `mayfly` one after the other, each of which spins for 5 ms of its CPU time and sleeps 5 ms
 * At the end each prints its own record:
 *   time COMM TID BORN BEGAN ENDED JOINED RUNNING QUEUED TURNS AWAY RESTS
 * BORN to JOINED are in nanoseconds of CLOCK_MONOTONIC: just before its creation, its own begin and end, just after its end was seen.
 * The rest covers BEGAN to ENDED: RUNNING is its CPU time, without what a host stole meanwhile; QUEUED its time in the scheduler's run
 * queues; TURNS how often it got a CPU; AWAY the time of its blocking calls, without the time queued in them; RESTS how often it slept. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "known.h"

#define NS_PER_MS 1000000LL

struct moment {
	int64_t at, queued, turns; /* the scheduler's account of the thread up to then */
};

struct job {
	void (*work)(void);
	const char *name;
	pthread_t thread;
	int tid;
	int64_t born, running, away;
	struct moment began, ended;
	int nr_rests;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t printed;
static int ends[2];
static volatile unsigned long sink;
static __thread struct moment began;
static __thread int64_t running, away;
static __thread int nr_rests;

static int64_t now(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static struct moment scheduled(void)
{
	struct moment moment = { 0 };
	char text[64] = "", *end = text;
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0) {
		perror("/proc/thread-self/schedstat");
		exit(1);
	}
	close(fd);
	strtoll(text, &end, 10);
	moment.queued = strtoll(end, &end, 10);
	moment.turns = strtoll(end, NULL, 10);
	return moment;
}

/* Both at the same moment: the thread was not preempted between them. */
static struct moment moment(void)
{
	struct moment moment;

	do {
		moment = scheduled();
		moment.at = now(CLOCK_MONOTONIC);
	} while (scheduled().turns != moment.turns);
	return moment;
}

static void set_out(void)
{
	began = moment();
	running = -now(CLOCK_THREAD_CPUTIME_ID);
}

static void been_away(struct moment since)
{
	struct moment back = moment();

	away += (back.at - since.at) - (back.queued - since.queued);
}

static void join(const struct job *job)
{
	pthread_join(job->thread, NULL);
	printf("time %s %d %lld %lld %lld %lld %lld %lld %lld %lld %d\n", job->name, job->tid, (long long)job->born,
	       (long long)job->began.at, (long long)job->ended.at, (long long)now(CLOCK_MONOTONIC), (long long)job->running,
	       (long long)(job->ended.queued - job->began.queued), (long long)(job->ended.turns - job->began.turns), (long long)job->away,
	       job->nr_rests);
}

static void rest(int64_t ns)
{
	struct timespec left = { ns / 1000000000, ns % 1000000000 };
	struct moment since = moment();

	nr_rests++;
	while (nanosleep(&left, &left) && !known_done)
		;
	been_away(since);
}

KNOWN static void *body(void *arg)
{
	struct job *job = arg;

	ENTER();
	set_out();
	job->tid = (int)syscall(SYS_gettid);
	prctl(PR_SET_NAME, job->name);
	job->work();
	job->nr_rests = nr_rests;
	job->began = began;
	job->away = away;
	job->running = running + now(CLOCK_THREAD_CPUTIME_ID);
	job->ended = moment();
	return arg;
}

static void begin(void)
{
	known_print();
	pthread_barrier_wait(&printed);
	set_out();
}

KNOWN static void spin_for(int64_t ns)
{
	int64_t until = now(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (!known_done && now(CLOCK_THREAD_CPUTIME_ID) < until)
		sink++;
}

KNOWN static void spin_leaf(void) { ENTER(); begin(); sink += known_spin(); }
KNOWN static void spin(void) { ENTER(); spin_leaf(); sink++; }
KNOWN static void half(void)
{
	ENTER();
	begin();
	while (!known_done) {
		spin_for(10 * NS_PER_MS);
		rest(10 * NS_PER_MS);
	}
}
KNOWN static void sleep_leaf(void)
{
	ENTER();
	begin();
	while (!known_done)
		rest(3600 * 1000 * NS_PER_MS);
	sink++;
}
KNOWN static void sleeper(void) { ENTER(); sleep_leaf(); sink++; }
KNOWN static void lock_leaf(void)
{
	struct moment since;

	ENTER();
	begin();
	since = moment();
	pthread_mutex_lock(&mutex);
	been_away(since);
	pthread_mutex_unlock(&mutex);
	sink++;
}
KNOWN static void locker(void) { volatile char room[5000]; ENTER(); room[9] = 1; lock_leaf(); sink += (unsigned long)room[9]; }
KNOWN static void pipe_leaf(void)
{
	struct moment since;
	char byte;

	ENTER();
	begin();
	since = moment();
	sink += (unsigned long)read(ends[0], &byte, 1);
	been_away(since);
}
KNOWN static void piper(void) { ENTER(); pipe_leaf(); sink++; }

static void mayfly(void)
{
	spin_for(5 * NS_PER_MS);
	rest(5 * NS_PER_MS);
}

static void run(struct job *job)
{
	job->born = now(CLOCK_MONOTONIC);
	if (pthread_create(&job->thread, NULL, body, job))
		exit(1);
}

KNOWN static void brief(void)
{
	ENTER();
	begin();
	while (!known_done) {
		struct job job = { .work = mayfly, .name = "mayfly" };

		run(&job);
		join(&job);
	}
}

/* Only the main thread gets the alarm, so no other is woken by it. */
static void end_all(struct job *jobs, int nr)
{
	pthread_mutex_unlock(&mutex);
	close(ends[1]);
	for (int i = 0; i < nr; i++)
		if (jobs[i].work == sleeper)
			pthread_kill(jobs[i].thread, SIGUSR1);
}

int main(int argc, char **argv)
{
	static const struct job kinds[] = { { .work = spin, .name = "spin" },	  { .work = half, .name = "half" },
					    { .work = sleeper, .name = "sleep" }, { .work = locker, .name = "lock" },
					    { .work = piper, .name = "pipe" },	  { .work = brief, .name = "brief" } };
	static struct job jobs[16];
	int nr = argc > 2 && argc < 16 ? argc - 2 : 0;
	sigset_t alarm;

	ENTER();
	if (pipe(ends))
		return 1;
	pthread_mutex_lock(&mutex);
	pthread_barrier_init(&printed, NULL, (unsigned)nr + 1);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	signal(SIGUSR1, known_alarm);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	known_start(argv[1]);
	for (int i = 0; i < nr; i++) {
		for (unsigned k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			if (!strcmp(argv[i + 2], kinds[k].name))
				jobs[i] = kinds[k];
		if (!jobs[i].work)
			return 2;
		run(&jobs[i]);
	}
	pthread_barrier_wait(&printed);
	known_ready();
	sigemptyset(&alarm);
	while (!known_done)
		sigsuspend(&alarm);
	end_all(jobs, nr);
	for (int i = 0; i < nr; i++)
		join(&jobs[i]);
	return 0;
}
