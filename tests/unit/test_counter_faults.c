// SPDX-License-Identifier: Apache-2.0
/* Counters' overflows, and counters when each system call and each allocation fails once: no crash, no leak (ASan checks), no open
 * descriptor left. The result is an error or correct. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sonde/counter.h>

#include "fake_perf.h"

#define RING_BYTES 8192
#define FIRST_ID 1000 /* of fake events */

/* --- overflows ------------------------------------------------------------------------------------------------------------------------ */

struct sample {
	struct perf_event_header header;
	uint64_t id, pc;
	uint32_t tgid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period, nr_callers, callers[3];
};

static void put(struct fake_event *event, const void *record, size_t size)
{
	char *data = (char *)event->page + sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < size; i++)
		data[(event->page->data_head + i) % RING_BYTES] = ((const char *)record)[i];
	event->page->data_head += size;
}

static void put_sample(struct fake_event *event, uint64_t id, uint64_t pc)
{
	struct sample sample = { .header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(sample) },
				 .id = id,
				 .pc = pc,
				 .tgid = 1,
				 .tid = 2,
				 .time_ns = 3,
				 .cpu = 4,
				 .period = 5,
				 .nr_callers = 3,
				 .callers = { 6, 7, 8 } };

	put(event, &sample, sizeof(sample));
}

struct seen {
	uint32_t nr, nr_wrong;
	uint64_t pcs;
	uint32_t events[2];
};

static void see(void *arg, const struct sonde_overflow *overflow)
{
	struct seen *seen = arg;

	seen->nr++;
	seen->pcs += overflow->pc;
	assert_in_range(overflow->event, 0, 1);
	seen->events[overflow->event]++;
	seen->nr_wrong += overflow->tgid != 1 || overflow->tid != 2 || overflow->time_ns != 3 || overflow->cpu != 4 ||
			  overflow->period != 5 || overflow->nr_callers != 3 || overflow->callers[0] != 6 || overflow->callers[2] != 8;
}

static struct sonde_counters *open_sampling(uint64_t flags)
{
	static const uint32_t tids[] = { 8 };
	struct sonde_event events[2] = { { .size = sizeof(*events), .type = 1, .config = 2, .period = 3 },
					 { .size = sizeof(*events), .type = 0, .config = 0, .freq_hz = 99 } };
	struct sonde_counter_options options = { .size = sizeof(options),
						 .events = events,
						 .nr_events = 2,
						 .tids = tids,
						 .nr_tids = 1,
						 .flags = flags,
						 .ring_bytes = RING_BYTES,
						 .max_callers = 3 };
	struct sonde_counters *set = NULL;

	assert_int_equal(sonde_counters_new(&options, &set), 0);
	return set;
}

static void test_overflows(void **state)
{
	const struct perf_event_attr *attr = &fake_events[0].attr;
	struct perf_event_header lost[3] = { { .type = PERF_RECORD_LOST, .size = sizeof(lost) } },
				 other = { .type = PERF_RECORD_THROTTLE, .size = sizeof(other) };
	struct sonde_counters *set = open_sampling(0);
	struct seen seen = { 0 };
	uint64_t nr_lost = 0;

	assert_int_equal(fake_nr, 6); /* inherited by threads: one per CPU */
	assert_true(attr->sample_period == 3 && !attr->freq && fake_events[3].attr.freq && fake_events[3].attr.sample_freq == 99);
	assert_true(attr->sample_id_all && attr->use_clockid && attr->sample_max_stack == 3 && attr->sample_type & PERF_SAMPLE_CALLCHAIN);
	assert_true(fake_events[0].page && fake_events[2].page && !fake_events[3].page);
	assert_int_equal(fake_events[4].output_fd, fake_events[1].fd); /* one ring per CPU */
	assert_int_equal(sonde_counters_wait(set, 0), 0);
	put_sample(&fake_events[0], FIRST_ID + 0, 100);
	put_sample(&fake_events[1], FIRST_ID + 4, 1000);
	put_sample(&fake_events[1], 4711, 1); /* of no event */
	memcpy(&lost[2], &(uint64_t){ 12 }, 8);
	put(&fake_events[1], lost, sizeof(lost));
	put(&fake_events[1], &other, sizeof(other));
	put_sample(&fake_events[1], FIRST_ID + 1, 10000);
	assert_int_equal(sonde_counters_wait(set, 0), 1);
	assert_int_equal(sonde_counters_overflows(set, see, &seen, &nr_lost), 0);
	assert_true(seen.nr == 3 && seen.pcs == 11100 && seen.events[0] == 2 && seen.events[1] == 1 && !seen.nr_wrong && nr_lost == 0);
	fake_events[2].lost = 30; /* no record reports these yet */
	fake_events[3].lost = 4;
	assert_int_equal(sonde_counters_overflows(set, see, &seen, &nr_lost), 0);
	assert_int_equal(nr_lost, 34);
	fake_events[2].lost++;
	assert_int_equal(sonde_counters_overflows(set, see, &seen, &nr_lost), 0);
	assert_int_equal(nr_lost, 1); /* since the last read */
	assert_int_equal(sonde_counters_wait(set, 0), 0);
	for (int i = 0; i < 1000; i++) { /* wrap around the ring many times */
		put_sample(&fake_events[2], FIRST_ID + 2, 1);
		if (i % 50 == 49)
			assert_int_equal(sonde_counters_overflows(set, see, &seen, NULL), 0);
	}
	assert_true(seen.nr == 1003 && !seen.nr_wrong);
	sonde_counters_free(set);
}

static int refuse_lost(const struct perf_event_attr *attr, int pid, int cpu)
{
	return attr->read_format & PERF_FORMAT_LOST ? EINVAL : 0;
}

/* Before Linux 6.0 only records report lost samples. */
static void test_lost_in_records(void **state)
{
	struct perf_event_header lost[3] = { { .type = PERF_RECORD_LOST, .size = sizeof(lost) } };
	struct sonde_counters *set;
	struct sonde_count counts[2];
	struct seen seen = { 0 };
	uint64_t nr_lost = 0;

	fake_refuse = refuse_lost;
	set = open_sampling(0);
	assert_int_equal(fake_nr, 6);
	assert_true(fake_events[0].attr.exclude_hv); /* that was not the reason for the refusal */
	memcpy(&lost[2], &(uint64_t){ 12 }, 8);
	put(&fake_events[1], lost, sizeof(lost));
	assert_int_equal(sonde_counters_overflows(set, see, &seen, &nr_lost), 0);
	assert_int_equal(nr_lost, 12);
	assert_int_equal(sonde_counters_read(set, counts, 2), 0);
	sonde_counters_free(set);
}

/* Read with the values of the whole group, or for each event on its own. */
static void test_lost_in_groups(void **state)
{
	static const uint32_t tids[] = { 8 };
	struct sonde_event events[3] = { { .size = sizeof(*events), .type = 0, .config = 0 },
					 { .size = sizeof(*events), .type = 1, .config = 2 },
					 { .size = sizeof(*events), .type = 0, .config = 1 } };
	struct sonde_counter_options options = { .size = sizeof(options),
						 .events = events,
						 .nr_events = 3,
						 .tids = tids,
						 .nr_tids = 1,
						 .ring_bytes = RING_BYTES,
						 .flags = SONDE_COUNTER_GROUP | SONDE_COUNTER_NO_INHERIT };

	for (int leads = 0; leads < 2; leads++) {
		struct sonde_counters *set = NULL;
		struct sonde_count counts[3];
		struct seen seen = { 0 };
		uint64_t nr_lost = 0;

		fake_nr = 0;
		events[0].period = leads;
		events[1].period = 3;
		assert_int_equal(sonde_counters_new(&options, &set), 0);
		for (unsigned int i = 0; i < 3; i++) {
			fake_events[i].value = i + 1;
			fake_events[i].lost = 10 * (i + 1);
		}
		assert_int_equal(sonde_counters_read(set, counts, 3), 0);
		assert_true(counts[0].value == 1 && counts[1].value == 2 && counts[2].value == 3);
		assert_int_equal(sonde_counters_overflows(set, see, &seen, &nr_lost), 0);
		assert_int_equal(nr_lost, leads ? 30 : 20);
		sonde_counters_free(set);
	}
}

static void test_overflows_cut(void **state)
{
	struct sonde_counters *set = open_sampling(SONDE_COUNTER_NO_INHERIT);
	struct sample sample = { .header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(sample) }, .id = FIRST_ID, .nr_callers = 4 };
	struct seen seen = { 0 };

	assert_int_equal(fake_nr, 2); /* on any CPU */
	assert_int_equal(fake_events[1].output_fd, fake_events[0].fd);
	put(&fake_events[0], &sample, sizeof(sample)); /* claims more callers than it has */
	sample.header.size = 16;
	put(&fake_events[0], &sample, 16);
	put(&fake_events[0], (uint64_t[]){ PERF_RECORD_SAMPLE }, 8); /* of size 0: what follows cannot be read */
	put_sample(&fake_events[0], FIRST_ID, 1);
	assert_int_equal(sonde_counters_overflows(set, see, &seen, NULL), 0);
	assert_int_equal(seen.nr, 0);
	sonde_counters_free(set);
}

static int hang_up(struct pollfd *polls, nfds_t nr)
{
	polls[0].revents = POLLHUP;
	return 1;
}

static void test_wait_for_the_dead(void **state)
{
	struct sonde_counters *set = open_sampling(SONDE_COUNTER_NO_INHERIT), *plain = NULL;

	fake_poll = hang_up;
	assert_int_equal(sonde_counters_wait(set, -1), -ESRCH);
	put_sample(&fake_events[0], FIRST_ID, 1);
	assert_int_equal(sonde_counters_wait(set, -1), 1); /* the rest of the samples */
	sonde_counters_free(set);
	assert_int_equal(sonde_counters_open(1, 2, 0, -1, 0, &plain), 0);
	assert_int_equal(sonde_counters_wait(plain, 0), -ENODATA);
	assert_int_equal(sonde_counters_overflows(plain, see, NULL, NULL), -ENODATA);
	sonde_counters_free(plain);
}

/* The first of two threads ends after 20 ms. */
static int hang_up_later(struct pollfd *polls, nfds_t nr)
{
	assert_int_equal(nr, 2);
	if (polls[0].fd < 0)
		return 0;
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	polls[0].revents = POLLHUP;
	return 1;
}

static void test_wait_for_the_living(void **state)
{
	static const uint32_t tids[] = { 8, 9 };
	struct sonde_event event = { .size = sizeof(event), .type = 1, .config = 2, .period = 3 };
	struct sonde_counter_options options = { .size = sizeof(options),
						 .events = &event,
						 .nr_events = 1,
						 .tids = tids,
						 .nr_tids = 2,
						 .flags = SONDE_COUNTER_NO_INHERIT,
						 .ring_bytes = RING_BYTES };
	struct sonde_counters *set = NULL;

	assert_int_equal(sonde_counters_new(&options, &set), 0);
	fake_poll = hang_up_later;
	assert_int_equal(sonde_counters_wait(set, 10000), 0);
	assert_in_range(fake_poll_timeout_ms, 1, 9980); /* only the rest of the given time */
	sonde_counters_free(set);
}

/* --- faults --------------------------------------------------------------------------------------------------------------------------- */

static int check_counts(struct sonde_counters *set)
{
	struct sonde_count counts[8];
	uint32_t nr = sonde_counters_nr(set);
	int err;

	assert_in_range(nr, 0, 8);
	for (int i = 0; i < fake_nr; i++)
		fake_events[i].value = 7;
	err = sonde_counters_read(set, counts, nr);
	for (uint32_t i = 0; i < nr; i++) {
		struct sonde_counter_info info = { .size = sizeof(info) };

		assert_int_equal(sonde_counters_info(set, i, &info), 0);
		assert_int_equal(info.err != 0, *info.error != '\0');
		if (counts[i].err)
			assert_true(info.err == counts[i].err || err);
		else
			assert_true(counts[i].value && counts[i].value % 7 == 0);
	}
	return err;
}

/* Opens and uses a set with everything; 0 when all of it worked. */
static int use_set(const struct sonde_counter_options *options)
{
	struct sonde_counters *set = (void *)1; /* set in any case */
	struct seen seen = { 0 };
	uint64_t nr_lost;
	int err = sonde_counters_new(options, &set), bad = err;

	assert_true(set || err == -ENOMEM);
	if (!set)
		return err;
	if (err)
		assert_true(*sonde_counters_error(set) != '\0');
	bad |= sonde_counters_start(set);
	bad |= check_counts(set);
	if (options->ring_bytes) {
		for (int i = 0; i < fake_nr; i++) {
			if (fake_events[i].page)
				put_sample(&fake_events[i], FIRST_ID + (uint64_t)i, 1);
		}
		bad |= sonde_counters_wait(set, 0) != 1;
		bad |= sonde_counters_overflows(set, see, &seen, &nr_lost);
		bad |= seen.nr == 0;
	}
	if (sonde_counters_nr(set))
		bad |= sonde_counters_attach_bpf(set, 0, 0);
	bad |= sonde_counters_reset(set);
	bad |= sonde_counters_stop(set);
	sonde_counters_free(set);
	return bad;
}

static int use_names(void)
{
	static const uint32_t tgids[] = { 5 };

	return use_set(&(struct sonde_counter_options){ .size = sizeof(struct sonde_counter_options), .tgids = tgids, .nr_tgids = 1,
							.names = "cs,{cycles,instructions}:u,sched:sched_switch,cpu/mem-loads,umask=3/" });
}

static int use_cgroup(void)
{
	return use_set(&(struct sonde_counter_options){
	    .size = sizeof(struct sonde_counter_options), .cgroup = "a.slice", .names = "{cycles,instructions}" });
}

static int use_cgroup_by_id(void)
{
	char id[24];

	return use_set(
	    &(struct sonde_counter_options){ .size = sizeof(struct sonde_counter_options), .cgroup = fake_cgroup_id(id), .names = "cs" });
}

static int use_uncore(void)
{
	struct sonde_event event = { .size = sizeof(event), .type = 21, .config = 2 };

	return use_set(&(struct sonde_counter_options){ .size = sizeof(struct sonde_counter_options),
							.all_cpus = true,
							.names = "uncore_imc/event=4/,power/energy-pkg/,cs",
							.events = &event,
							.nr_events = 1 });
}

static int use_rings(void)
{
	struct sonde_event events[2] = { { .size = sizeof(*events), .type = 1, .config = 2, .period = 3 },
					 { .size = sizeof(*events), .type = 0, .config = 0, .freq_hz = 99 } };

	return use_set(&(struct sonde_counter_options){
	    .size = sizeof(struct sonde_counter_options), .events = events, .nr_events = 2, .ring_bytes = RING_BYTES, .max_callers = 3 });
}

static int no_work(void *arg)
{
	return 0;
}

static int use_function(void)
{
	struct sonde_count count;
	int err = sonde_count_function("cycles", no_work, NULL, &count, NULL, 0);

	return err ? err : sonde_count_function_config(1, 2, no_work, NULL, &count, NULL, 0);
}

static int use_one_list(enum sonde_list_kind kind, const char *within)
{
	struct sonde_names *names = (void *)1; /* set in any case */
	int err = sonde_list(kind, within, &names);

	assert_true(names || err == -ENOMEM);
	sonde_names_free(names);
	return err;
}

static int use_lists(void)
{
	int err = use_one_list(SONDE_LIST_PMUS, NULL);

	err = err ? err : use_one_list(SONDE_LIST_EVENTS, NULL);
	err = err ? err : use_one_list(SONDE_LIST_EVENTS, "cpu");
	err = err ? err : use_one_list(SONDE_LIST_SUBSYSTEMS, NULL);
	err = err ? err : use_one_list(SONDE_LIST_TRACEPOINTS, NULL);
	return err ? err : use_one_list(SONDE_LIST_TRACERS, NULL);
}

/* Fails the first call, the second, and so on until all succeed. There must be at least `at_least` calls; up to `forgiven` of them may fail
 * without an effect. */
static void fail_each(int (*use)(void), int at_least, int forgiven)
{
	int nr_fds = nr_open_fds(), nr_unseen = 0, at = 0;
	const char *unseen = "";

	for (;; at++) {
		int bad;

		fake_nr = fake_nr_calls = 0;
		fake_failed = NULL;
		fake_fail_at = at;
		bad = use();
		fake_fail_at = -1;
		if (nr_open_fds() != nr_fds)
			fail_msg("call %d, %s, failed: %d descriptors are left", at, fake_failed, nr_open_fds() - nr_fds);
		for (int i = 0; i < fake_nr; i++)
			assert_null(fake_events[i].page);
		if (!fake_failed) {
			assert_int_equal(bad, 0);
			break;
		}
		if (!bad) {
			nr_unseen++;
			unseen = fake_failed;
		}
	}
	assert_in_range(at, at_least, 10000);
	if (nr_unseen > forgiven)
		fail_msg("%d of %d failures made no difference, such as that of %s", nr_unseen, at, unseen);
}

static void test_faults_of_names(void **state)
{
	/* tracefs is searched for in a second place, and mounted; a PMU `cpu` that cannot be seen matters only if there are other core PMUs
	 */
	fail_each(use_names, 60, 3);
}

static void test_faults_of_cgroups(void **state)
{
	/* the depth of the mount point in the whole tree does not matter here (a file of two calls); `cpu` as above */
	fail_each(use_cgroup, 15, 3);
	fail_each(use_cgroup_by_id, 15, 2);
}

static void test_faults_of_uncore(void **state)
{
	fail_each(use_uncore, 60, 15); /* files of other PMUs in a search for a PMU's number; units of values, which are left out */
}

static void test_faults_of_rings(void **state)
{
	fail_each(use_rings, 30, 1); /* `cpu` */
}

static int use_kinds(void)
{
	return use_set(&(struct sonde_counter_options){ .size = sizeof(struct sonde_counter_options),
							.names = "{cycles,instructions},cpu_atom/cycles/" });
}

static void test_faults_of_kinds(void **state)
{
	fake_kinds(2);
	fail_each(use_kinds, 40, 1); /* `cpu`, which does not exist here anyway */
	fake_kinds(0);
}

static void test_faults_of_functions(void **state)
{
	fail_each(use_function, 20, 1); /* `cpu` */
}

static void test_faults_of_lists(void **state)
{
	fail_each(use_lists, 80, 0);
}

static int use_subsystems(void)
{
	return use_one_list(SONDE_LIST_SUBSYSTEMS, NULL);
}

static void test_faults_of_a_mount(void **state)
{
	char here[512], there[512];

	fake_path("/sys/kernel/tracing", here, sizeof(here));
	fake_path("/sys/kernel/away", there, sizeof(there));
	assert_int_equal(rename(here, there), 0);
	fake_mount_errno = 0;
	fail_each(use_subsystems, 5, 2);
	assert_int_equal(rename(there, here), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, fake_reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_overflows),	      TEST(test_lost_in_records),     TEST(test_lost_in_groups),  TEST(test_overflows_cut),
		TEST(test_wait_for_the_dead), TEST(test_wait_for_the_living), TEST(test_faults_of_names), TEST(test_faults_of_cgroups),
		TEST(test_faults_of_uncore),  TEST(test_faults_of_rings),     TEST(test_faults_of_kinds), TEST(test_faults_of_functions),
		TEST(test_faults_of_lists),   TEST(test_faults_of_a_mount),
	};

	return cmocka_run_group_tests(tests, fake_machine, fake_machine_gone);
}
