// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "show/histogram_text.h"
#include "model/profile.h"

/* Each value is within its slot's range, and the ranges are contiguous. */
static void slots_hold_their_values(void **state)
{
	uint64_t values[3 * 64 + 1], low, high, before = 0;
	uint32_t nr = 0;

	values[nr++] = 0;
	for (int bit = 0; bit < 64; bit++) {
		values[nr++] = (1ULL << bit) - 1;
		values[nr++] = 1ULL << bit;
		values[nr++] = (1ULL << bit) + (1ULL << bit) / 2;
	}
	for (int scale = 0; scale < HISTOGRAM_SCALE_COUNT; scale++) {
		before = 0;
		for (uint32_t i = 0; i < nr; i++) {
			uint32_t slot = histogram_slot((enum histogram_scale)scale, values[i]);

			assert_true(slot < HISTOGRAM_SLOTS);
			histogram_bounds((enum histogram_scale)scale, slot, &low, &high);
			assert_true(values[i] >= low);
			assert_true(values[i] < high || slot == HISTOGRAM_SLOTS - 1);
		}
		for (uint32_t slot = 0; slot < HISTOGRAM_SLOTS; slot++) {
			histogram_bounds((enum histogram_scale)scale, slot, &low, &high);
			assert_int_equal(low, before);
			assert_true(high > low);
			before = high;
		}
	}
	assert_int_equal(histogram_slot(HISTOGRAM_LOG2, 0), 0);
	assert_int_equal(histogram_slot(HISTOGRAM_LOG2, 1), 0);
	assert_int_equal(histogram_slot(HISTOGRAM_LOG2, 2), 1);
	assert_int_equal(histogram_slot(HISTOGRAM_LOG2, 8192), 13);
	assert_int_equal(histogram_slot(HISTOGRAM_LOG2, 8191), 12);
	assert_int_equal(histogram_slot(HISTOGRAM_LINEAR, 7), 7);
	assert_int_equal(before, UINT64_MAX);
}

static void counts_and_sums_stay_at_the_limit(void **state)
{
	struct histogram a = { 0 }, b = { 0 };

	histogram_add(&a, 3, 2);
	histogram_add(&b, 1000, 4);
	histogram_merge(&a, &b);
	assert_int_equal(histogram_count(&a), 6);
	assert_int_equal(a.sum, 4006);
	assert_int_equal(histogram_first(&a), 1);
	assert_int_equal(histogram_last(&a), 9);
	histogram_add(&a, UINT64_MAX, UINT64_MAX);
	assert_int_equal(a.sum, UINT64_MAX);
	assert_int_equal(histogram_count(&a), UINT64_MAX);
	histogram_merge(&a, &a);
	assert_int_equal(a.slots[HISTOGRAM_SLOTS - 1], UINT64_MAX);
	assert_int_equal(a.slots[1], 4);
	assert_int_equal(histogram_first(&(struct histogram){ 0 }), HISTOGRAM_SLOTS);
	assert_int_equal(histogram_last(&(struct histogram){ 0 }), HISTOGRAM_SLOTS);
}

static void rows_are_as_bpftrace_prints_them(void **state)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(4096);
	struct histogram histogram = { 0 };

	histogram_print(&buffer, &histogram, "");
	assert_int_equal(buffer.size, 0);
	histogram_add(&histogram, 0, 1);
	histogram_add(&histogram, 3, 26);
	histogram_add(&histogram, 10, 52);
	histogram_print(&buffer, &histogram, "  ");
	assert_string_equal(buffer.data, "  [0, 2)                  1 |@                                                   |\n"
					 "  [2, 4)                 26 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |\n"
					 "  [4, 8)                  0 |                                                    |\n"
					 "  [8, 16)                52 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n");
}

static void bounds_are_short(void **state)
{
	static const struct {
		enum histogram_scale scale;
		uint64_t value;
		const char *text;
	} cases[] = { { HISTOGRAM_LOG2, 0, "[0, 2)" },
		      { HISTOGRAM_LOG2, 2, "[2, 4)" },
		      { HISTOGRAM_LOG2, 600, "[512, 1K)" },
		      { HISTOGRAM_LOG2, 8192, "[8K, 16K)" },
		      { HISTOGRAM_LOG2, 1 << 19, "[512K, 1M)" },
		      { HISTOGRAM_LOG2, 1ULL << 30, "[1G, 2G)" },
		      { HISTOGRAM_LOG2, 1ULL << 40, "[1T, 2T)" },
		      { HISTOGRAM_LOG2, 1ULL << 50, "[1P, 2P)" },
		      { HISTOGRAM_LOG2, 1ULL << 61, "[2E, 4E)" },
		      { HISTOGRAM_LOG2, 1ULL << 62, "[4E, 8E)" },
		      { HISTOGRAM_LOG2, UINT64_MAX, "[8E, ...)" },
		      { HISTOGRAM_LINEAR, 3, "[3, 4)" },
		      { HISTOGRAM_LINEAR, 700, "[63, ...)" } };
	char room[HISTOGRAM_RANGE_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		histogram_range(room, cases[i].scale, histogram_slot(cases[i].scale, cases[i].value));
		assert_string_equal(room, cases[i].text);
	}
}

static void headings_say_what_is_known(void **state)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(4096);
	struct histogram histogram = { 0 };

	histogram_heading(&buffer, "run queue length", "", "", &histogram);
	histogram_add(&histogram, 5, 3);
	histogram_add(&histogram, 6, 1);
	histogram_heading(&buffer, "run queue\033 latency", "pid 185", "us", &histogram);
	assert_string_equal(buffer.data, "run queue length: 0 in all\nrun queue? latency, pid 185 (us): 4 in all, average 5.2\n");
}

static void equal_ones_of_a_profile_are_merged(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	struct profile_histogram one = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE };

	one.name = profile_string(profile, "run queue latency");
	one.unit = profile_string(profile, "us");
	histogram_add(&one.histogram, 3, 1);
	assert_int_equal(profile_histogram(profile, &one), 0);
	one.key = profile_string(profile, "pid 1");
	assert_int_equal(profile_histogram(profile, &one), 1);
	one.key = PROFILE_EMPTY_STRING;
	assert_int_equal(profile_histogram(profile, &one), 0);
	one.histogram.scale = HISTOGRAM_LINEAR;
	assert_int_equal(profile_histogram(profile, &one), 2);
	one.tid = 7;
	assert_int_equal(profile_histogram(profile, &one), 3);
	assert_int_equal(profile_nr_histograms(profile), 4);
	assert_int_equal(profile_histogram_at(profile, 0)->histogram.slots[1], 2);
	assert_int_equal(profile_histogram_at(profile, 1)->histogram.slots[1], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_hold_their_values),
		cmocka_unit_test(counts_and_sums_stay_at_the_limit),
		cmocka_unit_test(rows_are_as_bpftrace_prints_them),
		cmocka_unit_test(bounds_are_short),
		cmocka_unit_test(headings_say_what_is_known),
		cmocka_unit_test(equal_ones_of_a_profile_are_merged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
