// SPDX-License-Identifier: Apache-2.0
/* Option structs of callers compiled with an older or newer version of the library, or that forgot the size. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <sonde/counter.h>
#include <sonde/sonde.h>

#define FOLDED "main;work 3\n"
#define PAST 24 /* bytes of a newer version */

static char path[] = "/tmp/sonde-options-XXXXXX";

/* Each passes the options to its function. The block has exactly `size` bytes. */
typedef int (*use_fn)(const void *options, char *ret_error, size_t error_bytes);

static int use_session(const void *options, char *ret_error, size_t error_bytes)
{
	struct sonde_session *session;
	int err = sonde_session_new(options, &session);

	assert_int_equal(sonde_session_run(session), -EINVAL); /* creation failed, and the reason is kept */
	snprintf(ret_error, error_bytes, "%s", sonde_session_error(session));
	if (err && sonde_session_exit_code(session) != SONDE_EXIT_USAGE)
		err = -ENOTSUP;
	sonde_session_free(session);
	return err;
}

static int no_text(void *arg, const char *lines)
{
	return 0;
}

static int use_sampling(const void *options, char *ret_error, size_t error_bytes)
{
	return use_session(&(struct sonde_session_options){ .size = sizeof(struct sonde_session_options), .sampling = options }, ret_error,
			   error_bytes);
}

static int use_waits(const void *options, char *ret_error, size_t error_bytes)
{
	return use_session(
	    &(struct sonde_session_options){ .size = sizeof(struct sonde_session_options), .mode = SONDE_OFF_CPU, .waits = options },
	    ret_error, error_bytes);
}

static int use_runq(const void *options, char *ret_error, size_t error_bytes)
{
	return use_session(
	    &(struct sonde_session_options){
		.size = sizeof(struct sonde_session_options), .mode = SONDE_RUN_QUEUE, .runq = options, .text = no_text },
	    ret_error, error_bytes);
}

static int use_counters(const void *options, char *ret_error, size_t error_bytes)
{
	return use_session(
	    &(struct sonde_session_options){ .size = sizeof(struct sonde_session_options), .mode = SONDE_COUNT, .counters = options },
	    ret_error, error_bytes);
}

static int use_profile(int (*use)(struct sonde_profile *profile, const void *options), const void *options, char *ret_error,
		       size_t error_bytes)
{
	struct sonde_profile *profile = sonde_profile_new();
	int err;

	assert_int_equal(sonde_profile_read(profile, path, NULL), 0);
	err = use(profile, options);
	snprintf(ret_error, error_bytes, "%s", err ? sonde_profile_error(profile) : "");
	if (err && sonde_profile_exit_code(profile) != SONDE_EXIT_USAGE)
		err = -ENOTSUP;
	sonde_profile_free(profile);
	return err;
}

static int read_once_more(struct sonde_profile *profile, const void *options)
{
	return sonde_profile_read(profile, path, options);
}

static int write_again(struct sonde_profile *profile, const void *options)
{
	return sonde_profile_write(profile, "/tmp/sonde-options.folded", options);
}

static int show(struct sonde_profile *profile, const void *options)
{
	const char *text = NULL;
	int err = sonde_profile_show(profile, options, &text);

	assert_true(err || strstr(text, "work"));
	return err;
}

static int use_read(const void *options, char *ret_error, size_t error_bytes)
{
	return use_profile(read_once_more, options, ret_error, error_bytes);
}

static int use_write(const void *options, char *ret_error, size_t error_bytes)
{
	return use_profile(write_again, options, ret_error, error_bytes);
}

static int use_show(const void *options, char *ret_error, size_t error_bytes)
{
	return use_profile(show, options, ret_error, error_bytes);
}

/* `known` with another size: bytes are missing at its end, or more follow, the last of which is `last`. */
static void check(use_fn use, const void *known, size_t known_bytes, size_t bytes, size_t said_bytes, unsigned char last, int err,
		  const char *text)
{
	unsigned char *given = calloc(1, bytes);
	char error[512] = "";
	int got;

	assert_non_null(given);
	memcpy(given, known, known_bytes < bytes ? known_bytes : bytes);
	memcpy(given, &said_bytes, sizeof(said_bytes));
	if (bytes > known_bytes)
		given[bytes - 1] = last;
	got = use(given, error, sizeof(error));
	free(given);
	if (got != err || !strstr(error, text))
		fail_msg("%zu bytes that say %zu: %d, not %d: '%s' without '%s'", bytes, said_bytes, got, err, error, text);
}

/* `smaller`: the size of the struct's first version, or less. */
static void check_sizes(use_fn use, const void *known, size_t bytes, size_t smaller, int err, const char *text)
{
	check(use, known, bytes, bytes, bytes, 0, err, text);
	check(use, known, bytes, smaller, smaller, 0, err, text);
	check(use, known, bytes, bytes + PAST, bytes + PAST, 0, err, text);
	check(use, known, bytes, bytes + PAST, bytes + PAST, 1, -E2BIG, "this version of the library");
	check(use, known, bytes, bytes, 0, 0, -EINVAL, "their size");
	check(use, known, bytes, bytes, 4, 0, -EINVAL, "their size");
	check(use, known, bytes, bytes, SIZE_MAX, 0, -E2BIG, "this version of the library");
}

static void sizes(void **state)
{
	/* refused for their values, so nothing is loaded */
	const struct sonde_session_options session = { .user_only = true, .kernel_only = true };
	const struct sonde_sampling_options sampling = { .freq_hz = 1, .period = 1 };
	const struct sonde_wait_options waits = { .min_ns = 2, .max_ns = 1 };
	const struct sonde_runq_options runq = { .what = SONDE_RUNQ_LENGTH, .by = SONDE_RUNQ_BY_TID };
	const struct sonde_counter_options counters = { .cgroup = "/" };
	const struct sonde_read_options read = { .max_bytes = 1 << 20 };
	const struct sonde_write_options write = { .threads = false };
	const struct sonde_show_options shown = { .view = SONDE_VIEW_TOP };

	check_sizes(use_session, &session, sizeof(session), offsetof(struct sonde_session_options, stack_storage), -EINVAL,
		    "exclude each other");
	check_sizes(use_sampling, &sampling, sizeof(sampling), offsetof(struct sonde_sampling_options, cpu), -EINVAL, "exclude each other");
	check_sizes(use_waits, &waits, sizeof(waits), offsetof(struct sonde_wait_options, state), -EINVAL, "no wait is at least");
	check_sizes(use_runq, &runq, sizeof(runq), sizeof(runq), -EINVAL, "a histogram for each CPU, or one for all");
	check_sizes(use_counters, &counters, sizeof(counters), offsetof(struct sonde_counter_options, cpus), -EINVAL,
		    "the session's options say");
	check_sizes(use_read, &read, sizeof(read), offsetof(struct sonde_read_options, no_lines), 0, "");
	check_sizes(use_write, &write, sizeof(write), offsetof(struct sonde_write_options, value), 0, "");
	check_sizes(use_show, &shown, sizeof(shown), offsetof(struct sonde_show_options, width), 0, "");
}

/* Refused before anything is loaded. */
static void labels_of_processes(void **state)
{
	static const char *const many[] = { "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", NULL };
	static const char *const odd[] = { "A", "B=C", NULL }, *const one[] = { "A", NULL };
	const struct {
		struct sonde_session_options options;
		const char *error;
	} cases[] = {
		{ { .environment = one }, "are labels of processes, which are not requested" },
		{ { .process_labels = true, .environment = many }, "16 variables" },
		{ { .process_labels = true, .environment = odd }, "'B=C' is no name of a variable" },
		{ { .process_labels = true, .mode = SONDE_RUN_QUEUE, .text = no_text }, "this mode has none" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sonde_session_options options = cases[i].options;
		char error[512];

		options.size = sizeof(options);
		assert_int_equal(use_session(&options, error, sizeof(error)), -EINVAL);
		if (!strstr(error, cases[i].error))
			fail_msg("'%s' is not in: %s", cases[i].error, error);
	}
}

static void none_are_all_zeros(void **state)
{
	char error[512];

	assert_int_equal(use_read(NULL, error, sizeof(error)), 0);
	assert_int_equal(use_write(NULL, error, sizeof(error)), 0);
	assert_int_equal(use_show(NULL, error, sizeof(error)), 0);
}

static void count_one(void *arg)
{
	++*(unsigned *)arg;
}

/* A sandbox may close once bytes are there, but perf.data needs more than its bytes. */
static void who_wants_a_sandbox_is_told(void **state)
{
	unsigned nr = 0;
	const struct sonde_read_options as_folded = { .size = sizeof(as_folded), .on_bytes = count_one, .on_bytes_arg = &nr };
	const struct sonde_read_options as_perf_data = {
		.size = sizeof(as_perf_data), .format = "perf-data", .on_bytes = count_one, .on_bytes_arg = &nr
	};
	char error[512];

	assert_int_equal(use_read(&as_folded, error, sizeof(error)), 0);
	assert_int_equal(nr, 1);
	assert_int_not_equal(use_read(&as_perf_data, error, sizeof(error)), 0);
	assert_int_equal(nr, 1);
}

static int set_up(void **state)
{
	int fd = mkstemp(path);
	ssize_t written = fd < 0 ? -1 : write(fd, FOLDED, strlen(FOLDED));

	close(fd);
	return written != (ssize_t)strlen(FOLDED);
}

static int tear_down(void **state)
{
	unlink("/tmp/sonde-options.folded");
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sizes), cmocka_unit_test(labels_of_processes),
					    cmocka_unit_test(none_are_all_zeros),
					    cmocka_unit_test(who_wants_a_sandbox_is_told) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
