// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/overhead.h"

#define S 1000000000ull

static void test_raises(void **state)
{
	struct overhead overhead = { .max_percent = 10, .nr_cpus = 2 };

	assert_false(overhead_look(&overhead, S / 2, S)); /* too early to decide */
	assert_false(overhead_look(&overhead, S, S / 5)); /* 10 % of two CPUs */
	assert_true(overhead_look(&overhead, 2 * S, S / 5 + S / 4));
	assert_int_equal(overhead.min_ns, OVERHEAD_FIRST_NS);
	assert_true(overhead.worst_percent > 12.4 && overhead.worst_percent < 12.6);
	assert_false(overhead_look(&overhead, 3 * S, S / 5 + S / 4)); /* over two seconds */
	assert_true(overhead_look(&overhead, 5 * S, S)); /* of two seconds */
	assert_int_equal(overhead.min_ns, OVERHEAD_FIRST_NS * OVERHEAD_RAISE);
	assert_int_equal(overhead.nr_raised, 2);
	assert_true(overhead_look(&overhead, 6 * S, S + S / 4)); /* less than before, but still too much */
	assert_true(overhead.worst_percent > 13.7);
}

static void test_begins_with_the_minimum(void **state)
{
	struct overhead overhead = { .max_percent = 1, .nr_cpus = 1, .min_ns = 7000 };

	assert_true(overhead_look(&overhead, S, S));
	assert_int_equal(overhead.min_ns, 7000 * OVERHEAD_RAISE);
}

static void test_ends(void **state)
{
	struct overhead overhead = { .max_percent = 1, .nr_cpus = 1, .min_ns = OVERHEAD_MAX_MIN_NS - 1 };

	assert_true(overhead_look(&overhead, S, S));
	assert_int_equal(overhead.min_ns, OVERHEAD_MAX_MIN_NS);
	assert_false(overhead.is_at_end);
	assert_false(overhead_look(&overhead, 2 * S, 2 * S));
	assert_true(overhead.is_at_end);
	assert_false(overhead_look(&overhead, 3 * S, 2 * S)); /* the overhead is lower now */
	assert_true(overhead.is_at_end); /* the flag stays set */
}

static void test_without_a_limit(void **state)
{
	struct overhead overhead = { .nr_cpus = 1 };

	assert_false(overhead_look(&overhead, S, S));
	assert_int_equal(overhead.min_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raises),
		cmocka_unit_test(test_begins_with_the_minimum),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_without_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
