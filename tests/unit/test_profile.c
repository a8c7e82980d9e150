// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/account_text.h"
#include "model/profile.h"

static void strings_are_one(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	uint32_t a = profile_string(profile, "a"), ab = profile_string(profile, "ab");

	assert_string_equal(profile_string_text(profile, PROFILE_EMPTY_STRING), "");
	assert_int_equal(profile_string(profile, ""), PROFILE_EMPTY_STRING);
	assert_int_equal(ab, a + 1);
	assert_int_equal(profile_string(profile, "a"), a);
	assert_int_equal(profile_nr_strings(profile), ab + 1);
	assert_string_equal(profile_string_text(profile, ab), "ab");
}

/* So that every reader can read what was recorded: a program may have names of any length. */
static void long_strings_are_cut(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	char text[PROFILE_TEXT_BYTES + 2];
	const char *cut;

	memset(text, 'x', sizeof(text));
	memcpy(text + PROFILE_TEXT_BYTES - 4, "\xc3\xa4", 2); /* the cut would be in its middle */
	text[PROFILE_TEXT_BYTES] = '\0';
	assert_int_equal(strlen(profile_string_text(profile, profile_string(profile, text))), PROFILE_TEXT_BYTES);
	text[PROFILE_TEXT_BYTES] = 'x';
	text[PROFILE_TEXT_BYTES + 1] = '\0';
	cut = profile_string_text(profile, profile_string(profile, text));
	assert_int_equal(strlen(cut), PROFILE_TEXT_BYTES - 1);
	assert_string_equal(cut + PROFILE_TEXT_BYTES - 5, "x...");
}

/* Locations that differ in any one field are separate entries. */
static void locations_differ_in_any_field(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	struct profile_location location;

	memset(&location, 0xff, sizeof(location)); /* the padding must not count */
	location.pc = location.elf_vaddr = location.function_off = location.mapping = location.function = location.kind = location.line =
	    location.is_inlined = location.is_nameless = 0;
	assert_int_equal(profile_location(profile, &location), 0);
	assert_int_equal(profile_location(profile, &(struct profile_location){ 0 }), 0);
	assert_int_equal(profile_location(profile, &(struct profile_location){ .pc = 1 }), 1);
	assert_int_equal(profile_location(profile, &(struct profile_location){ .elf_vaddr = 1 }), 2);
	assert_int_equal(profile_location(profile, &(struct profile_location){ .function_off = 1 }), 3);
	assert_int_equal(profile_location(profile, &(struct profile_location){ .mapping = 1 }), 4);
	assert_int_equal(profile_location(profile, &(struct profile_location){ .function = 1 }), 5);
	assert_int_equal(profile_location(profile, &(struct profile_location){ .kind = 1 }), 6);
	assert_int_equal(profile_location(profile, &(struct profile_location){ .line = 1 }), 7);
	assert_int_equal(profile_location(profile, &(struct profile_location){ .is_inlined = 1 }), 8);
	assert_int_equal(profile_location(profile, &(struct profile_location){ .is_nameless = 1 }), 9);
	assert_int_equal(profile_location_at(profile, 4)->mapping, 1);
	assert_int_equal(profile_nr_locations(profile), 10);
}

static void stacks_are_one(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	uint32_t nr_locations;

	assert_int_equal(profile_stack(profile, (uint32_t[]){ 1, 2 }, 2), 0);
	assert_int_equal(profile_stack(profile, (uint32_t[]){ 1, 2, 0 }, 3), 1);
	assert_int_equal(profile_stack(profile, (uint32_t[]){ 2, 1 }, 2), 2);
	assert_int_equal(profile_stack(profile, NULL, 0), 3);
	assert_int_equal(profile_stack(profile, (uint32_t[]){ 1, 2 }, 2), 0);
	assert_int_equal(profile_nr_stacks(profile), 4);
	assert_int_equal(profile_stack_at(profile, 1, &nr_locations)[1], 2);
	assert_int_equal(nr_locations, 3);
	profile_stack_at(profile, 3, &nr_locations);
	assert_int_equal(nr_locations, 0);
}

static void equal_samples_fold(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	const struct profile_value_type types[] = {
		{ .fold = VALUE_SUM }, { .fold = VALUE_SUM }, { .fold = VALUE_MIN }, { .fold = VALUE_MAX }
	};
	static const int64_t waits[] = { 20, 7, 30 };
	const int64_t *values;

	profile_set_value_types(profile, types, 4, 1);
	for (int i = 0; i < 3; i++) {
		struct profile_sample sample = { .values = { 1, waits[i], waits[i], waits[i] } };

		assert_int_equal(profile_add(profile, &sample), 0);
	}
	assert_int_equal(profile_nr_samples(profile), 1);
	values = profile_sample_at(profile, 0)->values;
	assert_int_equal(values[0], 3);
	assert_int_equal(values[1], 57);
	assert_int_equal(values[2], 7);
	assert_int_equal(values[3], 30);
}

static void values_have_names(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	struct profile_value_type types[] = {
		{ .type = profile_string(profile, "calls"), .unit = profile_string(profile, "count") },
		{ .type = profile_string(profile, "delay"), .unit = profile_string(profile, "microseconds") },
		{ .type = profile_string(profile, "longest"), .unit = profile_string(profile, "microseconds"), .fold = VALUE_MAX }
	};

	profile_set_value_types(profile, types, 3, 0);
	assert_int_equal(profile_find_value(profile, "count"), 0);
	assert_int_equal(profile_find_value(profile, "time"), 1);
	assert_int_equal(profile_find_value(profile, "longest"), 2);
	assert_int_equal(profile_find_value(profile, "microseconds"), PROFILE_NONE);
	types[1] = types[2];
	profile_set_value_types(profile, types, 2, 0);
	assert_int_equal(profile_find_value(profile, "time"), PROFILE_NONE); /* only a sum of that name counts */
	types[0].type = profile_string(profile, "time");
	profile_set_value_types(profile, types, 2, 0);
	assert_int_equal(profile_find_value(profile, "time"), 0); /* names take precedence */
}

static void nothing_changes_no_fold(void **state)
{
	for (uint32_t fold = 0; fold < VALUE_FOLD_COUNT; fold++) {
		assert_int_equal(value_fold(fold, 0, 5), 5);
		assert_int_equal(value_fold(fold, 5, 0), 5);
	}
	assert_int_equal(value_fold(VALUE_SUM, INT64_MAX, 1), INT64_MAX);
	assert_int_equal(value_fold(VALUE_MIN, 9, 4), 4);
	assert_int_equal(value_fold(VALUE_MIN, 4, 9), 4);
	assert_int_equal(value_fold(VALUE_MAX, 9, 4), 9);
	assert_int_equal(value_fold(VALUE_MAX, 4, 9), 9);
}

static void equal_samples_add_up(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	struct profile_sample sample = {
		.user_stack = 1, .kernel_stack = PROFILE_NONE, .tgid = 3, .tid = 4, .cpu = 5, .comm = 0, .values = { 6 }
	};

	assert_int_equal(profile_add(profile, &sample), 0);
	sample.values[0] = 10;
	assert_int_equal(profile_add(profile, &sample), 0);
	sample.cpu = 0;
	assert_int_equal(profile_add(profile, &sample), 0);
	assert_int_equal(profile_nr_samples(profile), 2);
	assert_int_equal(profile_sample_at(profile, 0)->values[0], 16);
	assert_int_equal(profile_sample_at(profile, 1)->values[0], 10);
	sample.values[0] = INT64_MAX;
	assert_int_equal(profile_add(profile, &sample), 0);
	assert_true(profile_sample_at(profile, 1)->values[0] == INT64_MAX);
}

static void samples_differ_by_time_and_labels(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	struct profile_label labels[2] = { { .key = profile_string(profile, "user"), .text = profile_string(profile, "ada") },
					   { .key = profile_string(profile, "bytes"), .number = -512, .is_number = 1 } };
	uint32_t both = profile_labels(profile, labels, 2), one = profile_labels(profile, labels, 1), nr;
	struct profile_sample sample = { .labels = both, .values = { 1, -2 } };

	assert_int_equal(profile_labels(profile, NULL, 0), PROFILE_NO_LABELS);
	assert_int_equal(profile_labels(profile, labels, 2), both);
	assert_int_equal(profile_labels_at(profile, both, &nr)[1].number, -512);
	assert_int_equal(nr, 2);
	for (int round = 0; round < 2; round++) {
		sample.labels = both;
		assert_int_equal(profile_add(profile, &sample), 0);
		sample.labels = one;
		assert_int_equal(profile_add(profile, &sample), 0);
		sample.time_ns = 5;
		assert_int_equal(profile_add(profile, &sample), 0);
		sample.time_ns = 0;
	}
	assert_int_equal(profile_nr_samples(profile), 3);
	assert_int_equal(profile_sample_at(profile, 2)->values[1], -4);
}

/* Entries keep their numbers and texts while the tables grow. */
static void grows(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	char text[32];

	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 100000; i++) {
			struct profile_mapping mapping = { .start_pc = i, .end_pc = i + 1, .path = i };
			struct profile_function function = { .name = i, .line = 7 };

			snprintf(text, sizeof(text), "string %u", i);
			assert_int_equal(profile_string(profile, text), i + 3); /* after "", "samples", "count" */
			assert_int_equal(profile_mapping(profile, &mapping), i);
			assert_int_equal(profile_function(profile, &function), i);
			assert_int_equal(profile_stack(profile, &i, 1), i);
		}
	}
	assert_string_equal(profile_string_text(profile, 4714), "string 4711");
	assert_int_equal(profile_mapping_at(profile, 4711)->end_pc, 4712);
	assert_int_equal(profile_function_at(profile, 99999)->name, 99999);
}

static void notes_have_a_cap(void **state)
{
	static struct account account;

	for (uint32_t i = 0; i < ACCOUNT_MAX_NOTES + 3; i++)
		account_note(&account, "note %u %0300u", i, i);
	assert_int_equal(account.nr_notes, ACCOUNT_MAX_NOTES);
	assert_int_equal(account.nr_notes_refused, 3);
	assert_int_equal(strlen(account.notes[15]), ACCOUNT_NOTE_BYTES - 1);
	assert_memory_equal(account.notes[15], "note 15 0", 9);
}

static void notes_are_plain(void **state)
{
	static struct account account;

	account_note(&account, "%s", "a\nb\x1b[2J \xc2\x9b \xff \xe2\x82 gr\xc3\xbc\xc3\x9f");
	assert_string_equal(account.notes[0], "a?b?[2J ? ? ? gr\xc3\xbc\xc3\x9f");
	for (int cut = 0; cut < 4; cut++)
		account_note(&account, "%0*d\xf0\x9f\x94\xa5", ACCOUNT_NOTE_BYTES - 1 - cut, 0); /* cut within a code point */
	for (int cut = 1; cut < 4; cut++)
		assert_int_equal(account.notes[1 + cut][ACCOUNT_NOTE_BYTES - 1 - cut], '?');
}

static void reasons_have_names(void **state)
{
	assert_string_equal(filter_name(SONDE_FILTER_IDLE), "idle");
	assert_string_equal(drop_name(SONDE_DROP_RING_FULL), "ring_full");
	assert_string_equal(drop_text(SONDE_DROP_RING_FULL), "no room in the ring buffer for the sample");
	assert_string_equal(stop_name(SONDE_STOP_COMPLETE), "complete");
	assert_string_equal(stop_mark(SONDE_STOP_COMPLETE), "");
	assert_string_equal(stop_mark(SONDE_STOP_NO_ROW), "[no unwind info: %s]");
	assert_string_equal(runtime_stop_name(SONDE_RUNTIME_STOP_DEPTH), "truncated");
	assert_string_equal(runtime_stop_mark(SONDE_RUNTIME_STOP_COMPLETE), "");
	assert_string_equal(runtime_stop_mark(SONDE_RUNTIME_STOP_DEPTH), "[%s: frames left out]");
}

static void kinds_have_names(void **state)
{
	for (int kind = 0; kind < FRAME_KIND_COUNT; kind++)
		assert_non_null(frame_kind_name((enum frame_kind)kind));
	assert_string_equal(frame_kind_name(FRAME_PERL), "perl");
	assert_true(frame_is_interpreted(FRAME_PYTHON) && frame_is_interpreted(FRAME_PHP) && frame_is_interpreted(FRAME_PERL));
	assert_false(frame_is_interpreted(FRAME_NATIVE) || frame_is_interpreted(FRAME_KERNEL) || frame_is_interpreted(FRAME_MARK));
}

/* Runtimes of one name and version are merged. Those without room are counted. An account without runtimes prints nothing of them. */
static void runtimes_are_counted(void **state)
{
	static struct account account = { .nr_cpus = 1 };
	CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(4096);

	account_text_run(&account, &text);
	assert_null(strstr(text.data, "runtime"));
	account_runtime(&account, "python", "3.11.2", 1);
	account_runtime(&account, "python", "3.12\x1b.1", 1);
	account_runtime(&account, "python", "3.11.2", UINT32_MAX);
	account_runtime(&account, "no-room-for-this-name", "", 2);
	assert_int_equal(account.nr_runtimes, 3);
	assert_int_equal(account.runtimes[0].nr_processes, UINT32_MAX);
	account.runtime_stopped[SONDE_RUNTIME_STOP_COMPLETE] = 7;
	account.runtime_stopped[SONDE_RUNTIME_STOP_TORN] = 2;
	text.size = 0;
	account_text_run(&account, &text);
	assert_non_null(strstr(text.data,
			       "runtimes: python 3.11.2 (4294967295 processes), python 3.12?.1 (1 process), no-room-for-thi (2 processes)\n"
			       "runtime stacks: 7 complete, 2 torn\n"));
	for (uint32_t i = 0; i < ACCOUNT_MAX_RUNTIMES; i++)
		account_runtime(&account, "php", (const char[]){ (char)('a' + i), '\0' }, 1);
	assert_int_equal(account.nr_runtimes, ACCOUNT_MAX_RUNTIMES);
	assert_int_equal(account.nr_runtimes_refused, 3);
}

static void check_account(const struct account *account, const char *wanted, const char *unwanted)
{
	CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(4096);

	account_text_run(account, &text);
	if (wanted && !strstr(text.data, wanted))
		fail_msg("no '%s' in '%s'", wanted, text.data);
	if (unwanted && strstr(text.data, unwanted))
		fail_msg("'%s' in '%s'", unwanted, text.data);
}

/* Reports each tick that was due and never arrived, with the reason where it is known. */
static void losses_are_told(void **state)
{
	struct account *account = calloc(1, sizeof(*account));

	*account = (struct account){ .nr_cpus = 1,
				     .event = "cycles",
				     .event_unit = "count",
				     .period = 1000,
				     .expected = 100000,
				     .ticks = 99999,
				     .events = 100000500 };
	check_account(account, "\nskipped: 1 of 100000 expected ticks never came: another BPF program ran", "throttled");
	check_account(account, NULL, "counted:");
	account->ticks++;
	check_account(account, NULL, "skipped");
	account->throttled = 4;
	account->throttled_ns = 1500000000;
	check_account(account, "\nthrottled: 4 times the kernel held the event back, for 1.500 s over all CPUs", "not counted");
	account->unscheduled_ns = 2500000000;
	check_account(account, "\nnot counted: others had the PMU for 2.500 s over all CPUs\n", NULL);
	account->expected = account->period = 0;
	account->freq_hz = 99;
	check_account(account, "\ncounted: 100000500 cycles; the number of expected ticks is unknown", "skipped");
	free(account);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_one), cmocka_unit_test(long_strings_are_cut),
		cmocka_unit_test(locations_differ_in_any_field),
		cmocka_unit_test(stacks_are_one),
		cmocka_unit_test(equal_samples_add_up),
		cmocka_unit_test(equal_samples_fold),
		cmocka_unit_test(nothing_changes_no_fold),
		cmocka_unit_test(values_have_names),
		cmocka_unit_test(samples_differ_by_time_and_labels),
		cmocka_unit_test(grows),
		cmocka_unit_test(notes_have_a_cap),
		cmocka_unit_test(notes_are_plain),
		cmocka_unit_test(reasons_have_names),
		cmocka_unit_test(kinds_have_names),
		cmocka_unit_test(runtimes_are_counted), cmocka_unit_test(losses_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
