// SPDX-License-Identifier: Apache-2.0
/* Running time shared among samples: each nanosecond once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "offcpu/wall_table.h"

#define MAX_SHARES 4096

static struct wall_table *table;

static struct {
	struct wall_thread thread;
	uint32_t sample;
	uint64_t running_ns;
} shares[MAX_SHARES];
static uint32_t nr_shares;

static int set_up(void **state)
{
	nr_shares = 0;
	table = wall_table_new();
	return !table;
}

static int tear_down(void **state)
{
	wall_table_free(table);
	return 0;
}

static struct wall_thread thread_of(uint32_t tgid, uint32_t tid, const char *comm)
{
	struct wall_thread thread = { .tgid = tgid, .tid = tid };

	snprintf(thread.comm, sizeof(thread.comm), "%s", comm);
	return thread;
}

static void ran(uint32_t tgid, uint32_t tid, const char *comm, uint64_t running_ns)
{
	const struct wall_thread thread = thread_of(tgid, tid, comm);

	assert_int_equal(wall_table_ran(table, &thread, running_ns), 0);
}

static void sampled(uint32_t tgid, uint32_t tid, const char *comm, uint32_t sample, uint64_t count)
{
	const struct wall_thread thread = thread_of(tgid, tid, comm);

	assert_int_equal(wall_table_sampled(table, &thread, sample, count), 0);
}

static int take(void *arg, const struct wall_thread *thread, uint32_t sample, uint64_t running_ns)
{
	assert_ptr_equal(arg, shares);
	assert_true(nr_shares < MAX_SHARES);
	assert_true(running_ns > 0);
	shares[nr_shares].thread = *thread;
	shares[nr_shares].sample = sample;
	shares[nr_shares++].running_ns = running_ns;
	return 0;
}

static void check_share(uint32_t number, uint32_t tid, const char *comm, uint32_t sample, uint64_t running_ns)
{
	assert_true(number < nr_shares);
	assert_int_equal(shares[number].thread.tid, tid);
	assert_string_equal(shares[number].thread.comm, comm);
	assert_int_equal(shares[number].sample, sample);
	assert_int_equal(shares[number].running_ns, running_ns);
}

static void test_in_proportion(void **state)
{
	ran(1, 2, "a", 400);
	sampled(1, 2, "a", 7, 1);
	sampled(1, 2, "a", 8, 3);
	ran(1, 2, "a", 600);
	ran(1, 3, "a", 50); /* another thread of that name, without samples */
	sampled(1, 4, "a", 9, 5); /* and one that did not run */
	assert_int_equal(wall_table_shares(table, take, shares), 0);
	assert_int_equal(nr_shares, 3);
	check_share(0, 2, "a", 7, 250);
	check_share(1, 2, "a", 8, 750);
	check_share(2, 3, "a", WALL_NOT_SAMPLED, 50);
}

static void test_nothing_is_lost_in_division(void **state)
{
	ran(1, 2, "a", 100);
	for (uint32_t i = 0; i < 3; i++)
		sampled(1, 2, "a", i, 1);
	ran(1, 3, "a", 1); /* fewer ns than samples */
	sampled(1, 3, "a", 5, 1);
	sampled(1, 3, "a", 6, 1);
	ran(1, 4, "a", UINT64_MAX / 2); /* 292 years, by many samples */
	sampled(1, 4, "a", 7, UINT64_MAX / 4);
	sampled(1, 4, "a", 8, UINT64_MAX / 4);
	assert_int_equal(wall_table_shares(table, take, shares), 0);
	check_share(0, 2, "a", 0, 33);
	check_share(1, 2, "a", 1, 33);
	check_share(2, 2, "a", 2, 34);
	check_share(3, 3, "a", 6, 1);
	check_share(4, 4, "a", 7, UINT64_MAX / 4);
	check_share(5, 4, "a", 8, UINT64_MAX / 2 - UINT64_MAX / 4);
	assert_int_equal(nr_shares, 6);
}

/* Samples stay with their name, unless the thread was never off the CPU under that name. */
static void test_renamed(void **state)
{
	sampled(1, 2, "sh", 1, 1);
	ran(1, 2, "sh", 10);
	sampled(1, 2, "old", 2, 1);
	ran(1, 2, "new", 1000);
	sampled(1, 2, "new", 3, 3);
	ran(9, 2, "new", 5000); /* another process's */
	assert_int_equal(wall_table_shares(table, take, shares), 0);
	assert_int_equal(nr_shares, 4);
	check_share(0, 2, "sh", 1, 10);
	check_share(1, 2, "new", 3, 750);
	check_share(2, 2, "new", 2, 250);
	check_share(3, 2, "new", WALL_NOT_SAMPLED, 5000);
}

static uint32_t seed = 1;

static uint32_t any(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

/* Each thread by itself, with random input. */
static void test_random(void **state)
{
	enum { NR_TIDS = 12 };
	static const char *const names[] = { "a", "b", "c" };

	for (int round = 0; round < 300; round++) {
		uint64_t want_ns[NR_TIDS] = { 0 }, got_ns[NR_TIDS] = { 0 }, last_sample[NR_TIDS] = { 0 };

		tear_down(NULL);
		set_up(NULL);
		for (uint32_t i = 0, nr = any(200); i < nr; i++) {
			uint32_t tid = any(NR_TIDS);
			uint64_t running_ns = any(2) ? any(7) : (uint64_t)any(1u << 24) * any(1u << 24);

			if (any(2)) {
				ran(tid / 4, tid, names[any(3)], running_ns);
				want_ns[tid] += running_ns;
			} else {
				sampled(tid / 4, tid, names[any(3)], i, 1 + any(50));
				last_sample[tid] = i + 1;
			}
		}
		assert_int_equal(wall_table_shares(table, take, shares), 0);
		for (uint32_t i = 0; i < nr_shares; i++) {
			got_ns[shares[i].thread.tid] += shares[i].running_ns;
			assert_true(shares[i].sample == WALL_NOT_SAMPLED || shares[i].sample < last_sample[shares[i].thread.tid]);
		}
		assert_memory_equal(got_ns, want_ns, sizeof(want_ns));
	}
}

static int refuse(void *arg, const struct wall_thread *thread, uint32_t sample, uint64_t running_ns)
{
	(*(int *)arg)++;
	return -EIO;
}

static void test_ends_when_told(void **state)
{
	int nr = 0;

	ran(1, 2, "a", 10);
	sampled(1, 2, "a", 1, 1);
	sampled(1, 2, "a", 2, 1);
	ran(1, 3, "a", 10);
	assert_int_equal(wall_table_shares(table, refuse, &nr), -EIO);
	assert_int_equal(nr, 1);
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = { test(test_in_proportion), test(test_nothing_is_lost_in_division), test(test_renamed),
					    test(test_random), test(test_ends_when_told) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
