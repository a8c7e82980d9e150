// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/option.h"

struct arguments {
	bool up, kernel, fold;
	uint64_t freq, period, seconds;
	const char *name;
	struct option_texts files;
	struct option_ids ids;
	const char *secret;
};

static const char *colour_at(uint32_t i)
{
	static const char *const names[] = { "red", "blue" };

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

#define FIELD(field) .offset = offsetof(struct arguments, field)
static const struct option_spec options[] = {
	{ .group = "First", .metavar = "SECONDS", .kind = OPTION_NUMBER, FIELD(seconds), .min = 1, .max = 100, .help = "how long" },
	{ .letter = 'U', .name = "user", .kind = OPTION_FLAG, FIELD(up), .help = "user" },
	{ .letter = 'K',
	  .name = "kernel",
	  .kind = OPTION_FLAG,
	  FIELD(kernel),
	  .excludes = "user",
	  .instead = "leave both out",
	  .help = "k" },
	{ .letter = 'f', .name = "fold", .kind = OPTION_FLAG, FIELD(fold), .help = "folded" },
	{ .letter = 'F',
	  .name = "frequency",
	  .metavar = "HZ",
	  .kind = OPTION_NUMBER,
	  FIELD(freq),
	  .min = 1,
	  .max = UINT64_MAX,
	  .help = "rate" },
	{ .group = "Second", .letter = 'c', .name = "count", .metavar = "N", .kind = OPTION_NUMBER, FIELD(period), .max = 9, .help = "n" },
	{ .name = "user-name",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(name),
	  .value_name = colour_at,
	  .help = "a help that is so long that it does not fit into one line of eighty columns and has to be folded somewhere" },
	{ .letter = 'o', .name = "output", .metavar = "FILE", .kind = OPTION_TEXTS, FIELD(files), .help = "file" },
	{ .letter = 'p', .name = "pid", .metavar = "PID[,PID...]", .kind = OPTION_IDS, FIELD(ids), .min = 1, .max = 4194304, .help = "p" },
	{ .name = "window",
	  .otel_name = "reporter-interval",
	  .metavar = "SECONDS",
	  .kind = OPTION_SECONDS,
	  FIELD(period),
	  .min = 2,
	  .max = 7200,
	  .help = "w" },
	{ .name = "secret", .metavar = "X", .kind = OPTION_TEXT, FIELD(secret), .hidden = true, .help = "not for everybody" },
};

static const struct verb verb = {
	.name = "test",
	.summary = "tests",
	.description = "One paragraph.\n\nAnother.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.takes_command = true,
};
static const struct verb plain = { .name = "plain", .description = "x", .options = options, .nr_options = ARRAY_SIZE(options) };

static struct arguments got;
static struct option_result result;
static struct diag diag;

static bool is_given(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (options[i].name && !strcmp(options[i].name, name))
			return result.given >> i & 1;
	}
	return false;
}

static int parse_as(const struct verb *as, const char *line)
{
	static char words[1024];
	static char *argv[64];
	int argc = 0;

	snprintf(words, sizeof(words), "test %s", line);
	for (char *at = words, *word; (word = strsep(&at, " "));)
		argv[argc++] = word;
	got = (struct arguments){ 0 };
	result = (struct option_result){ 0 };
	diag = (struct diag){ 0 };
	return option_parse(as, argc, argv, &got, &result, &diag);
}

static void refused(const char *line, const char *why)
{
	assert_int_equal(parse_as(&verb, line), -EINVAL);
	if (!strstr(diag.text, why))
		fail_msg("%s: '%s' is not in '%s'", line, why, diag.text);
	assert_null(strchr(diag.text, '\n'));
}

static void all_ways_to_write_a_value(void **state)
{
	for (const char *const *line =
		 (const char *const[]){ "-F99", "-F 99", "--frequency=99", "--frequency 99", "--freq=99", "--fr 99", NULL };
	     *line; line++) {
		assert_int_equal(parse_as(&verb, *line), 0);
		assert_int_equal(got.freq, 99);
		assert_true(is_given("frequency"));
		assert_false(is_given("count"));
	}
}

static void times_and_names_of_others(void **state)
{
	static const struct {
		const char *line;
		uint64_t seconds;
	} cases[] = { { "--window 90", 90 },
		      { "--window=2s", 2 },
		      { "--window 5m", 300 },
		      { "--reporter-interval 2h", 7200 },
		      { "--wind 7", 7 } };
	static const char *const bad[] = { "s", "5x", "1.5m", "-1s", "99999999999999999999h", "1ms" };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse_as(&verb, cases[i].line), 0);
		assert_int_equal(got.period, cases[i].seconds);
		assert_true(is_given("window"));
	}
	refused("--window 1", "--window must be a time from 2 to 7200 seconds, as 90 or 5m, not '1'");
	refused("--reporter-interval 3h", "--window must be");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char line[64];

		snprintf(line, sizeof(line), "--window=%s", bad[i]);
		assert_int_equal(parse_as(&verb, line), -EINVAL);
	}
	refused("--reporter 3s", "unknown option --reporter"); /* not by its beginning */
}

static void letters_stand_together(void **state)
{
	assert_int_equal(parse_as(&verb, "-Uf 5"), 0);
	assert_true(got.up && got.fold);
	assert_int_equal(got.seconds, 5);
	assert_int_equal(parse_as(&verb, "5 -fF7"), 0);
	assert_int_equal(got.freq, 7);
	assert_int_equal(got.seconds, 5);
	refused("-Ux", "unknown option -x in -Ux");
	refused("-x", "unknown option -x");
}

static void beginnings_of_names(void **state)
{
	assert_int_equal(parse_as(&verb, "--user"), 0); /* an exact match, although --user-name has the same prefix */
	assert_true(got.up);
	assert_int_equal(parse_as(&verb, "--user- blue"), 0);
	assert_string_equal(got.name, "blue");
	refused("--us", "--us can mean --user and --user-name");
	refused("--f=3", "can mean --fold and --frequency");
	refused("--sec x", "unknown option");  /* hidden: the whole name is needed */
	assert_int_equal(parse_as(&verb, "--secret x"), 0);
	refused("--fold=3", "takes no value");
	refused("--=3", "can mean");
}

static void mistyped_names(void **state)
{
	refused("--freqency 3", "did you mean --frequency?");
	refused("--ferquency", "did you mean --frequency?");
	refused("--pdi 3", "did you mean --pid?");
	refused("--xyzzy", "unknown option --xyzzy");
	assert_null(strstr(diag.text, "did you mean"));
	refused("--verylongnamethatnobodywouldeverthinkofwritingintoacommandlinelikethisone", "unknown option");
}

static void numbers(void **state)
{
	assert_int_equal(parse_as(&verb, "-F 18446744073709551615 -c 0"), 0);
	assert_true(got.freq == UINT64_MAX);
	assert_true(is_given("count"));
	for (const char *const *value =
		 (const char *const[]){ "0", "-5", "1e3", "abc", "18446744073709551616", "0x1", "1.5", "+1", "5s", NULL };
	     *value; value++) {
		char line[64];

		snprintf(line, sizeof(line), "-F %s", *value);
		refused(line, "-F must be a whole number from 1 to");
		snprintf(line, sizeof(line), "--frequency=%s", *value);
		refused(line, "--frequency must be");
	}
	refused("-c 10", "from 0 to 9, not '10'");
	refused("101", "SECONDS must be a whole number from 1 to 100, not '101'");
	refused("-1", "SECONDS must be");
	refused("--frequency=", "not empty");
}

static void ids(void **state)
{
	assert_int_equal(parse_as(&verb, "-p 1,2 -p 3 --pid=2,4194304"), 0);
	assert_int_equal(got.ids.nr, 4);
	assert_int_equal(got.ids.ids[2], 3);
	assert_int_equal(got.ids.ids[3], 4194304);
	for (const char *const *value = (const char *const[]){ "abc", "999999999999", ",", "1,,2", "1,", ",1", "0", "-1", "4194305",
							       "1 ,2x", "99999999999999999999999999999999", NULL };
	     *value; value++) {
		char line[64];

		snprintf(line, sizeof(line), "-p%s", *value);
		assert_int_equal(parse_as(&verb, line), -EINVAL);
	}
}

static void ids_have_a_cap(void **state)
{
	static char list[OPTION_MAX_IDS * 8 + 64];
	size_t length = 0;
	struct option_spec spec = options[8];
	struct arguments arguments = { 0 };

	for (int i = 1; i <= OPTION_MAX_IDS; i++)
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%d", i > 1 ? "," : "", i);
	assert_int_equal(option_set(&spec, "-p", list, &arguments, &diag), 0);
	assert_int_equal(arguments.ids.nr, OPTION_MAX_IDS);
	assert_int_equal(option_set(&spec, "-p", "7", &arguments, NULL), 0); /* already set */
	assert_int_equal(option_set(&spec, "-p", "9999", &arguments, NULL), -EINVAL);
}

static void texts_have_a_cap(void **state)
{
	struct arguments arguments = { 0 };

	for (int i = 0; i < OPTION_MAX_TEXTS; i++)
		assert_int_equal(option_set(&options[7], "-o", "x", &arguments, NULL), 0);
	assert_int_equal(option_set(&options[7], "-o", "x", &arguments, NULL), -EINVAL);
	assert_int_equal(arguments.files.nr, OPTION_MAX_TEXTS);
}

static void values_that_are_missing(void **state)
{
	refused("-F", "-F needs a value: -F HZ");
	refused("-UF", "-F needs a value");
	refused("5 --output", "--output needs a value: --output FILE");
}

static void values_may_begin_with_a_dash(void **state)
{
	assert_int_equal(parse_as(&verb, "-o - -o -x --user-name -bash"), 0);
	assert_int_equal(got.files.nr, 2);
	assert_string_equal(got.files.texts[0], "-");
	assert_string_equal(got.files.texts[1], "-x");
	assert_string_equal(got.name, "-bash");
}

static void too_many_words(void **state)
{
	refused("5 6", "'6' is one word too many");
	refused("make", "'make' is no SECONDS");
	refused("make", "write -- before a command");
	assert_int_equal(parse_as(&plain, "make"), -EINVAL);
	assert_non_null(strstr(diag.text, "SECONDS must be"));
	refused("-", "'-' is no SECONDS");
}

static void two_that_exclude_each_other(void **state)
{
	refused("-U -K", "-U and -K exclude each other: leave both out");
	refused("--kernel --user", "-U and -K exclude each other");
	assert_int_equal(parse_as(&verb, "-K"), 0);
}

static void a_command_follows_two_dashes(void **state)
{
	assert_int_equal(parse_as(&verb, "-F 3 -- ls -l -F 7"), 0);
	assert_string_equal(result.command[0], "ls");
	assert_string_equal(result.command[3], "7");
	assert_null(result.command[4]);
	assert_int_equal(got.freq, 3);
	assert_int_equal(parse_as(&verb, "-F 3"), 0);
	assert_null(result.command);
	refused("--", "nothing follows --");
	assert_int_equal(parse_as(&plain, "-- ls"), -EINVAL);
}

static void help_ends_the_parsing(void **state)
{
	assert_int_equal(parse_as(&verb, "-h --nonsense"), 0);
	assert_true(result.help);
	assert_int_equal(parse_as(&verb, "--version -F 0"), 0);
	assert_true(result.version);
	assert_int_equal(parse_as(&verb, "-U -K --help"), 0);
	refused("--nonsense --help", "unknown");
}

static void failures_leave_the_result_alone(void **state)
{
	struct option_result untouched = { .rest = 77 };
	char *argv[] = { "test", "-F", "0", NULL };

	assert_int_equal(option_parse(&verb, 3, argv, &got, &untouched, NULL), -EINVAL);
	assert_int_equal(untouched.rest, 77);
	assert_int_equal(untouched.given, 0);
}

static void help_is_eighty_columns_wide(void **state)
{
	struct buffer help = BUFFER_INIT(1 << 16);
	const struct option_spec *spec;

	option_help(&verb, false, &help);
	for (const char *line = help.data; *line; line += strcspn(line, "\n") + 1)
		assert_in_range(strcspn(line, "\n"), 0, 79);
	for (size_t i = 0; (spec = option_at(&verb, i)); i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s%s", spec->name ? "--" : "", spec->name ? spec->name : spec->metavar);
		assert_int_equal(strstr(help.data, name) != NULL, !spec->hidden);
	}
	assert_null(strchr(help.data, '\033'));
	assert_non_null(strstr(help.data, "\nFirst:\n"));
	buffer_done(&help);
	option_help(&verb, true, &help);
	assert_non_null(strchr(help.data, '\033'));
	buffer_done(&help);
}

static const char *name_at(const void *names, size_t i)
{
	return ((const char *const *)names)[i];
}

static void nearest_names(void **state)
{
	const char *const names[] = { "profile", "doctor", "help", NULL };

	assert_string_equal(option_nearest("profiel", name_at, names), "profile");
	assert_string_equal(option_nearest("prof", name_at, names), "profile");
	assert_string_equal(option_nearest("docter", name_at, names), "doctor");
	assert_null(option_nearest("offcpu", name_at, names));
	assert_null(option_nearest("p", name_at, names));
	assert_null(option_nearest("", name_at, names));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ways_to_write_a_value),
		cmocka_unit_test(times_and_names_of_others),
		cmocka_unit_test(letters_stand_together),
		cmocka_unit_test(beginnings_of_names),
		cmocka_unit_test(mistyped_names),
		cmocka_unit_test(numbers),
		cmocka_unit_test(ids),
		cmocka_unit_test(ids_have_a_cap),
		cmocka_unit_test(texts_have_a_cap),
		cmocka_unit_test(values_that_are_missing),
		cmocka_unit_test(values_may_begin_with_a_dash),
		cmocka_unit_test(too_many_words),
		cmocka_unit_test(two_that_exclude_each_other),
		cmocka_unit_test(a_command_follows_two_dashes),
		cmocka_unit_test(help_ends_the_parsing),
		cmocka_unit_test(failures_leave_the_result_alone),
		cmocka_unit_test(help_is_eighty_columns_wide),
		cmocka_unit_test(nearest_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
