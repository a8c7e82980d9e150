// SPDX-License-Identifier: Apache-2.0
/* The difference of two profiles, against answers worked out by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/diff.h"
#include "export/export.h"
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

/* Half as many samples after: what stays the same in share is the same in value; processes with other pids are the same. */
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
	assert_int_equal(profile_nr_samples(diff.profile), 4); /* a, b, gone, new: of whatever pid */
	assert_int_equal(row_of(&diff, "a")->self[0], 600);
	assert_int_equal(row_of(&diff, "a")->self[1], 300);
	assert_int_equal(row_of(&diff, "main")->total[1], 500);
	assert_string_equal(profile_string_text(diff.profile, diff.rows[0].name), "new"); /* 40 points, as b lost 39 */
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

/* Two standard deviations: 100 of 1000 against n of 1000 are within 2 * sqrt(100 + n) / 1000 up to n = 130. */
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
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
