// SPDX-License-Identifier: Apache-2.0
/* Chains of inlined functions: stacks of few locations, which are inlined into different callers, with marks, interpreters' frames and
 * wakers between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "frames/inlines.h"

#define MAX_FRAMES 24
#define NR_STACKS  3000

static uint32_t random_below(uint32_t below)
{
	return (uint32_t)rand() % below;
}

static uint32_t add_location(struct profile *profile, const char *name, uint64_t pc, uint32_t kind, uint32_t is_inlined)
{
	struct profile_function function = { .name = profile_string(profile, name) };
	struct profile_location location = { .pc = pc, .mapping = PROFILE_NONE, .kind = kind, .is_inlined = is_inlined };

	location.function = profile_function(profile, &function);
	return profile_location(profile, &location);
}

/* Returns one of few functions at one of few addresses, so that equal ones are frequent. */
static uint32_t any_location(struct profile *profile)
{
	static const char *const names[] = { "push", "put", "pull" };
	uint32_t dice = random_below(12);

	if (dice == 0)
		return add_location(profile, "[frames left out]", 0, FRAME_MARK, 0);
	if (dice == 1)
		return add_location(profile, "find", 0, FRAME_PYTHON, 0);
	return add_location(profile, names[random_below(3)], 0x1000 + random_below(2), FRAME_NATIVE, random_below(2));
}

static uint32_t any_stack(struct profile *profile)
{
	uint32_t locations[MAX_FRAMES], nr = 1 + random_below(MAX_FRAMES - 1), waker = random_below(4) ? 0 : random_below(nr);

	for (uint32_t i = 0; i < nr; i++)
		locations[i] = waker && i == waker ? add_location(profile, PROFILE_WAKER, 0, FRAME_MARK, 0) : any_location(profile);
	return profile_stack(profile, locations, nr);
}

/* The pprof location that begins at the i-th frame of the stack has exactly these frames, each inlined into the next. Returns their number.
 */
static uint32_t check_chain(const struct profile *profile, const struct inlines *inlines, uint32_t chain, const uint32_t *locations,
			    uint32_t nr)
{
	uint32_t length = 0;

	assert_int_not_equal(inlines->ids[chain], 0);
	for (; chain != PROFILE_NONE; chain = inlines_outer(inlines, chain), length++) {
		const struct profile_location *at = profile_location_at(profile, locations[length]);

		assert_true(length < nr);
		assert_int_equal(inlines_location(inlines, chain), locations[length]);
		assert_int_equal(at->pc, profile_location_at(profile, locations[0])->pc);
		assert_int_equal(at->kind, profile_location_at(profile, locations[0])->kind);
		assert_true(!length || profile_location_at(profile, locations[length - 1])->is_inlined);
	}
	return length;
}

static void every_stack_comes_back(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	CLEANUP(inlines_done) struct inlines inlines = { 0 };
	uint32_t nr_long = 0, nr_of_wakers = 0;

	srand(1);
	for (uint32_t i = 0; i < NR_STACKS; i++)
		any_stack(profile);
	assert_int_equal(inlines_find(profile, &inlines), 0);
	for (uint32_t stack = 0; stack < profile_nr_stacks(profile); stack++) {
		uint32_t nr, nr_chains, nr_waker = profile_nr_of_waker(profile, stack), next = 0;
		const uint32_t *locations = profile_stack_at(profile, stack, &nr),
			       *chains = inlines_of_stack(&inlines, profile, stack, &nr_chains);

		assert_int_equal(nr_chains, nr);
		for (uint32_t i = 0; i < nr; i++) {
			assert_int_equal(inlines_begins(&inlines, chains, i), i == next);
			if (i != next)
				continue;
			next += check_chain(profile, &inlines, chains[i], &locations[i], nr - i);
			assert_true(i >= nr_waker || next == i + 1);
			nr_long += next > i + 1;
			nr_of_wakers += i < nr_waker;
		}
		assert_int_equal(next, nr);
	}
	assert_true(nr_long > NR_STACKS && nr_of_wakers > NR_STACKS);
}

/* Ids start at 1 and have no gaps: in OTLP the index in a table is the id. */
static void ids_have_no_gaps(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	CLEANUP(inlines_done) struct inlines inlines = { 0 };
	uint32_t last = 0, nr_unused = 0;

	srand(2);
	for (uint32_t i = 0; i < 40; i++)
		any_stack(profile);
	assert_int_equal(inlines_find(profile, &inlines), 0);
	for (uint32_t chain = 0; chain < inlines_nr_chains(&inlines); chain++) {
		if (inlines.ids[chain])
			assert_int_equal(inlines.ids[chain], ++last);
		else
			nr_unused++;
	}
	assert_true(last > 10 && nr_unused);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_stack_comes_back), cmocka_unit_test(ids_have_no_gaps) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
