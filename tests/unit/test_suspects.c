// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "memory/suspects.h"

#define LOOK_NS (5 * NS_PER_S)
#define LOOKS 24

/* Bytes that a stack holds at each look. */
static uint64_t leak(uint32_t look) { return 1000 + look * 500; }
static uint64_t busy(uint32_t look) { return look % 2 ? 90000 : 10000; }
static uint64_t filling_cache(uint32_t look) { return look < 6 ? 1000 + look * 4000 : 21000; }
static uint64_t slow_leak(uint32_t look) { return 1000 + (look + 1) / 2 * 700; }
static uint64_t noisy_leak(uint32_t look) { return 100000 + look * 3000 - (look % 6 == 5 ? 4000 : 0); }
static uint64_t steady(uint32_t look) { return 4096 + 0 * look; }
static uint64_t late_leak(uint32_t look) { return look < LOOKS - 5 ? 0 : (look - (LOOKS - 6)) * 64; }

static const struct {
	uint64_t (*bytes)(uint32_t look);
	uint64_t growth; /* bytes per hour at the last look; 0: no suspect */
} stacks[] = {
	{ leak, 500 * 720 },                    /* 500 bytes in 5 s */
	{ busy, 0 },
	{ filling_cache, 0 },
	{ slow_leak, 12 * 700 * 720 / (LOOKS - 1) },
	{ noisy_leak, (23 * 3000 - 4000) * 720 / (LOOKS - 1) },
	{ steady, 0 },
	{ late_leak, 64 * 720 },                /* since it was first seen */
};
#define NR (sizeof(stacks) / sizeof(stacks[0]))

static void look_at(struct suspects *suspects, uint32_t look, uint64_t *ret_growths)
{
	struct outstanding *outstanding = outstanding_new(false);

	assert_non_null(outstanding);
	for (uint32_t i = 0; i < NR; i++) {
		const struct outstanding_block block = {
			.ids.tgid = i + 1,
			.bytes = stacks[i].bytes(look),
			.weight = 1,
			.comm = "test",
			.is_old = look % 3, /* any age counts */
		};

		if (block.bytes)
			assert_int_equal(outstanding_add(outstanding, &block), 0);
	}
	assert_int_equal(suspects_look(suspects, outstanding, (look + 1) * LOOK_NS), 0);
	for (uint32_t i = 0; i < outstanding_nr(outstanding); i++)
		ret_growths[outstanding_at(outstanding, i)->key.ids.tgid - 1] = outstanding_at(outstanding, i)->growth;
	outstanding_free(outstanding);
}

static void tells_leaks_from_the_rest(void **state)
{
	struct suspects *suspects = suspects_new();
	uint64_t growths[NR] = { 0 };

	assert_non_null(suspects);
	for (uint32_t look = 0; look < LOOKS; look++) {
		look_at(suspects, look, growths);
		if (look < SUSPECT_MIN_GROWTHS)
			assert_int_equal(growths[0], 0); /* too early to say */
	}
	for (uint32_t i = 0; i < NR; i++) {
		if (growths[i] != stacks[i].growth)
			fail_msg("stack %u: %ju bytes per hour, want %ju", i, (uintmax_t)growths[i], (uintmax_t)stacks[i].growth);
	}
	suspects_free(suspects);
}

/* A stack without a block left is one that holds 0 bytes. */
static void falls_to_nothing(void **state)
{
	struct suspects *suspects = suspects_new();
	struct outstanding *outstanding;
	uint64_t growth = 1;

	for (uint32_t look = 0; look < 12; look++) {
		const struct outstanding_block block = { .ids.tgid = 1, .bytes = 100 + look, .weight = 1, .comm = "test", .is_old = true };

		outstanding = outstanding_new(false);
		if (look % 3)
			assert_int_equal(outstanding_add(outstanding, &block), 0);
		assert_int_equal(suspects_look(suspects, outstanding, (look + 1) * LOOK_NS), 0);
		if (outstanding_nr(outstanding))
			growth = outstanding_at(outstanding, 0)->growth;
		outstanding_free(outstanding);
	}
	assert_int_equal(growth, 0);
	suspects_free(suspects);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_leaks_from_the_rest),
		cmocka_unit_test(falls_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
