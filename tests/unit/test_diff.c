// SPDX-License-Identifier: Apache-2.0
/* The difference of two profiles, against results worked out by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "show/diff.h"
#include "output/export.h"
#include "small_profile.h"

static struct profile *made(void)
{
	struct profile *profile = profile_new();

	assert_non_null(profile);
	return profile;
}

static struct diff difference(const struct profile *before, const struct profile *after)
{
	struct diag diag = { 0 };
	struct diff diff;

	if (diff_make(before, after, NULL, &diag, &diff))
		fail_msg("%s", diag.text);
	return diff;
}

static const struct diff_row *row_of(const struct diff *diff, const char *name)
{
	for (uint32_t i = 0; i < diff->nr_rows; i++) {
		if (!strcmp(profile_string_text(diff->profile, diff->rows[i].name), name))
			return &diff->rows[i];
	}
	fail_msg("no row of %s", name);
	return NULL;
}

static void check_sums(const struct profile *profile, int64_t want)
{
	int64_t sums[2] = { 0 };

	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		sums[0] += profile_sample_at(profile, i)->values[0];
		sums[1] += profile_sample_at(profile, i)->values[1];
	}
	assert_int_equal(sums[0], want);
	assert_int_equal(sums[1], want);
}

/* Half as many samples after: an equal share is an equal value. Processes with other pids are the same. */
static void test_known(void **state)
{
	CLEANUP(profile_freep) struct profile *before = made();
	CLEANUP(profile_freep) struct profile *after = made();
	CLEANUP(diff_done) struct diff diff = { 0 };
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(1 << 20);
	const struct export_options options = { 0 };
	const struct show_options show = { 0 };

	small_add(before, "app", 1, "a main", NULL, 600);
	small_add(before, "app", 1, "b main", NULL, 390);
	small_add(before, "app", 1, "gone main", NULL, 10);
	small_add(after, "app", 2, "a main", NULL, 200);
	small_add(after, "app", 3, "a main", NULL, 100);
	small_add(after, "app", 2, "b main", "new", 200);
	diff = difference(before, after);
	assert_true(diff_is(diff.profile));
	assert_int_equal(diff.all[0], 1000);
	assert_int_equal(diff.all[1], 500);
	check_sums(diff.profile, 1000);
	assert_int_equal(profile_nr_samples(diff.profile), 4); /* a, b, gone, new: regardless of the pid */
	assert_int_equal(row_of(&diff, "a")->self[0], 600);
	assert_int_equal(row_of(&diff, "a")->self[1], 300);
	assert_int_equal(row_of(&diff, "main")->total[1], 500);
	assert_string_equal(profile_string_text(diff.profile, diff.rows[0].name), "new"); /* 40 points, because b lost 39 */
	assert_string_equal(profile_string_text(diff.profile, diff.rows[1].name), "b");
	assert_true(diff_is_noise(&diff, row_of(&diff, "a")->self));
	assert_false(diff_is_noise(&diff, row_of(&diff, "new")->self));
	assert_int_equal(export_write(diff.profile, EXPORT_FOLDED, &options, &buffer, NULL), 0);
	assert_non_null(strstr(buffer.data, "app;main;a 600 600\n"));
	assert_non_null(strstr(buffer.data, "app;main;b 390 0\n"));
	assert_non_null(strstr(buffer.data, "app;main;b;new 0 400\n"));
	assert_non_null(strstr(buffer.data, "app;main;gone 10 0\n"));
	buffer.size = 0;
	show_diff(&diff, &show, &buffer);
	assert_non_null(strstr(buffer.data, "before: 1000 of samples in 1000 samples\nafter:  500 of samples in 500 samples\n"));
	assert_non_null(strstr(buffer.data, "    0.00 %   40.00 %   +40.00      0.00 %   40.00 %   +40.00   new  kernel\n"));
	assert_non_null(strstr(buffer.data, "   60.00 %   60.00 %    +0.00     60.00 %   60.00 %    +0.00   a  app\n"));
}

/* Two standard deviations: 100 of 1000 and n of 1000 are within 2 * sqrt(100 + n) / 1000 up to n = 130. */
static void test_noise(void **state)
{
	for (int64_t nr = 110; nr <= 150; nr++) {
		CLEANUP(profile_freep) struct profile *before = made();
		CLEANUP(profile_freep) struct profile *after = made();
		CLEANUP(diff_done) struct diff diff = { 0 };

		small_add(before, "app", 1, "a", NULL, 100);
		small_add(before, "app", 1, "b", NULL, 900);
		small_add(after, "app", 1, "a", NULL, nr);
		small_add(after, "app", 1, "b", NULL, 1000 - nr);
		diff = difference(before, after);
		assert_int_equal(diff_is_noise(&diff, row_of(&diff, "a")->self), nr <= 130);
	}
}

static void add_histogram(struct profile *profile, const char *key, uint64_t value, uint64_t count)
{
	struct profile_histogram histogram = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE };

	histogram.name = profile_string(profile, "run queue latency");
	histogram.key = profile_string(profile, key);
	histogram.unit = profile_string(profile, "us");
	histogram_add(&histogram.histogram, value, count);
	assert_int_equal(profile_histogram(profile, &histogram) == PROFILE_NONE, 0);
}

static struct buffer shown(const struct profile *before, const struct profile *after)
{
	const struct show_options show = { 0 };
	struct buffer buffer = BUFFER_INIT(1 << 20);
	struct diff diff = difference(before, after);

	show_diff(&diff, &show, &buffer);
	diff_done(&diff);
	return buffer;
}

/* 990 of 20 us and 10 of 9 ms against 1000 of 20 us; and one group on each side that the other side lacks. */
static void test_histograms(void **state)
{
	CLEANUP(profile_freep) struct profile *before = made();
	CLEANUP(profile_freep) struct profile *after = made();
	CLEANUP(buffer_done) struct buffer one = { 0 };
	CLEANUP(buffer_done) struct buffer other = { 0 };
	CLEANUP(buffer_done) struct buffer with_samples = { 0 };
	CLEANUP(diff_done) struct diff diff = { 0 };
	struct diag diag = { 0 };

	add_histogram(before, "", 20, 980);
	assert_int_equal(diff_make(before, after, NULL, &diag, &diff), -ENODATA); /* neither has samples, one has no histograms */
	add_histogram(before, "", 9000, 20);
	add_histogram(before, "pid\n1", 1, 1);
	add_histogram(after, "", 20, 1000);
	add_histogram(after, "pid 2", 3, 1);
	one = shown(before, after);
	assert_string_equal(one.data,
			    "run queue latency\n"
			    "before: 1000 in all, average 199.6, half below 32 us, 99 % below 16K us, all below 16K us\n"
			    "after:  1000 in all, average 20.0, half below 32 us, 99 % below 32 us, all below 32 us\n"
			    "the tail is gone: 20 of 1000 (2.00 %) were not below 32 us before, none is after\n"
			    "us                 BEFORE                         AFTER\n"
			    "[16, 32)              980 |@@@@@@@@@@@@@@@@@@|     1000 |@@@@@@@@@@@@@@@@@@|\n"
			    "[32, 64)                0 |                  |        0 |                  |\n"
			    "[64, 128)               0 |                  |        0 |                  |\n"
			    "[128, 256)              0 |                  |        0 |                  |\n"
			    "[256, 512)              0 |                  |        0 |                  |\n"
			    "[512, 1K)               0 |                  |        0 |                  |\n"
			    "[1K, 2K)                0 |                  |        0 |                  |\n"
			    "[2K, 4K)                0 |                  |        0 |                  |\n"
			    "[4K, 8K)                0 |                  |        0 |                  |\n"
			    "[8K, 16K)              20 |                  |        0 |                  |\n"
			    "\nrun queue latency, pid?1: only before\n"
			    "before: 1 in all, average 1.0, half below 2 us, 99 % below 2 us, all below 2 us\n"
			    "[0, 2)                  1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n"
			    "\nrun queue latency, pid 2: only after\n"
			    "after:  1 in all, average 3.0, half below 4 us, 99 % below 4 us, all below 4 us\n"
			    "[2, 4)                  1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n");
	other = shown(after, before);
	assert_non_null(strstr(other.data, "the tail is longer: 20 of 1000 (2.00 %) are not below 32 us after, none was before\n"));
	small_add(before, "app", 1, "a", NULL, 1);
	small_add(after, "app", 1, "b", NULL, 1);
	with_samples = shown(before, after);
	assert_non_null(strstr(with_samples.data, "FUNCTION\n"));
	assert_non_null(strstr(with_samples.data, "\n\nrun queue latency\n"));
}

/* The longest values alone vary by chance: where the last hundredth begins counts, too. */
static void test_tails(void **state)
{
	static const struct { uint64_t before, after; const char *says;
	} cases[] = {
		/* how many of 1000 are at 9 ms */
		{ 0, 1, "the tail is longer: 1 of 1000 (0.10 %) are not below 32 us after, none was before\n" },
		{ 1, 0, "the tail is gone: 1 of 1000" },
		{ 500, 1, "the tail is thinner, but not gone\n" },
		{ 1, 500, "the tail is thicker, but not longer\n" },
		{ 10, 9, "the tail is as long as before\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(profile_freep) struct profile *before = made();
		CLEANUP(profile_freep) struct profile *after = made();
		CLEANUP(buffer_done) struct buffer buffer = { 0 };

		add_histogram(before, "", 20, 1000 - cases[i].before);
		add_histogram(before, "", 9000, cases[i].before);
		add_histogram(after, "", 20, 1000 - cases[i].after);
		add_histogram(after, "", 9000, cases[i].after);
		buffer = shown(before, after);
		assert_non_null(strstr(buffer.data, cases[i].says));
	}
}

/* Stretching 3 samples of a third each to 100 loses nothing. */
static void test_stretch(void **state)
{
	CLEANUP(profile_freep) struct profile *before = made();
	CLEANUP(profile_freep) struct profile *after = made();
	CLEANUP(diff_done) struct diff diff = { 0 };

	small_add(before, "app", 1, "x", NULL, 100);
	small_add(after, "app", 1, "a", NULL, 1);
	small_add(after, "app", 1, "b", NULL, 1);
	small_add(after, "app", 1, "c", NULL, 1);
	diff = difference(before, after);
	check_sums(diff.profile, 100);
	for (uint32_t i = 1; i < profile_nr_samples(diff.profile); i++) {
		int64_t value = profile_sample_at(diff.profile, i)->values[1];

		assert_true(value == 33 || value == 34);
	}
}

static void test_refused(void **state)
{
	CLEANUP(profile_freep) struct profile *empty = made();
	CLEANUP(profile_freep) struct profile *some = made();
	CLEANUP(profile_freep) struct profile *bytes = made();
	struct profile_value_type type;
	struct diag diag = { 0 };
	struct diff diff;

	small_add(some, "app", 1, "a", NULL, 100);
	small_add(bytes, "app", 1, "a", NULL, 100);
	assert_int_equal(diff_make(empty, some, NULL, &diag, &diff), -ENODATA);
	assert_non_null(strstr(diag.text, "before"));
	diag.err = 0;
	assert_int_equal(diff_make(some, some, "alloc_space", &diag, &diff), -ENODATA);
	assert_non_null(strstr(diag.text, "alloc_space"));
	type = (struct profile_value_type){ .type = profile_string(bytes, "samples"), .unit = profile_string(bytes, "bytes") };
	profile_set_value_types(bytes, &type, 1, 0);
	assert_int_equal(diff_make(some, bytes, NULL, &diag, &diff), -EINVAL);
	assert_false(diff_is(some));
	assert_true(diff_format_carries("html"));
	assert_false(diff_format_carries("text"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_stretch),
		cmocka_unit_test(test_histograms),
		cmocka_unit_test(test_tails),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
