// SPDX-License-Identifier: Apache-2.0
/* The library's functions with an object that -ENOMEM left NULL, and with one whose creation failed. tests/style/style.py checks that no
 * function is left out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sonde/counter.h>
#include <sonde/sonde.h>

#define STRANGE_ERRNO 4095

static void sessions(void **state)
{
	int status;

	assert_string_equal(sonde_session_error(NULL), strerror(ENOMEM));
	assert_int_equal(sonde_session_exit_code(NULL), SONDE_EXIT_FAILED);
	assert_int_equal(sonde_session_run(NULL), -EINVAL);
	assert_int_equal(sonde_session_add_output(NULL, "-", "text"), -EINVAL);
	assert_int_equal(sonde_session_write(NULL), -EINVAL);
	assert_string_equal(sonde_session_account(NULL), "");
	assert_string_equal(sonde_session_total(NULL), "");
	assert_null(sonde_session_warning(NULL));
	assert_false(sonde_session_command_status(NULL, &status));
	assert_false(sonde_session_command_goes_on(NULL));
	assert_null(sonde_session_counters(NULL));
	assert_int_equal(sonde_session_set_rate(NULL, 1), -EINVAL);
	assert_int_equal(sonde_session_set_memory(NULL, 1 << 20), -EINVAL);
	sonde_session_stop(NULL);
	sonde_session_free(NULL);
}

static void profiles(void **state)
{
	const char *text = "";

	assert_string_equal(sonde_profile_error(NULL), strerror(ENOMEM));
	assert_int_equal(sonde_profile_exit_code(NULL), SONDE_EXIT_FAILED);
	assert_int_equal(sonde_profile_read(NULL, "-", NULL), -EINVAL);
	assert_int_equal(sonde_profile_check_output(NULL, "-", NULL), -EINVAL);
	assert_int_equal(sonde_profile_write(NULL, "-", NULL), -EINVAL);
	assert_int_equal(sonde_profile_show(NULL, NULL, &text), -EINVAL);
	assert_int_equal(sonde_profile_diff(NULL, NULL, NULL), -EINVAL);
	assert_int_equal(sonde_profile_read_bytes(NULL, "x", "", 0, NULL), -EINVAL);
	assert_int_equal(sonde_profile_merge(NULL, NULL), -EINVAL);
	assert_int_equal(sonde_profile_merge_part(NULL, NULL, 0, 1), -EINVAL);
	assert_int_equal(sonde_profile_note(NULL, "x"), -EINVAL);
	assert_int_equal(sonde_profile_write_bytes(NULL, NULL, NULL, NULL), -EINVAL);
	assert_null(sonde_profile_warning(NULL));
	assert_int_equal(sonde_profile_nr_samples(NULL), 0);
	assert_int_equal(sonde_profile_nr_histograms(NULL), 0);
	sonde_profile_free(NULL);
}

static void run_queues(void **state)
{
}

static void take_overflow(void *arg, const struct sonde_overflow *overflow)
{
	fail();
}

static void counters(void **state)
{
	struct sonde_counter_info info = { .size = sizeof(info) };
	char *text;
	struct sonde_count count;
	uint64_t nr_lost;

	assert_string_equal(sonde_counters_error(NULL), strerror(ENOMEM));
	assert_false(sonde_counters_has_any(NULL));
	assert_int_equal(sonde_counters_nr(NULL), 0);
	assert_int_equal(sonde_counters_info(NULL, 0, &info), -EINVAL);
	assert_int_equal(sonde_counters_start(NULL), -EINVAL);
	assert_int_equal(sonde_counters_stop(NULL), -EINVAL);
	assert_int_equal(sonde_counters_reset(NULL), -EINVAL);
	assert_int_equal(sonde_counters_read(NULL, &count, 1), -EINVAL);
	assert_int_equal(sonde_counters_json(NULL, &count, 0, &text), -EINVAL);
	assert_int_equal(sonde_counters_overflows(NULL, take_overflow, NULL, &nr_lost), -EINVAL);
	assert_int_equal(sonde_counters_wait(NULL, 0), -EINVAL);
	assert_int_equal(sonde_counters_attach_bpf(NULL, 0, -1), -EINVAL);
	sonde_counters_free(NULL);
	assert_string_equal(sonde_names_error(NULL), strerror(ENOMEM));
	assert_null(sonde_names_at(NULL, 0));
	sonde_names_free(NULL);
}

/* Its options are refused before anything is loaded. */
static void a_session_that_was_not_made(void **state)
{
	const struct sonde_session_options options = { .size = sizeof(options), .user_only = true, .kernel_only = true };
	struct sonde_session *session;
	int status;

	assert_int_equal(sonde_session_new(&options, &session), -EINVAL);
	errno = STRANGE_ERRNO;
	sonde_session_stop(session);
	assert_int_equal(errno, STRANGE_ERRNO);
	assert_int_equal(sonde_session_run(session), -EINVAL);
	assert_int_equal(sonde_session_write(session), 0); /* it has no outputs */
	assert_non_null(sonde_session_account(session));
	assert_null(sonde_session_warning(session));
	assert_false(sonde_session_command_status(session, &status));
	assert_int_equal(sonde_session_exit_code(session), SONDE_EXIT_USAGE);
	sonde_session_free(session);
}

static void a_profile_of_nothing(void **state)
{
	struct sonde_profile *profile = sonde_profile_new();
	const char *text = "";

	assert_int_equal(sonde_profile_write(profile, "-", NULL), -EINVAL);
	assert_int_equal(sonde_profile_show(profile, NULL, &text), -EINVAL);
	assert_int_equal(sonde_profile_diff(profile, profile, NULL), -EINVAL);
	assert_int_equal(sonde_profile_diff(profile, NULL, NULL), -EINVAL);
	assert_int_equal(sonde_profile_merge(profile, NULL), -EINVAL);
	assert_int_equal(sonde_profile_merge_part(profile, profile, 1, 1), -EINVAL);
	assert_int_equal(sonde_profile_note(profile, "x"), -EINVAL);
	assert_int_equal(sonde_profile_write_bytes(profile, NULL, NULL, NULL), -EINVAL);
	assert_null(sonde_profile_warning(profile));
	assert_int_equal(sonde_profile_nr_samples(profile), 0);
	assert_int_equal(sonde_profile_nr_histograms(profile), 0);
	sonde_profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions),
		cmocka_unit_test(profiles),
		cmocka_unit_test(run_queues),
		cmocka_unit_test(counters),
		cmocka_unit_test(a_session_that_was_not_made),
		cmocka_unit_test(a_profile_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
