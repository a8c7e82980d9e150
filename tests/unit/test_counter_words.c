// SPDX-License-Identifier: Apache-2.0
/* Messages of counters on a made-up kernel: missing permissions, the reason for a failed call, and all of it as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "counter_sets.h"

/* --- permissions ---------------------------------------------------------------------------------------------------------------------- */

static int refuse_kernel(const struct perf_event_attr *attr, int pid, int cpu)
{
	return attr->exclude_kernel ? 0 : EACCES;
}

static void check_reason(int (*refuse)(const struct perf_event_attr *attr, int pid, int cpu), const char *name, int err, const char *reason)
{
	struct sonde_counters *set;

	fake_refuse = refuse;
	set = open_set(SET(.names = name), err);
	if (!strstr(info_of(set, 0).error, reason))
		fail_msg("'%s' is not in '%s'", reason, info_of(set, 0).error);
	sonde_counters_free(set);
}

static int refuse_all(const struct perf_event_attr *attr, int pid, int cpu)
{
	return EACCES;
}

static int refuse_emfile(const struct perf_event_attr *attr, int pid, int cpu)
{
	return EMFILE;
}

static int refuse_ebusy(const struct perf_event_attr *attr, int pid, int cpu)
{
	return EBUSY;
}

static int refuse_esrch(const struct perf_event_attr *attr, int pid, int cpu)
{
	return ESRCH;
}

/* As in perf: without the permission to count the kernel, user space is counted. Each event reports that. */
static void test_falls_back_to_user_space(void **state)
{
	struct sonde_event tracepoint = { .size = sizeof(tracepoint), .type = PERF_TYPE_TRACEPOINT, .config = 1 };
	struct sonde_counters *set;

	fake_refuse = refuse_kernel;
	set = open_set(SET(.names = "faults,faults:u,{task-clock,cpu-clock}"), 0);
	assert_int_equal(fake_nr, 4);
	assert_true(fake_events[0].attr.exclude_kernel && fake_events[2].attr.exclude_kernel &&
		    fake_events[3].group_fd == fake_events[2].fd);
	/* user space only, as requested, is not a fallback */
	assert_true(info_of(set, 0).is_user_only && !info_of(set, 1).is_user_only && info_of(set, 3).is_user_only);
	assert_int_equal(info_of(set, 0).flags, 0);
	sonde_counters_free(set);
	/* these have no events in user space, or only the kernel's were requested */
	set = open_set(SET(.names = "cs,faults:k,faults", .events = &tracepoint, .nr_events = 1), -EACCES);
	assert_true(info_of(set, 0).err == -EACCES && info_of(set, 1).err == -EACCES && !info_of(set, 2).err &&
		    info_of(set, 3).err == -EACCES);
	assert_true(!info_of(set, 0).is_user_only && info_of(set, 2).is_user_only && sonde_counters_has_any(set));
	sonde_counters_free(set);
	set = open_set(SET(.names = "faults", .flags = SONDE_COUNTER_NO_FALLBACK), -EACCES);
	assert_non_null(strstr(sonde_counters_error(set), "user space alone (:u) may be permitted"));
	sonde_counters_free(set);
	sonde_counters_free(open_set(SET(.names = "faults", .all_cpus = true), -EACCES)); /* a CPU's user space is other users', too */
}

/* Without the permission to count a CPU, leaving the kernel out does not help. */
static void test_reasons_of_rights(void **state)
{
	struct sonde_counters *set;

	fake_refuse = refuse_all;
	for (int i = 0; i < 2; i++) {
		set = open_set(SET(.names = i ? "page-faults:u" : "page-faults", .all_cpus = !i), -EACCES);
		assert_non_null(strstr(info_of(set, 0).error, "CAP_PERFMON"));
		assert_null(strstr(info_of(set, 0).error, "user space alone"));
		sonde_counters_free(set);
	}
}

static int refuse_enoent(const struct perf_event_attr *attr, int pid, int cpu)
{
	return ENOENT;
}

/* perf_event may be a controller of cgroup version 1. */
static void test_reason_of_cgroups(void **state)
{
	struct sonde_counters *set;

	fake_refuse = refuse_enoent;
	for (int i = 0; i < 2; i++) {
		set = open_set(SET(.names = "page-faults", .cgroup = i ? "a.slice" : NULL), -ENOENT);
		assert_int_equal(strstr(info_of(set, 0).error, "/proc/cgroups") != NULL, i);
		sonde_counters_free(set);
	}
}

static void test_reasons(void **state)
{
	check_reason(refuse_kernel, "cs", -EACCES,
		     "'cs' happens in the kernel, and counting that is not permitted (kernel.perf_event_paranoid is 2): run as root, or "
		     "give CAP_PERFMON to the program");
	check_reason(refuse_emfile, "faults", -EMFILE, "ulimit -n");
	check_reason(refuse_ebusy, "faults", -EBUSY, "for itself");
	check_reason(refuse_esrch, "faults", -ESRCH, "has ended");
}

/* --- messages ------------------------------------------------------------------------------------------------------------------------- */

static void check_error(const struct sonde_counters *set, const char *text)
{
	if (!strstr(sonde_counters_error(set), text))
		fail_msg("'%s' is not in '%s'", text, sonde_counters_error(set));
}

/* Each failing call has a message, which stays valid as long as the set. */
static void test_each_failure_has_words(void **state)
{
	struct sonde_counters *set = open_set(SET(.names = "faults,{cycles,instructions}:D", .flags = SONDE_COUNTER_NO_INHERIT), 0);
	struct sonde_count counts[4];
	const char *first;
	char error[256] = "";

	assert_string_equal(sonde_counters_error(set), "");
	fake_events[1].is_over = true;
	assert_int_equal(sonde_counters_read(set, counts, 3), -EBUSY);
	first = sonde_counters_error(set);
	check_error(set, "'cycles:D' cannot be read: it is pinned, and the PMU has no room for it");
	assert_int_equal(sonde_counters_read(set, counts, 4), -EINVAL);
	check_error(set, "the set has 3 events, not 4");
	assert_int_equal(sonde_counters_reset(set), -EBUSY);
	assert_ptr_equal(sonde_counters_error(set), first);
	fake_fail_at = fake_nr_calls;
	assert_int_equal(sonde_counters_start(set), -EIO);
	check_error(set, "'faults' cannot be started: Input/output error");
	fake_fail_at = fake_nr_calls + 1;
	assert_int_equal(sonde_counters_stop(set), -EIO);
	check_error(set, "'cycles:D' cannot be stopped: Input/output error");
	fake_fail_at = -1;
	assert_int_equal(sonde_counters_overflows(set, NULL, NULL, NULL), -ENODATA);
	check_error(set, "no overflows are recorded");
	assert_int_equal(sonde_counters_wait(set, 0), -ENODATA);
	assert_int_equal(sonde_counters_attach_bpf(set, 9, 0), -EINVAL);
	check_error(set, "the set has 3 events, and none with the number 9");
	sonde_counters_free(set);
	fake_refuse = refuse_hardware;
	set = open_set(SET(.names = "faults,cycles"), -ENOENT);
	assert_int_equal(sonde_counters_attach_bpf(set, 1, 0), -ENOENT);
	check_error(set, "do not count 'cycles'");
	sonde_counters_free(set);
	assert_int_equal(sonde_count_function("cycles", NULL, NULL, counts, error, sizeof(error)), -ENOENT);
	assert_non_null(strstr(error, "do not count 'cycles'"));
	assert_int_equal(sonde_count_function("cs,faults", NULL, NULL, counts, error, sizeof(error)), -EINVAL);
	assert_string_equal(error, "'cs,faults' is not one event");
	assert_int_equal(sonde_count_function_config(0, 0, NULL, NULL, counts, error, 6), -ENOENT);
	assert_string_equal(error, "the p");
}

/* The format of sonde stat, so that one reader handles both. */
static void test_json(void **state)
{
	struct sonde_counters *set;
	struct sonde_count counts[3];
	char *text = NULL;

	fake_refuse = refuse_hardware;
	set = open_set(SET(.names = "page-faults,cycles,task-clock"), -ENOENT);
	tell(&fake_events[0], 7, 100, 100);
	assert_int_equal(sonde_counters_read(set, counts, 3), 0);
	assert_int_equal(sonde_counters_json(set, counts, 200, &text), 0);
	assert_string_equal(text,
			    "{\"format\":\"sonde-counts\",\"version\":1,\"page_faults\":7,\"time_enabled\":100,\"time_running\":100,"
			    "\"duration_ns\":200,\"events\":[\n"
			    "{\"name\":\"page-faults\",\"value\":7,\"enabled_ns\":100,\"running_ns\":100,\"scaled\":false,\"user_only\":"
			    "false,\"error\":null},\n"
			    "{\"name\":\"cycles\",\"value\":null,\"enabled_ns\":0,\"running_ns\":0,\"scaled\":false,\"user_only\":false,"
			    "\"error\":\"the processors of this machine do not count 'cycles' (a virtual machine may hide them)\"},\n"
			    "{\"name\":\"task-clock\",\"value\":null,\"enabled_ns\":0,\"running_ns\":0,\"scaled\":false,\"user_only\":"
			    "false,\"error\":\"what it is counted for did not run\"}]}\n");
	free(text);
	sonde_counters_free(set);
}

#define TEST(name) cmocka_unit_test_setup(name, fake_reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_falls_back_to_user_space), TEST(test_reasons), TEST(test_reasons_of_rights), TEST(test_reason_of_cgroups),
		TEST(test_each_failure_has_words),   TEST(test_json),
	};

	return cmocka_run_group_tests(tests, fake_machine, fake_machine_gone);
}
