// SPDX-License-Identifier: Apache-2.0
/* Which marks stand for something missing: all ends of stacks do, and no state, kind of wait or waker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "frames/mark_kind.h"
#include "model/profile.h"
#include "model/wait_kind.h"

static void ends_of_stacks(void **state)
{
	char name[128];

	for (int i = 0; i < SONDE_STOP_COUNT; i++) {
		snprintf(name, sizeof(name), stop_mark((enum sonde_stop)i), "libc.so.6"); /* marks are our own formats */
		if (*name)
			assert_int_equal(mark_kind_of(name), MARK_CUT);
	}
	for (int i = 0; i < SONDE_RUNTIME_STOP_COUNT; i++) {
		snprintf(name, sizeof(name), runtime_stop_mark((enum sonde_runtime_stop)i), "python");
		if (*name)
			assert_int_equal(mark_kind_of(name), MARK_CUT);
	}
	assert_int_equal(mark_kind_of(PROFILE_CUT), MARK_CUT);
	assert_int_equal(mark_kind_of(PROFILE_NO_NATIVES), MARK_CUT);
	assert_int_equal(mark_kind_of(PROFILE_MISSED_USER), MARK_CUT);
	assert_int_equal(mark_kind_of("[not sampled]"), MARK_CUT);
	assert_int_equal(mark_kind_of("[waker not known]"), MARK_CUT);
	assert_int_equal(mark_kind_of("["), MARK_CUT);
	assert_int_equal(mark_kind_of("[]"), MARK_CUT);
}

static void states_and_waits(void **state)
{
	char name[128];

	assert_int_equal(mark_kind_of(PROFILE_ON_CPU), MARK_RUNNING);
	assert_int_equal(mark_kind_of(PROFILE_RUNNABLE), MARK_READY);
	for (int i = 0; i < WAIT_KIND_COUNT; i++) {
		snprintf(name, sizeof(name), PROFILE_BLOCKED, wait_kind_name((enum wait_kind)i));
		assert_int_equal(mark_kind_of(name), MARK_BLOCKED);
		snprintf(name, sizeof(name), "[%s]", wait_kind_name((enum wait_kind)i));
		assert_int_equal(mark_kind_of(name), !strcmp(name, "[exec]") ? MARK_CUT : MARK_WAIT); /* [exec] ends stacks, too */
	}
	assert_int_equal(mark_kind_of(PROFILE_WAKER), MARK_WAKER);
	assert_int_equal(mark_kind_of(PROFILE_INTERRUPT), MARK_WAKER);
	assert_int_equal(mark_kind_of("kworker/0:1"), MARK_WAKER);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(ends_of_stacks), cmocka_unit_test(states_and_waits) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
