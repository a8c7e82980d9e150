// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/agent_rate.h"

/* Of an agent that costs so much for each Hertz, besides what it costs anyway. Returns the rate after so many windows. */
static uint64_t run(struct agent_rate *rate, double fixed, double for_each_hz, int nr_windows)
{
	for (int i = 0; i < nr_windows; i++)
		agent_rate_look(rate, fixed + for_each_hz * (double)(rate->hz ? rate->hz : rate->wanted_hz));
	return rate->hz;
}

static void it_is_halved_until_it_fits(void **state)
{
	struct agent_rate rate = { .max_percent = 2, .wanted_hz = 99 };

	assert_int_equal(run(&rate, 0.1, 0.1, 1), 49);
	assert_int_equal(run(&rate, 0.1, 0.1, 1), 49); /* its cost is that of both rates */
	assert_int_equal(run(&rate, 0.1, 0.1, 100), 12);
}

static void it_rises_to_what_was_wanted(void **state)
{
	struct agent_rate rate = { .max_percent = 2, .wanted_hz = 99 };

	run(&rate, 0.1, 0.1, 100);
	for (int i = 0; i < 100; i++) {
		assert_in_range(rate.hz, 12, 99);
		run(&rate, 0.1, 0.001, 1);
	}
	assert_int_equal(rate.hz, 99);
}

/* Twice the rate would be too much: it stays. */
static void it_does_not_swing(void **state)
{
	struct agent_rate rate = { .max_percent = 2, .wanted_hz = 1000 };
	int nr_changes = 0;

	run(&rate, 0, 0.019, 100);
	for (int i = 0; i < 1000; i++)
		nr_changes += agent_rate_look(&rate, 0.019 * (double)rate.hz);
	assert_int_equal(nr_changes, 0);
	assert_int_equal(rate.hz, 62);
}

static void the_end_is_told_once(void **state)
{
	struct agent_rate rate = { .max_percent = 1, .wanted_hz = 3 };
	int nr_told = 0;

	for (int i = 0; i < 100; i++)
		nr_told += agent_rate_look(&rate, 5) && rate.is_at_end;
	assert_int_equal(nr_told, 1);
	assert_int_equal(rate.hz, 1);
}

static void without_a_limit_nothing_changes(void **state)
{
	struct agent_rate rate = { .wanted_hz = 99 };

	for (int i = 0; i < 10; i++)
		assert_false(agent_rate_look(&rate, 100));
	assert_int_equal(rate.hz, 0);
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
