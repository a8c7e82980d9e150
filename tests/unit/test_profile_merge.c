// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/profile_merge.h"

/* A profile with a sample in main, called by `caller`, with a label and a mapping; `first` moves all the numbers. */
static struct profile *made(const char *first, const char *caller, int64_t value, uint64_t start_ns)
{
	struct profile *profile = profile_new();
	struct account *account = profile_account(profile);
	struct profile_mapping mapping = { .start_pc = 0x1000, .end_pc = 0x2000 };
	struct profile_location location = { .kind = FRAME_NATIVE };
	struct profile_label label;
	struct profile_sample sample;
	uint32_t stack[2];

	memset(&label, 0, sizeof(label));
	memset(&sample, 0, sizeof(sample));
	profile_string(profile, first);
	mapping.path = profile_string(profile, "/bin/a");
	mapping.build_id = profile_string(profile, "abcd");
	location.mapping = profile_mapping(profile, &mapping);
	for (int i = 0; i < 2; i++) {
		struct profile_function function = { .name = profile_string(profile, i ? caller : "main") };

		location.pc = location.elf_vaddr = 0x1000 + strlen(i ? caller : "main");
		location.function = profile_function(profile, &function);
		stack[i] = profile_location(profile, &location);
	}
	label.key = profile_string(profile, "key");
	label.text = profile_string(profile, "text");
	sample.user_stack = profile_stack(profile, stack, 2);
	sample.kernel_stack = PROFILE_NONE;
	sample.cpu = PROFILE_NONE;
	sample.tgid = 7;
	sample.comm = profile_string(profile, "a");
	sample.labels = profile_labels(profile, &label, 1);
	sample.values[0] = value;
	assert_int_equal(profile_add(profile, &sample), 0);
	account->start_unix_ns = start_ns;
	account->duration_ns = 10;
	account->recorded = (uint64_t)value;
	account->dropped[0] = 1;
	account->max_rss_bytes = start_ns;
	account_note(account, "a note");
	account_runtime(account, "python", "3", 2);
	return profile;
}

static void equal_entries_are_one(void **state)
{
	CLEANUP(profile_freep) struct profile *to = profile_new(), *one = made("x", "f", 3, 100), *two = made("yyy", "f", 4, 50),
					       *three = made("z", "g", 5, 200);
	const struct account *account = profile_account_of(to);
	uint32_t nr;

	assert_int_equal(profile_merge(to, one), 0);
	assert_int_equal(profile_merge(to, two), 0);
	assert_int_equal(profile_nr_samples(to), 1);
	assert_int_equal(profile_sample_at(to, 0)->values[0], 7);
	assert_int_equal(profile_merge(to, three), 0);
	assert_int_equal(profile_nr_samples(to), 2);
	assert_int_equal(profile_nr_mappings(to), 1);
	assert_int_equal(profile_nr_locations(to), 3);
	assert_string_equal(profile_string_text(to, profile_labels_at(to, profile_sample_at(to, 1)->labels, &nr)->text), "text");
	assert_int_equal(nr, 1);
	assert_string_equal(profile_string_text(to, profile_sample_at(to, 1)->comm), "a");
	assert_int_equal(account->start_unix_ns, 50);
	assert_int_equal(account->duration_ns, 30);
	assert_int_equal(account->recorded, 12);
	assert_int_equal(account->dropped[0], 3);
	assert_int_equal(account->max_rss_bytes, 200);
	assert_int_equal(account->nr_notes, 1);
	assert_int_equal(account->runtimes[0].nr_processes, 2); /* the same process, not six */
}

static void other_values_are_refused(void **state)
{
	CLEANUP(profile_freep) struct profile *to = profile_new(), *one = made("x", "f", 3, 100), *other = made("x", "f", 3, 100);
	struct profile_value_type type = { .type = profile_string(other, "cpu"), .unit = profile_string(other, "nanoseconds") };

	assert_int_equal(profile_merge(to, one), 0);
	profile_set_value_types(other, &type, 1, 0);
	assert_int_equal(profile_merge(to, other), -EINVAL);
}

static void an_empty_window_adds_its_time(void **state)
{
	CLEANUP(profile_freep) struct profile *to = profile_new(), *empty = profile_new(), *one = made("x", "f", 3, 100);

	profile_account(empty)->start_unix_ns = 90;
	profile_account(empty)->duration_ns = 10;
	assert_int_equal(profile_merge(to, empty), 0);
	assert_int_equal(profile_merge(to, one), 0);
	assert_int_equal(profile_nr_samples(to), 1);
	assert_int_equal(profile_account_of(to)->duration_ns, 20);
}

/* Of three processes in turn, a sample each of the numbers 0 to `nr` - 1 as value. */
static struct profile *numbered(uint32_t nr)
{
	struct profile *profile = profile_new();

	for (uint32_t i = 0; i < nr; i++) {
		struct profile_sample sample;

		memset(&sample, 0, sizeof(sample));
		sample.user_stack = sample.kernel_stack = sample.cpu = PROFILE_NONE;
		sample.tgid = 9 - i % 3;
		sample.tid = i + 1;
		sample.values[0] = i;
		assert_int_equal(profile_add(profile, &sample), 0);
	}
	profile_account(profile)->start_unix_ns = 7;
	return profile;
}

/* Whatever the number of parts is: each sample is in one, a process's are together, and halves are the parts of twice as many. */
static void parts_have_all(void **state)
{
	for (uint32_t nr = 0; nr < 20; nr++) {
		CLEANUP(profile_freep) struct profile *whole = numbered(nr);

		for (uint32_t nr_parts = 1; nr_parts <= 32; nr_parts *= 2) {
			CLEANUP(profile_freep) struct profile *sum = profile_new();
			uint32_t last_tgid = 0;

			for (uint32_t part = 0; part < nr_parts; part++) {
				CLEANUP(profile_freep) struct profile *one = profile_new(), *halves = profile_new();

				assert_int_equal(profile_merge_part(one, whole, part, nr_parts), 0);
				assert_int_equal(profile_merge_part(halves, whole, 2 * part, 2 * nr_parts), 0);
				assert_int_equal(profile_merge_part(halves, whole, 2 * part + 1, 2 * nr_parts), 0);
				assert_int_equal(profile_account_of(one)->start_unix_ns, 7);
				assert_true(profile_nr_samples(one) <= nr / nr_parts + 1);
				assert_int_equal(profile_nr_samples(one), profile_nr_samples(halves));
				for (uint32_t i = 0; i < profile_nr_samples(one); i++) {
					const struct profile_sample *sample = profile_sample_at(one, i);

					assert_true(nr_parts == 1 || sample->tgid >= last_tgid);
					last_tgid = sample->tgid;
					if (nr_parts > 1)
						assert_memory_equal(sample->values, profile_sample_at(halves, i)->values,
								    sizeof(sample->values));
				}
				assert_int_equal(profile_merge(sum, one), 0);
			}
			assert_int_equal(profile_nr_samples(sum), nr); /* they differ in their threads */
			for (uint32_t i = 0; i < nr; i++)
				assert_int_equal(profile_sample_at(sum, i)->values[0] + 1, profile_sample_at(sum, i)->tid);
		}
	}
}

/* Samples that differ in their time alone are one; the rest of them, and the account, stay. */
static void times_go(void **state)
{
	CLEANUP(profile_freep) struct profile *timed = made("x", "f", 3, 100), *untimed = NULL;
	struct profile_sample sample = *profile_sample_at(timed, 0);
	uint32_t nr;

	for (uint64_t time_ns = 100; time_ns < 105; time_ns++) {
		sample.time_ns = time_ns;
		assert_int_equal(profile_add(timed, &sample), 0);
	}
	sample.tid = 9;
	assert_int_equal(profile_add(timed, &sample), 0);
	assert_int_equal(profile_nr_samples(timed), 7);
	assert_int_equal(profile_without_times(timed, &untimed), 0);
	assert_int_equal(profile_nr_samples(untimed), 2);
	assert_int_equal(profile_sample_at(untimed, 0)->values[0], 18);
	assert_int_equal(profile_sample_at(untimed, 0)->time_ns, 0);
	assert_int_equal(profile_sample_at(untimed, 1)->values[0], 3);
	assert_string_equal(profile_string_text(untimed, profile_labels_at(untimed, profile_sample_at(untimed, 1)->labels, &nr)->text),
			    "text");
	assert_int_equal(profile_account_of(untimed)->recorded, 3);
	assert_int_equal(profile_account_of(untimed)->start_unix_ns, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_entries_are_one),
		cmocka_unit_test(other_values_are_refused),
		cmocka_unit_test(an_empty_window_adds_its_time),
		cmocka_unit_test(parts_have_all),
		cmocka_unit_test(times_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
