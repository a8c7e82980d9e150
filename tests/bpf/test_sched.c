// SPDX-License-Identifier: Apache-2.0
/* The programs of the scheduler's events, on children with known waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "collect/sched_programs.h"
#include "need_bpf.h"

#define MS 1000000ull
#define NR_SLEEPS 10
#define SLEEP_NS (20 * MS)
#define MAX_SUMS 4096
#define MAX_WAKERS 256

struct seen {
	struct sonde_wait_key keys[MAX_SUMS];
	struct sonde_wait_sum sums[MAX_SUMS];
	uint32_t nr;
	struct sonde_waker_record wakers[MAX_WAKERS];
	uint32_t nr_wakers;
	uint32_t nr_records[SONDE_RECORD_WAKEUP + 1]; /* by type */
	struct sonde_wait_counters counters;
	uint64_t start_ns, end_ns;
	struct sched_programs *programs; /* while they run */
};

static int take_sum(void *arg, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum)
{
	struct seen *seen = arg;

	assert_true(seen->nr < MAX_SUMS);
	seen->keys[seen->nr] = *key;
	seen->sums[seen->nr++] = *sum;
	return 0;
}

static int take_slot(void *arg, const struct sonde_wait_slot *slot, uint64_t nr_waits)
{
	return 0;
}

static int take_piece(void *arg, const struct sonde_wait_piece *piece)
{
	return piece->sum.nr_waits || piece->sum.off_ns ? take_sum(arg, &piece->key, &piece->sum) : 0;
}

static struct sched_sink sink_of(struct seen *seen)
{
	return (struct sched_sink){ .sum = take_sum, .slot = take_slot, .piece = take_piece, .arg = seen };
}

static void take(struct seen *seen)
{
	const struct sched_sink sink = sink_of(seen);

	assert_int_equal(sched_programs_take(seen->programs, &sink), 0);
}

static int take_record(void *arg, const void *record)
{
	const struct sonde_waker_record *waker = record;
	struct seen *seen = arg;

	assert_true(waker->type <= SONDE_RECORD_WAKEUP);
	seen->nr_records[waker->type]++;
	if (waker->type == SONDE_RECORD_WAKER && seen->nr_wakers < MAX_WAKERS)
		seen->wakers[seen->nr_wakers++] = *waker;
	return 0;
}

static void nap(uint64_t ns)
{
	struct timespec left = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	while (nanosleep(&left, &left))
		;
}

/* Forked children of this program would be left out as its helpers, so they are set as targets. */
static void record(struct sampler_options *options, void (*work)(void *arg), void *arg, struct seen *seen)
{
	const struct sched_sink sink = sink_of(seen);
	struct diag diag = { 0 };
	struct sampler *sampler;

	options->cpu = -1;
	options->stack_storage = 1024;
	options->no_ticks = true;
	options->config.state = -1;
	options->config.more_levels = 1;
	options->config.kernel_stacks = options->config.user_stacks = 1;
	memset(seen, 0, sizeof(*seen));
	if (sampler_new(options, &diag, &sampler) ||
	    sched_programs_new(sampler, &(struct sched_options){ .max_sums = MAX_SUMS }, &diag, &seen->programs) ||
	    sched_programs_start(seen->programs, &diag, &seen->start_ns))
		fail_msg("%s", diag.text);
	work(arg);
	assert_int_equal(sched_programs_stop(seen->programs, &sink, &diag, &seen->end_ns), 0);
	assert_int_equal(sampler_read(sampler, UINT64_MAX, take_record, seen), 0);
	sched_programs_counters(seen->programs, &seen->counters);
	sched_programs_free(seen->programs);
	sampler_free(sampler);
}

/* A child that does `work` when it gets the go, and not before. */
struct child {
	pid_t pid;
	int go;
};

static struct child start(void (*work)(void))
{
	int fds[2];
	char byte;
	struct child child;

	assert_int_equal(pipe(fds), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (!child.pid) {
		if (read(fds[0], &byte, 1) == 1)
			work();
		_exit(0);
	}
	close(fds[0]);
	child.go = fds[1];
	return child;
}

static void let_go(void *arg)
{
	const struct child *child = arg;

	assert_int_equal(write(child->go, "g", 1), 1);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

static void sleeps(void)
{
	for (int i = 0; i < NR_SLEEPS; i++)
		nap(SLEEP_NS);
}

static void print(const struct seen *seen)
{
	for (uint32_t i = 0; i < seen->nr; i++)
		fprintf(stderr, "%.16s %u/%u what %u state %#x syscall %u user %d kernel %d: %llu waits %llu us, queued %llu us\n",
			seen->keys[i].comm, seen->keys[i].tgid, seen->keys[i].tid, seen->keys[i].what, seen->keys[i].state,
			seen->keys[i].syscall, seen->keys[i].user_state, seen->keys[i].kernel_state,
			(unsigned long long)seen->sums[i].nr_waits, (unsigned long long)seen->sums[i].off_ns / 1000,
			(unsigned long long)seen->sums[i].queued_ns / 1000);
	fprintf(stderr, "switches %llu waits %llu target %llu time %llu unseen %llu storage %llu full %llu\n",
		(unsigned long long)seen->counters.switches, (unsigned long long)seen->counters.waits,
		(unsigned long long)seen->counters.filtered_target, (unsigned long long)seen->counters.filtered_time,
		(unsigned long long)seen->counters.unseen, (unsigned long long)seen->counters.no_storage,
		(unsigned long long)seen->counters.sums_full);
}

static struct seen seen;

static void a_sleeper(void **state)
{
	struct child child = start(sleeps);
	struct sampler_options options = { .targets = (uint32_t[]){ (uint32_t)child.pid },
					   .nr_targets = 1,
					   .config = { .filter_tgid = 1 } };
	uint64_t nr = 0, nr_preempted = 0, off_ns = 0;

	record(&options, let_go, &child, &seen);
	if (getenv("SONDE_TEST_PRINT"))
		print(&seen);
	for (uint32_t i = 0; i < seen.nr; i++) {
		assert_int_equal(seen.keys[i].tgid, child.pid);
		if (seen.keys[i].syscall != SYS_clock_nanosleep)
			continue;
		if (seen.keys[i].state == SONDE_WAIT_PREEMPTED) { /* on its way to sleep, or back: the go may have arrived by then */
			nr_preempted += seen.sums[i].nr_waits;
			continue;
		}
		assert_int_equal(seen.keys[i].state & 1, 1);
		nr += seen.sums[i].nr_waits;
		off_ns += seen.sums[i].off_ns;
		assert_true(seen.sums[i].min_ns >= SLEEP_NS);
	}
	assert_in_range(nr + nr_preempted, NR_SLEEPS, NR_SLEEPS + nr_preempted);
	assert_true(off_ns >= nr * SLEEP_NS);
}

static void spin(uint64_t ns)
{
	clock_t end = clock() + (clock_t)(ns / (1000000000u / CLOCKS_PER_SEC));

	while (clock() < end)
		;
}

static void *thread_main(void *arg)
{
	nap(5 * MS);
	spin(5 * MS);
	return NULL;
}

static void lives_on(void)
{
	pthread_t thread;

	for (int i = 0; i < 5; i++) {
		nap(10 * MS);
		spin(10 * MS);
		if (!pthread_create(&thread, NULL, thread_main, NULL))
			pthread_join(thread, NULL);
	}
	pause();
}

/* The child is killed only after the stop. */
static void let_live(void *arg)
{
	const struct child *child = arg;

	assert_int_equal(write(child->go, "g", 1), 1);
	for (int i = 0; i < 30; i++) {
		nap(10 * MS);
		take(&seen); /* nothing is lost or counted twice when the sums are taken while programs add */
	}
}

/* All of a thread's time is in its sums, to the nanosecond. */
static void every_nanosecond(void **state)
{
	struct child child = start(lives_on);
	struct sampler_options options = { .targets = (uint32_t[]){ (uint32_t)child.pid },
					   .nr_targets = 1,
					   .config = { .filter_tgid = 1, .wall = 1 } };
	uint64_t running_ns = 0, off_ns = 0, others_ns = 0;

	record(&options, let_live, &child, &seen);
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
	if (getenv("SONDE_TEST_PRINT"))
		print(&seen);
	for (uint32_t i = 0; i < seen.nr; i++) {
		if (seen.keys[i].tid != (uint32_t)child.pid)
			others_ns += seen.sums[i].off_ns;
		else if (seen.keys[i].what == SONDE_WAIT_RUNNING)
			running_ns += seen.sums[i].off_ns;
		else
			off_ns += seen.sums[i].off_ns;
	}
	assert_int_equal(running_ns + off_ns, seen.end_ns - seen.start_ns);
	assert_true(running_ns > 10 * MS && others_ns > 10 * MS);
	assert_in_range(seen.counters.unseen, 0, 8); /* hosts may hide context switches */
}

static void let_all_live(void *arg)
{
	nap(500 * MS);
}

struct account {
	uint32_t tid;
	uint64_t ns;
};

/* The same for all threads of the machine. */
static void every_thread(void **state)
{
	static struct account accounts[MAX_SUMS];
	struct sampler_options options = { .config = { .wall = 1 } };
	uint32_t nr = 0, nr_whole = 0;

	record(&options, let_all_live, NULL, &seen);
	for (uint32_t i = 0; i < seen.nr; i++) {
		uint32_t at = 0;

		while (at < nr && accounts[at].tid != seen.keys[i].tid)
			at++;
		if (at == nr)
			accounts[nr++] = (struct account){ .tid = seen.keys[i].tid };
		accounts[at].ns += seen.sums[i].off_ns;
	}
	for (uint32_t i = 0; i < nr; i++) {
		nr_whole += accounts[i].ns == seen.end_ns - seen.start_ns;
		if (accounts[i].ns != seen.end_ns - seen.start_ns && getenv("SONDE_TEST_PRINT"))
			fprintf(stderr, "%u: %lld us off\n", accounts[i].tid,
				(long long)(accounts[i].ns - seen.end_ns + seen.start_ns) / 1000);
		assert_true(accounts[i].ns <= seen.end_ns - seen.start_ns);
	}
	if (getenv("SONDE_TEST_PRINT"))
		fprintf(stderr, "%u of %u threads whole, %llu unseen\n", nr_whole, nr, (unsigned long long)seen.counters.unseen);
	assert_true(nr_whole > 10);
}

#define NR_WINDOWS 24
#define WINDOW_NS (20 * MS)
#define MAX_THREADS 2048

/* A thread's time by window. */
struct lived {
	uint32_t tid;
	uint64_t ns[NR_WINDOWS + 1];
};

static struct {
	struct lived threads[MAX_THREADS];
	uint32_t nr;
	uint64_t begin_ns[NR_WINDOWS + 2]; /* of each window, and the end of the last */
	uint32_t window;                   /* that is open */
} cut;

static int note_time(uint32_t window, const struct sonde_wait_key *key, uint64_t ns)
{
	uint32_t i = 0;

	while (i < cut.nr && cut.threads[i].tid != key->tid)
		i++;
	assert_true(i < MAX_THREADS && window <= NR_WINDOWS);
	if (i == cut.nr)
		cut.threads[cut.nr++] = (struct lived){ .tid = key->tid };
	cut.threads[i].ns[window] += ns;
	return 0;
}

static int note_sum(void *arg, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum)
{
	return note_time(key->window, key, sum->off_ns);
}

static int note_piece(void *arg, const struct sonde_wait_piece *piece)
{
	return note_time(cut.window, &piece->key, piece->sum.off_ns);
}

/* Threads that go on and off their CPUs all the time, at whatever time the border falls. */
static void *passes_on(void *arg)
{
	const int *fds = arg;
	char byte;

	while (read(fds[0], &byte, 1) == 1 && write(fds[1], &byte, 1) == 1)
		;
	return NULL;
}

static void passes_round(void)
{
	int there[2], back[2], of_thread[2], of_main[2];
	pthread_t thread;

	if (pipe(there) || pipe(back))
		_exit(1);
	of_thread[0] = there[0];
	of_thread[1] = back[1];
	of_main[0] = back[0];
	of_main[1] = there[1];
	if (pthread_create(&thread, NULL, passes_on, of_thread) || write(there[1], "x", 1) != 1)
		_exit(1);
	passes_on(of_main);
}

static void cut_windows(void *arg)
{
	const struct sched_sink sink = { .sum = note_sum, .slot = take_slot, .piece = note_piece };
	const struct child *child = arg;
	struct diag diag = { 0 };

	assert_int_equal(write(child->go, "g", 1), 1);
	cut.begin_ns[0] = seen.start_ns;
	for (uint32_t i = 1; i <= NR_WINDOWS; i++) {
		uint64_t border_ns = clock_ns() + WINDOW_NS;

		assert_true(sched_programs_set_border(seen.programs, &border_ns));
		nap(border_ns + MS - clock_ns());
		assert_int_equal(sched_programs_cut(seen.programs, &sink, &diag), 0);
		cut.begin_ns[i] = border_ns;
		cut.window++;
	}
}

/* Counts the windows of a thread, which existed before and after, that have all of its time, and those that have not. */
static void count_whole(uint32_t *ret_nr_whole, uint32_t *ret_nr_other)
{
	*ret_nr_whole = *ret_nr_other = 0;
	for (uint32_t i = 0; i < cut.nr; i++) {
		const struct lived *thread = &cut.threads[i];

		for (uint32_t w = 1; w + 1 < NR_WINDOWS; w++) {
			uint64_t ns = cut.begin_ns[w + 1] - cut.begin_ns[w];

			if (!thread->ns[w - 1] || !thread->ns[w + 1])
				continue;
			*ret_nr_whole += thread->ns[w] == ns;
			*ret_nr_other += thread->ns[w] != ns;
			if (thread->ns[w] != ns)
				print_message("thread %u, window %u: %lld ns off\n", thread->tid, w, (long long)(thread->ns[w] - ns));
		}
	}
}

static void record_windows(bool of_child, uint32_t *ret_nr_whole, uint32_t *ret_nr_other)
{
	struct child child = start(passes_round);
	struct sampler_options options = { .targets = (uint32_t[]){ (uint32_t)child.pid },
					   .nr_targets = of_child,
					   .config = { .wall = 1, .filter_tgid = of_child } };

	memset(&cut, 0, sizeof(cut));
	record(&options, cut_windows, &child, &seen);
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
	count_whole(ret_nr_whole, ret_nr_other);
}

/* Waits and times on a CPU that cross a border are split there: each nanosecond counts in one window. */
static void windows_have_every_nanosecond(void **state)
{
	uint32_t nr_whole, nr_other;

	record_windows(true, &nr_whole, &nr_other);
	assert_int_equal(nr_other, 0);
	assert_true(nr_whole >= 2 * (NR_WINDOWS - 4));
	record_windows(false, &nr_whole, &nr_other);
	assert_true(nr_whole > 99 * nr_other); /* threads with hidden switches (docs/internals/waiting.md) */
}

static int to_main[2];

static void *writes_main(void *arg)
{
	for (int i = 0; i < NR_SLEEPS; i++) {
		nap(5 * MS);
		if (write(to_main[1], "w", 1) != 1)
			_exit(1);
	}
	return NULL;
}

static void is_woken(void)
{
	pthread_t thread;
	char byte;

	if (pipe(to_main) || pthread_create(&thread, NULL, writes_main, NULL))
		_exit(1);
	for (int i = 0; i < NR_SLEEPS; i++) {
		if (read(to_main[0], &byte, 1) != 1)
			_exit(1);
	}
	pthread_join(thread, NULL);
}

static const struct sonde_wait_key *waker_of(const struct sonde_wait_key *key)
{
	for (uint32_t i = 0; i < seen.nr_wakers; i++) {
		if (seen.wakers[i].hash == key->waker)
			return &seen.wakers[i].waker;
	}
	return NULL;
}

/* A reader is woken by the writer, a sleeper by an interrupt. */
static void wakers(void **state)
{
	struct child child = start(is_woken);
	struct sampler_options options = { .targets = (uint32_t[]){ (uint32_t)child.pid },
					   .nr_targets = 1,
					   .config = { .filter_tgid = 1, .wake = 1 } };
	uint64_t nr_reads = 0, nr_naps = 0;

	record(&options, let_go, &child, &seen);
	if (getenv("SONDE_TEST_PRINT"))
		print(&seen);
	for (uint32_t i = 0; i < seen.nr; i++) {
		const struct sonde_wait_key *key = &seen.keys[i], *waker = waker_of(key);

		if (key->state == SONDE_WAIT_PREEMPTED)
			assert_int_equal(key->waker, 0);
		if (key->syscall == SYS_read && key->state && waker && waker->tgid == key->tgid) {
			assert_int_not_equal(waker->tid, key->tid);
			assert_int_equal(waker->kernel_state, SONDE_STACK_STORED);
			nr_reads += seen.sums[i].nr_waits;
		}
		if (key->syscall == SYS_clock_nanosleep && key->state && key->waker) {
			assert_non_null(waker);
			assert_int_equal(waker->tid, 0);
			assert_int_equal(waker->user_state, SONDE_STACK_NONE);
			nr_naps += seen.sums[i].nr_waits;
		}
	}
	assert_in_range(nr_reads, NR_SLEEPS / 2, NR_SLEEPS); /* on a busy machine a byte may be there before the reader waits */
	assert_in_range(nr_naps, NR_SLEEPS / 2, NR_SLEEPS); /* hosts may hide what wakes in their threads */
	assert_int_equal(seen.nr_records[SONDE_RECORD_WAKEUP], 0);
}

/* Each switch away and each wake-up of the target is sent as it happens. */
static void events(void **state)
{
	struct child child = start(is_woken);
	struct sampler_options options = { .targets = (uint32_t[]){ (uint32_t)child.pid },
					   .nr_targets = 1,
					   .config = { .filter_tgid = 1, .events = 1 } };
	uint64_t nr_waits = 0, nr_blocked = 0;

	record(&options, let_go, &child, &seen);
	for (uint32_t i = 0; i < seen.nr; i++) {
		assert_int_equal(seen.keys[i].waker, 0); /* not requested */
		nr_waits += seen.sums[i].nr_waits;
		nr_blocked += seen.keys[i].state ? seen.sums[i].nr_waits : 0;
	}
	assert_int_equal(seen.counters.events_lost, 0);
	assert_true(nr_blocked >= 2 * NR_SLEEPS - NR_SLEEPS / 2); /* as above */
	assert_true(seen.nr_records[SONDE_RECORD_SWITCH] >= nr_waits - 1); /* the first wait began earlier */
	assert_true(seen.nr_records[SONDE_RECORD_WAKEUP] + 4 >= nr_blocked); /* hosts may hide some */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleeper),
		cmocka_unit_test(every_nanosecond),
		cmocka_unit_test(every_thread),
		cmocka_unit_test(windows_have_every_nanosecond),
		cmocka_unit_test(wakers),
		cmocka_unit_test(events),
	};

	need_bpf();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
