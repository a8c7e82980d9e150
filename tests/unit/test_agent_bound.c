// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/agent_bound.h"

/* Of an agent that costs `for_each` for each unit of what is bounded, up to `most` units, besides what it costs anyway. Returns what it is
 * after so many windows; *ret_nr_told: how often there was something to say. */
static uint64_t run(struct agent_bound *bound, double fixed, double for_each, uint64_t most, int nr_windows, int *ret_nr_told)
{
	*ret_nr_told = 0;
	for (int i = 0; i < nr_windows; i++) {
		double cost = fixed + for_each * (double)(bound->now < most ? bound->now : most);

		*ret_nr_told += agent_bound_look(bound, cost, cost + for_each * (double)bound->now);
	}
	return bound->now;
}

static struct agent_bound bound_of(double limit, uint64_t least, uint64_t wanted)
{
	return (struct agent_bound){ .limit = limit, .least = least, .wanted = wanted, .now = wanted };
}

static void it_is_halved_until_it_fits(void **state)
{
	struct agent_bound rate = bound_of(2, 1, 99), memory = bound_of(100, 1, 64);
	int nr_told;

	assert_int_equal(run(&rate, 0.1, 0.1, UINT64_MAX, 1, &nr_told), 49);
	assert_int_equal(run(&rate, 0.1, 0.1, UINT64_MAX, 1, &nr_told), 49); /* its cost is that of both */
	assert_int_equal(run(&rate, 0.1, 0.1, UINT64_MAX, 100, &nr_told), 12);
	assert_int_equal(run(&memory, 90, 1, 60, 100, &nr_told), 8);
}

static void it_rises_to_what_was_wanted(void **state)
{
	struct agent_bound rate = bound_of(2, 1, 99);
	int nr_told;

	run(&rate, 0.1, 0.1, UINT64_MAX, 100, &nr_told);
	for (int i = 0; i < 100; i++) {
		assert_in_range(rate.now, 12, 99);
		run(&rate, 0.1, 0.001, UINT64_MAX, 1, &nr_told);
	}
	assert_int_equal(rate.now, 99);
}

/* Twice as much would be too much: it stays. */
static void it_does_not_swing(void **state)
{
	struct agent_bound rate = bound_of(2, 1, 1000), memory = bound_of(100, 1, 64);
	int nr_told;

	run(&rate, 0, 0.019, UINT64_MAX, 100, &nr_told);
	assert_int_equal(run(&rate, 0, 0.019, UINT64_MAX, 1000, &nr_told), 62);
	assert_int_equal(nr_told, 0);
	run(&memory, 70, 1, 60, 100, &nr_told);
	run(&memory, 70, 1, 60, 1000, &nr_told);
	assert_int_equal(nr_told, 0);
}

static void the_end_is_told_once(void **state)
{
	struct agent_bound bound = bound_of(10, 5, 64);
	int nr_told;

	assert_int_equal(run(&bound, 50, 1, 60, 100, &nr_told), 5);
	assert_int_equal(nr_told, 5); /* 32, 16, 8, 5, and that this is the least */
	assert_true(bound.is_at_end);
}

static void without_a_limit_nothing_changes(void **state)
{
	struct agent_bound bound = bound_of(0, 1, 99);
	int nr_told;

	assert_int_equal(run(&bound, 100, 1, 100, 10, &nr_told), 99);
	assert_int_equal(nr_told, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_halved_until_it_fits),	   cmocka_unit_test(it_rises_to_what_was_wanted),
		cmocka_unit_test(it_does_not_swing),		   cmocka_unit_test(the_end_is_told_once),
		cmocka_unit_test(without_a_limit_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
