// SPDX-License-Identifier: Apache-2.0
/* Where the reports of windows go: each to its own file. The oldest files are deleted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "output/output_pattern.h"
#include "output/outputs.h"
#include "small_profile.h"

#define BEGIN_S 1795452088u /* 2026-11-23 16:41:28 UTC */

static char folder[64];
static struct profile *profile;
static struct outputs outputs;

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/sonde-test-XXXXXX");
	profile = profile_new();
	outputs = (struct outputs){ .has_windows = true };
	if (!mkdtemp(folder) || !profile)
		return -1;
	small_add(profile, "app", 1, "leaf main", NULL, 3);
	return chdir(folder);
}

static int tear_down(void **state)
{
	char command[128];

	outputs_done(&outputs);
	profile_free(profile);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return chdir("/") || system(command);
}

static int add(const char *path)
{
	struct diag diag = { 0 };

	return outputs_add(&outputs, path, NULL, &diag);
}

static int write_window(uint32_t number, uint64_t second)
{
	struct diag diag = { 0 };

	return outputs_write(&outputs, profile, &(struct output_window){ .number = number, .start_unix_ns = second * NS_PER_S + 5 }, &diag);
}

static bool is_there(const char *name)
{
	struct stat st;

	return !stat(name, &st) && S_ISREG(st.st_mode) && st.st_size;
}

/* The window before it was full after half a second. */
static void windows_of_one_second_have_names_of_their_own(void **state)
{
	assert_int_equal(add("%t.folded"), 0);
	for (uint32_t number = 1; number <= 3; number++)
		assert_int_equal(write_window(number, BEGIN_S), 0);
	assert_int_equal(write_window(4, BEGIN_S + 1), 0);
	assert_true(is_there("20261123T164128Z.folded") && is_there("20261123T164128Z-2.folded") && is_there("20261123T164128Z-3.folded") &&
		    is_there("20261123T164129Z.folded"));
}

/* The clock reaches the same time again and again. */
static void a_clock_that_is_set_back_overwrites_nothing(void **state)
{
	char last[PATH_MAX] = "";
	uint64_t newest_s = 0;
	uint32_t nr = 0;

	assert_int_equal(add("%t.folded"), 0);
	for (uint32_t number = 1; number <= 60; number++) {
		const uint64_t second = BEGIN_S + number % 7 + number / 20;
		const struct output_words words = output_words_of(number, second * NS_PER_S + 5, &newest_s);

		assert_int_equal(output_pattern_path("%t.folded", &words, last), 0);
		assert_false(is_there(last));
		assert_int_equal(write_window(number, second), 0);
		nr += is_there(last);
	}
	assert_int_equal(nr, 60);
}

static void signs_are_replaced_where_they_stand(void **state)
{
	const struct output_words words = { .number = 7, .time = "T" };
	char path[PATH_MAX];

	assert_int_equal(output_pattern_path("100%%/%n%t-%%n%%.json", &words, path), 0);
	assert_string_equal(path, "100%/7T-%n%.json");
	assert_int_equal(mkdir("100%", 0700), 0);
	assert_int_equal(add("100%%/%n.folded"), 0);
	assert_int_equal(write_window(1, BEGIN_S), 0);
	assert_true(is_there("100%/1.folded"));
}

static void what_is_no_pattern_is_refused(void **state)
{
	static const char *const wrong[] = { "x.json",	   "%%n.json",	  "%n-%q.json",		 "%n.json%", "%", "%n/x.json",
					     "%t/%n.json", "./%t/x.json", "/nonexistent/%n.json" };

	assert_int_equal(mkdir("1", 0700), 0); /* %n/x.json could be written, once */
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_true(add(wrong[i]) < 0);
	assert_int_equal(outputs.nr, 0);
}

/* Names may meet in one window or in two: 1 of a%n1 is 11 of a%n. */
static void two_patterns_for_one_file_are_refused(void **state)
{
	static const struct {
		const char *a, *b;
		bool do_meet;
	} pairs[] = {
		{ "a-%n.json", "a-%n.json", true },
		{ "a-%n.json", "./a-%n.json", true },
		{ "a%n1.json", "a1%n.json", true },
		{ "a%n.json", "a%n1.json", true },
		{ "%t.json", "%t-2.json", true },
		{ "a%%%n.json", "a%%%n.json", true },
		{ "a-%n.json", "b-%n.json", false },
		{ "a-%n.json", "a-%n.folded", false },
		{ "a-%n.json", "a-%n.speedscope.json", false },
		{ "cpu-%n.json", "cpu-x-%n.json", false },
		{ "a-%n.json", "other/a-%n.json", false },
		{ "%n.json", "%n%%.json", false },
		{ "%n.json", "%%%n.json", false },
	};

	assert_int_equal(mkdir("other", 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		assert_int_equal(output_pattern_meet(pairs[i].a, pairs[i].b), pairs[i].do_meet);
		assert_int_equal(output_pattern_meet(pairs[i].b, pairs[i].a), pairs[i].do_meet);
	}
	assert_int_equal(add("a-%n.json"), 0);
	assert_int_equal(add("./a-%n.json"), -EINVAL);
	assert_int_equal(add("a-%n.folded"), 0);
	assert_int_equal(outputs.nr, 2);
}

/* Compares the names of two patterns over some hundreds of windows. Patterns that are accepted together never meet. */
static void patterns_that_may_stand_together_never_meet(void **state)
{
	static const char *const patterns[] = { "%n.json",  "%n1.json", "1%n.json",  "%n-%n.json", "%t.json",  "%t-%n.json", "%n%t.json",
						"2%t.json", "%tZ.json", "%n%%.json", "%%%n.json",  "a%n.json", "%n.a.json" };
	char of_a[PATH_MAX], of_b[PATH_MAX];

	for (size_t pair = 0; pair < ARRAY_SIZE(patterns) * ARRAY_SIZE(patterns); pair++) {
		const char *a = patterns[pair / ARRAY_SIZE(patterns)], *b = patterns[pair % ARRAY_SIZE(patterns)];

		for (uint32_t n = 1; !output_pattern_meet(a, b) && n < 150 * 150; n++) {
			uint64_t newest_s = BEGIN_S + 50, other_s = newest_s;
			const struct output_words words = output_words_of(n / 150, (BEGIN_S + n / 150) * NS_PER_S, &newest_s);
			const struct output_words others = output_words_of(n % 150, (BEGIN_S + n % 150) * NS_PER_S, &other_s);

			assert_int_equal(output_pattern_path(a, &words, of_a), 0);
			assert_int_equal(output_pattern_path(b, &others, of_b), 0);
			assert_string_not_equal(of_a, of_b);
		}
	}
}

static void each_output_keeps_as_many(void **state)
{
	outputs.keep = 2;
	assert_int_equal(add("%n.json"), 0);
	assert_int_equal(add("%n.folded"), 0);
	for (uint32_t number = 1; number <= 5; number++)
		assert_int_equal(write_window(number, BEGIN_S), 0);
	assert_true(!is_there("3.json") && !is_there("3.folded"));
	assert_true(is_there("4.json") && is_there("4.folded") && is_there("5.json") && is_there("5.folded"));
}

/* It would have replaced an older one, and no newer report exists. */
static void a_window_that_is_not_written_costs_no_other(void **state)
{
	outputs.keep = 2;
	assert_int_equal(add("%n.json"), 0);
	assert_int_equal(add("%n.folded"), 0);
	assert_int_equal(mkdir("3.json", 0700) | mkdir("4.json", 0700), 0);
	for (uint32_t number = 1; number <= 4; number++)
		assert_int_equal(write_window(number, BEGIN_S), number > 2 ? -EISDIR : 0);
	assert_true(is_there("1.json") && is_there("2.json") && !is_there("2.folded") && is_there("3.folded") && is_there("4.folded"));
	assert_int_equal(write_window(5, BEGIN_S), 0);
	assert_true(!is_there("1.json") && is_there("2.json") && is_there("5.json"));
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(windows_of_one_second_have_names_of_their_own),
		test(a_clock_that_is_set_back_overwrites_nothing),
		test(signs_are_replaced_where_they_stand),
		test(what_is_no_pattern_is_refused),
		test(two_patterns_for_one_file_are_refused),
		test(patterns_that_may_stand_together_never_meet),
		test(each_output_keeps_as_many),
		test(a_window_that_is_not_written_costs_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
