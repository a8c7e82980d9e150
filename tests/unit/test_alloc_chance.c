// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "abi/alloc_chance.h"

/* The chance is that of a Poisson process. */
static void is_exponential(void **state)
{
	for (uint64_t mean = 1; mean <= SONDE_ALLOC_MAX_SAMPLE_BYTES; mean = mean * 3 + 1) {
		for (uint64_t bytes = 1; bytes < mean * 40; bytes = bytes * 5 / 4 + 1) {
			double chance = (double)sonde_alloc_chance(bytes, mean) / (double)SONDE_ALLOC_CERTAIN;
			double want = -expm1(-(double)bytes / (double)mean);

			if (fabs(chance - want) > 1e-4 * want + 64.0 / (double)SONDE_ALLOC_CERTAIN)
				fail_msg("%ju of %ju bytes: %.12g, want %.12g", (uintmax_t)bytes, (uintmax_t)mean, chance, want);
		}
	}
}

static void ends(void **state)
{
	assert_int_equal(sonde_alloc_chance(0, 512), sonde_alloc_chance(1, 512));
	assert_int_equal(sonde_alloc_chance(UINT64_MAX, 512), SONDE_ALLOC_CERTAIN);
	assert_int_equal(sonde_alloc_chance(UINT64_MAX, SONDE_ALLOC_MAX_SAMPLE_BYTES), SONDE_ALLOC_CERTAIN);
	assert_int_equal(sonde_alloc_weight(SONDE_ALLOC_CERTAIN, 0), 1);
	assert_int_equal(sonde_alloc_weight(SONDE_ALLOC_CERTAIN, UINT32_MAX), 1);
	assert_true(sonde_alloc_chance(1, SONDE_ALLOC_MAX_SAMPLE_BYTES) > 0);
}

/* Of all values of the random number, those that round up are as many as the fraction says: the mean is 1 / chance. */
static void weight_is_exact_in_the_mean(void **state)
{
	for (uint64_t chance = 3; chance <= SONDE_ALLOC_CERTAIN; chance = chance * 7 / 4 + 1) {
		uint64_t low = 0, high = 1ULL << 32; /* the weight falls once, from one whole number to the next */
		double mean;

		while (low < high) {
			uint64_t at = low + (high - low) / 2;

			if (sonde_alloc_weight(chance, (uint32_t)at) == sonde_alloc_weight(chance, UINT32_MAX))
				high = at;
			else
				low = at + 1;
		}
		mean = (double)sonde_alloc_weight(chance, UINT32_MAX) + (double)low / 0x1p32;
		if (fabs(mean * (double)chance / (double)SONDE_ALLOC_CERTAIN - 1) > 1e-8)
			fail_msg("chance %ju: %.12g in the mean", (uintmax_t)chance, mean);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_exponential),
		cmocka_unit_test(ends),
		cmocka_unit_test(weight_is_exact_in_the_mean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
