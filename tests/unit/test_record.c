// SPDX-License-Identifier: Apache-2.0
/* A record of the ring is accepted when its size is the one it states and its type is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "abi/event.h"
#include "abi/rss.h"
#include "abi/record.h"
#include "abi/probe.h"
#include "abi/runq.h"
#include "abi/wait.h"
#include "collect/record.h"

static void records_of_one_size(void **state)
{
	static const struct {
		uint32_t type;
		size_t bytes;
	} known[] = {
		{ SONDE_RECORD_SAMPLE, sizeof(struct sonde_sample_record) },
		{ SONDE_RECORD_WAKER, sizeof(struct sonde_waker_record) },
		{ SONDE_RECORD_INITIAL_STACK, sizeof(struct sonde_initial_stack_record) },
		{ SONDE_RECORD_SWITCH, sizeof(struct sonde_switch_record) },
		{ SONDE_RECORD_WAKEUP, sizeof(struct sonde_wakeup_record) },
		{ SONDE_RECORD_RUNQSLOWER, sizeof(struct sonde_runqslower_record) },
		{ SONDE_RECORD_HIT, sizeof(struct sonde_probe_stacks_record) },
		{ SONDE_RECORD_CODE, sizeof(struct sonde_code_record) },
		{ SONDE_RECORD_EVENT, sizeof(struct sonde_event_record) },
	};
	uint64_t record[512] = { 0 };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		*(uint32_t *)record = known[i].type;
		assert_int_equal(record_bytes(record), known[i].bytes);
		assert_true(record_is_whole(record, known[i].bytes));
		assert_false(record_is_whole(record, known[i].bytes - 1));
		assert_false(record_is_whole(record, known[i].bytes + 8));
		assert_int_equal(record_is_payload(record), known[i].type == SONDE_RECORD_WAKER);
	}
}

static void records_with_more_behind_them(void **state)
{
	struct {
		struct sonde_stack_record header;
		uint64_t frames[3];
	} stack = { .header = { .type = SONDE_RECORD_STACK, .nr_frames = 3 } };
	struct sonde_deferred_record raw = { .type = SONDE_RECORD_DEFERRED, .stack_bytes = UINT32_MAX };

	assert_true(record_is_whole(&stack, sizeof(stack)));
	assert_true(record_is_payload(&stack));
	stack.header.nr_frames = 4;
	assert_false(record_is_whole(&stack, sizeof(stack)));
	assert_false(record_is_whole(&stack, sizeof(stack.header) - 1));
	assert_false(record_is_whole(&raw, sizeof(raw)));
	assert_int_equal(record_bytes(&raw), sizeof(raw) + UINT32_MAX);
	raw.stack_bytes = 0;
	assert_true(record_is_whole(&raw, sizeof(raw)));
	assert_false(record_is_payload(&raw));
}

static void what_is_not_known_is_refused(void **state)
{
	uint64_t record[512] = { 0 };
	const uint32_t types[] = { 0, SONDE_RECORD_RSS + 1, 4711, UINT32_MAX };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		*(uint32_t *)record = types[i];
		for (size_t size = 0; size <= sizeof(record); size += 4)
			assert_false(record_is_whole(record, size));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_of_one_size),
		cmocka_unit_test(records_with_more_behind_them),
		cmocka_unit_test(what_is_not_known_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
