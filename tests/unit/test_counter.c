// SPDX-License-Identifier: Apache-2.0
/* Counters on a made-up kernel (fake_perf.h): what they request from the kernel, and what they make of its answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sonde/counter.h>

#include "counter_sets.h"

#define CACHE_MISS(cache) (PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)
/* Opening the set fails: no event, a reason. */
static void check_refused(const struct sonde_counter_options *options, int want, const char *reason)
{
	int nr_fds = nr_open_fds();
	struct sonde_counters *set = open_set(options, want);

	assert_false(sonde_counters_has_any(set));
	assert_int_equal(sonde_counters_nr(set), 0);
	if (!strstr(sonde_counters_error(set), reason))
		fail_msg("'%s' is not in '%s'", reason, sonde_counters_error(set));
	sonde_counters_free(set);
	assert_int_equal(nr_open_fds(), nr_fds);
}

/* --- requests to the kernel ----------------------------------------------------------------------------------------------------------- */

static void test_one(void **state)
{
	struct sonde_counters *set = NULL;
	const struct fake_event *event = &fake_events[0];

	assert_int_equal(sonde_counters_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, -1, 0, &set), 0);
	assert_int_equal(fake_nr, 1);
	assert_true(event->attr.disabled && event->attr.exclude_hv && event->attr.inherit && !event->attr.enable_on_exec);
	assert_false(event->attr.exclude_user || event->attr.exclude_kernel || event->attr.exclude_idle || event->attr.exclude_guest ||
		     event->attr.exclude_host);
	assert_int_equal(event->attr.read_format, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	assert_true(event->pid == 0 && event->cpu == -1 && event->group_fd == -1 && event->flags == PERF_FLAG_FD_CLOEXEC);
	assert_string_equal(info_of(set, 0).name, "cycles");
	assert_string_equal(info_of(set, 0).json_name, "cpu_cycles");
	assert_false(event->on);
	assert_int_equal(sonde_counters_start(set), 0);
	assert_true(event->on);
	assert_int_equal(sonde_counters_stop(set), 0);
	assert_false(event->on);
	sonde_counters_free(set);
}

static void check_flag(uint64_t flags, struct perf_event_attr want)
{
	struct sonde_counters *set = NULL;
	struct perf_event_attr *attr = &fake_events[fake_nr].attr;

	assert_int_equal(sonde_counters_open(PERF_TYPE_SOFTWARE, 0, 0, -1, flags, &set), 0);
	assert_true(attr->disabled == want.disabled && attr->enable_on_exec == want.enable_on_exec && attr->inherit == want.inherit &&
		    attr->exclude_hv == want.exclude_hv && attr->exclude_user == want.exclude_user &&
		    attr->exclude_kernel == want.exclude_kernel && attr->exclude_host == want.exclude_host &&
		    attr->exclude_guest == want.exclude_guest && attr->exclude_idle == want.exclude_idle && attr->pinned == want.pinned &&
		    attr->exclusive == want.exclusive);
	sonde_counters_free(set);
}

#define USUAL .disabled = 1, .exclude_hv = 1, .inherit = 1

static void test_flags(void **state)
{
	check_flag(SONDE_COUNTER_ENABLED, (struct perf_event_attr){ .exclude_hv = 1, .inherit = 1 });
	check_flag(SONDE_COUNTER_ON_EXEC, (struct perf_event_attr){ USUAL, .enable_on_exec = 1 });
	check_flag(SONDE_COUNTER_NO_INHERIT, (struct perf_event_attr){ .disabled = 1, .exclude_hv = 1 });
	check_flag(SONDE_COUNTER_HYPERVISOR, (struct perf_event_attr){ .disabled = 1, .inherit = 1 });
	check_flag(SONDE_COUNTER_NO_USER, (struct perf_event_attr){ USUAL, .exclude_user = 1 });
	check_flag(SONDE_COUNTER_NO_KERNEL, (struct perf_event_attr){ USUAL, .exclude_kernel = 1 });
	check_flag(SONDE_COUNTER_NO_HOST, (struct perf_event_attr){ USUAL, .exclude_host = 1 });
	check_flag(SONDE_COUNTER_NO_GUEST, (struct perf_event_attr){ USUAL, .exclude_guest = 1 });
	check_flag(SONDE_COUNTER_NO_IDLE, (struct perf_event_attr){ USUAL, .exclude_idle = 1 });
	check_flag(SONDE_COUNTER_PINNED, (struct perf_event_attr){ USUAL, .pinned = 1 });
	check_flag(SONDE_COUNTER_EXCLUSIVE, (struct perf_event_attr){ USUAL, .exclusive = 1 });
}

/* Checks the targets: "pid/cpu" of each event, in order. */
static void check_targets(const struct sonde_counter_options *options, const char *want, unsigned long flags)
{
	struct sonde_counters *set;
	char text[256] = "";
	size_t size = 0;

	fake_nr = 0;
	set = open_set(options, 0);
	for (int i = 0; i < fake_nr; i++) {
		size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%d/%d", i ? " " : "",
					 flags & PERF_FLAG_PID_CGROUP ? 0 : fake_events[i].pid, fake_events[i].cpu);
		assert_int_equal(fake_events[i].flags, flags | PERF_FLAG_FD_CLOEXEC);
		/* the whole machine has no children to inherit */
		assert_int_equal(fake_events[i].attr.inherit, fake_events[i].pid != -1 && !flags);
	}
	assert_string_equal(text, want);
	sonde_counters_free(set);
}

static void test_targets(void **state)
{
	static const uint32_t tgids[] = { 5 }, tids[] = { 8, 9 }, twice[] = { 8, 9, 8 }, cpus[] = { 1, 3 };
	char id[24];

	check_targets(SET(.names = "cs"), "0/-1", 0);
	check_targets(SET(.names = "cs", .all_cpus = true), "-1/0 -1/1 -1/2", 0);
	check_targets(SET(.names = "cs", .cpus = cpus, .nr_cpus = 2), "-1/1 -1/3", 0);
	check_targets(SET(.names = "cs", .tids = tids, .nr_tids = 2), "8/-1 9/-1", 0);
	check_targets(SET(.names = "cs", .tids = tids, .nr_tids = 1, .cpus = cpus, .nr_cpus = 2), "8/1 8/3", 0);
	check_targets(SET(.names = "cs", .cgroup = "a.slice"), "0/0 0/1 0/2", PERF_FLAG_PID_CGROUP);
	check_targets(SET(.names = "cs", .cgroup = "/a.slice", .cpus = cpus, .nr_cpus = 1), "0/1", PERF_FLAG_PID_CGROUP);
	check_targets(SET(.names = "cs", .cgroup = "/sys/fs/cgroup/unified/a.slice"), "0/0 0/1 0/2", PERF_FLAG_PID_CGROUP);
	check_targets(SET(.names = "cs", .cgroup = fake_cgroup_id(id)), "0/0 0/1 0/2", PERF_FLAG_PID_CGROUP);
	assert_int_equal(fake_events[0].cgroup_inode, strtoull(id, NULL, 10));
	check_targets(SET(.names = "cs", .tids = twice, .nr_tids = 3), "8/-1 9/-1", 0); /* each once */
	fake_nr = 0;
	sonde_counters_free(
	    open_set(SET(.names = "cs", .tgids = (uint32_t[]){ 5, 5 }, .nr_tgids = 2, .tids = (uint32_t[]){ 6 }, .nr_tids = 1), 0));
	assert_int_equal(fake_nr, 3); /* 6 is a thread of 5 */
	fake_nr = 0;
	sonde_counters_free(open_set(SET(.names = "cs", .tgids = tgids, .nr_tgids = 1), 0));
	assert_int_equal(fake_nr, 3);
	assert_int_equal(fake_events[0].pid + fake_events[1].pid + fake_events[2].pid, 5 + 6 + 7);
}

static void test_open_by_pid_and_cpu(void **state)
{
	static const struct {
		int32_t pid, cpu;
		uint64_t flags;
		int nr, first_pid, first_cpu;
	} cases[] = { { 0, 2, 0, 1, 0, 2 },
		      { -1, 1, 0, 1, -1, 1 },
		      { -1, -1, 0, 3, -1, 0 },
		      { 5, -1, SONDE_COUNTER_ONE_THREAD, 1, 5, -1 },
		      { 5, -1, 0, 3, -2, -1 } };
	struct sonde_counters *set;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake_nr = 0;
		assert_int_equal(sonde_counters_open(1, 2, cases[i].pid, cases[i].cpu, cases[i].flags, &set), 0);
		assert_int_equal(fake_nr, cases[i].nr);
		assert_true(cases[i].first_pid == -2 || fake_events[0].pid == cases[i].first_pid);
		assert_int_equal(fake_events[0].cpu, cases[i].first_cpu);
		sonde_counters_free(set);
	}
	assert_int_equal(sonde_counters_open(1, 2, -2, -1, 0, &set), -EINVAL);
	sonde_counters_free(set);
	assert_int_equal(sonde_counters_open(1, 2, 4711, -1, 0, &set), -ESRCH);
	assert_non_null(strstr(sonde_counters_error(set), "4711"));
	sonde_counters_free(set);
}

/* --- names ---------------------------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	uint32_t type;
	uint64_t config, config1, flags;
} known[] = {
	{ "cycles", 0, 0, 0, 0 },
	{ "cpu_cycles:u", 0, 0, 0, SONDE_COUNTER_NO_KERNEL },
	{ "cycles:uk", 0, 0, 0, 0 },
	{ "cycles:kh", 0, 0, 0, SONDE_COUNTER_NO_USER | SONDE_COUNTER_HYPERVISOR },
	{ "cycles:GDe", 0, 0, 0, SONDE_COUNTER_NO_HOST | SONDE_COUNTER_PINNED | SONDE_COUNTER_EXCLUSIVE },
	{ "cycles:HI", 0, 0, 0, SONDE_COUNTER_NO_GUEST | SONDE_COUNTER_NO_IDLE },
	{ "dTLB-load-misses", 3, CACHE_MISS(DTLB), 0, 0 },
	{ "r1a8:k", 4, 0x1a8, 0, SONDE_COUNTER_NO_USER },
	{ "sched:sched_switch", 2, 318, 0, 0 },
	{ "sched:sched_switch:u", 2, 318, 0, SONDE_COUNTER_NO_KERNEL },
	{ "cpu/event=0x3c,umask=1/", 4, 0x13c, 0, 0 },
	{ "cpu/event=0x3c,umask=1/:u", 4, 0x13c, 0, SONDE_COUNTER_NO_KERNEL },
	{ "cpu/cpu-cycles/", 4, 0x3c, 0, 0 },
	{ "cpu/cycles/", 0, 0, 0, 0 },
	{ "cpu/event=0x3c,umask=1/uk", 4, 0x13c, 0, 0 },
	{ "cpu/cycles/k", 0, 0, 0, SONDE_COUNTER_NO_USER },
	{ "cpu/LLC-load-misses/:k", 3, CACHE_MISS(LL), 0, SONDE_COUNTER_NO_USER },
	{ "cpu/cpu-cycles,edge/", 4, 0x4003c, 0, 0 },
	{ "cpu/event=0xabc/", 4, 0xa000000bc, 0, 0 },
	{ "cpu/mem-loads,umask=2/", 4, 0x2cd, 3, 0 },
	{ "cpu/of-core,umask=5/", 4, 0x507, 0, 0 },
	{ "cpu/config=0xfeed,config1=12/", 4, 0xfeed, 12, 0 },
	{ "power/energy-pkg/", 21, 2, 0, 0 },
	{ "uncore_imc/event=4/", 30, 4, 0, 0 },
	{ "uncore_imc_1/event=4/", 31, 4, 0, 0 },
};

static void test_names(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct sonde_event event = { .size = sizeof(event) };
		char error[200] = "";
		int err = sonde_event_parse(known[i].text, &event, error, sizeof(error));

		if (err || event.type != known[i].type || event.config != known[i].config || event.config1 != known[i].config1 ||
		    event.flags != known[i].flags)
			fail_msg("%s: %d %s: %u %#lx %#lx %#lx", known[i].text, err, error, event.type, event.config, event.config1,
				 event.flags);
		assert_string_equal(event.name, known[i].text);
	}
}

static void test_names_that_make_no_sense(void **state)
{
	static const struct {
		const char *text, *reason;
		int err;
	} bad[] = {
		{ "", "no such event", -EINVAL },
		{ "cycels", "no such event", -EINVAL },
		{ "cycles:z", "no such event", -EINVAL },
		{ "cycles:", "no such event", -EINVAL },
		{ ":u", "no such event", -EINVAL },
		{ "cpu/", "write pmu/terms/", -EINVAL },
		{ "cpu/event=1/x", "write pmu/terms/", -EINVAL },
		{ "cpu/event=x/", "want a number", -EINVAL },
		{ "cpu/event=0x1000/", "does not fit", -EINVAL },
		{ "cpu/nothing/", "no event 'nothing'", -ENOENT },
		{ "cpu/nothing=1/", "no field 'nothing'", -ENOENT },
		{ "cpu/of-core/", "needs 'umask'", -EINVAL },
		{ "cpu/strange=1/", "in an unknown way", -EINVAL },
		{ "gpu/x/", "no PMU 'gpu'", -ENOENT },
		{ "../x/", "no name of a PMU", -EINVAL },
		{ "cpu/../type/", "no field of an event", -EINVAL },
		{ "cpu//", "no field of an event", -EINVAL },
		{ "power/bad/", "is no number: 'many'", -EBADMSG },
		{ "sched:nothing", "no tracepoint 'sched:nothing'", -ENOENT },
		{ "broken/x/", "cannot read the PMU 'broken'", -EINVAL },
		{ "sched:.", "no name of a tracepoint", -EINVAL },
		{ "sched:../x", "write pmu/terms/", -EINVAL },
		{ "sched:sched_switch:z", "no such event", -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct sonde_event event = { .size = sizeof(event) };
		char error[300] = "";
		int err = sonde_event_parse(bad[i].text, &event, error, sizeof(error));

		if (err != bad[i].err || !strstr(error, bad[i].reason))
			fail_msg("'%s': %d, want %d: %s", bad[i].text, err, bad[i].err, error);
		assert_int_equal(event.type + event.config + event.name[0], 0);
	}
}

/* Where tracefs is not mounted, it is mounted privately, or the message says how to mount it. */
static void test_tracefs_elsewhere(void **state)
{
	struct sonde_event event = { .size = sizeof(event) };
	char error[300], here[512], there[512];

	fake_path("/sys/kernel/tracing", here, sizeof(here));
	fake_path("/sys/kernel/away", there, sizeof(there));
	assert_int_equal(rename(here, there), 0);
	assert_int_equal(sonde_event_parse("net:net_dev_xmit", &event, error, sizeof(error)), -ENODEV);
	assert_non_null(strstr(error, "CONFIG_EVENT_TRACING"));
	fake_mount_errno = EPERM;
	assert_int_equal(sonde_event_parse("net:net_dev_xmit", &event, error, sizeof(error)), -EPERM);
	assert_non_null(strstr(error, "mount -t tracefs"));
	assert_int_equal(mkdir(here, 0755), 0); /* a mount point */
	fake_mount_errno = 0;
	assert_int_equal(sonde_event_parse("net:net_dev_xmit", &event, error, sizeof(error)), 0);
	assert_int_equal(event.config, 9);
	assert_int_equal(rmdir(here), 0);
	assert_int_equal(rename(there, here), 0);
}

/* --- sets ----------------------------------------------------------------------------------------------------------------------------- */

static void test_missing_events(void **state)
{
	struct sonde_counters *set;
	struct sonde_count counts[4];

	fake_refuse = refuse_hardware;
	set = open_set(SET(.names = "page-faults,cycles,gpu/x/,task-clock"), -ENOENT);
	assert_true(sonde_counters_has_any(set));
	assert_int_equal(sonde_counters_nr(set), 4);
	assert_non_null(strstr(sonde_counters_error(set), "do not count 'cycles'"));
	assert_non_null(strstr(info_of(set, 1).error, "do not count 'cycles'"));
	assert_non_null(strstr(info_of(set, 2).error, "no PMU 'gpu'"));
	assert_true(!info_of(set, 0).err && !*info_of(set, 0).error && !info_of(set, 3).err);
	fake_events[1].value = 12;
	assert_int_equal(sonde_counters_read(set, counts, 4), 0);
	assert_true(counts[1].err == -ENOENT && counts[2].err == -ENOENT && !counts[3].err && counts[3].value == 12);
	assert_int_equal(sonde_counters_read(set, counts, 2), 0);
	assert_int_equal(sonde_counters_attach_bpf(set, 1, 0), -ENOENT);
	assert_int_equal(sonde_counters_attach_bpf(set, 9, 0), -EINVAL);
	sonde_counters_free(set);
	set = open_set(SET(.names = "cycles,LLC-loads"), -ENOENT);
	assert_false(sonde_counters_has_any(set));
	assert_int_equal(sonde_counters_nr(set), 2);
	assert_int_equal(sonde_counters_start(set), 0);
	sonde_counters_free(set);
}

static void test_nothing_of_the_kernel(void **state)
{
	struct sonde_counters *set = open_set(SET(.names = "faults,cs,migrations,cs:k", .flags = SONDE_COUNTER_NO_KERNEL), -EOPNOTSUPP);

	assert_int_equal(fake_nr, 1);
	assert_non_null(strstr(info_of(set, 2).error, "'migrations' happens in the kernel"));
	sonde_counters_free(set);
	fake_nr = 0;
	set = open_set(SET(.names = "cs,cs:k,{faults,cs}:u"), -EOPNOTSUPP);
	assert_true(fake_nr == 3 && info_of(set, 3).err == -EOPNOTSUPP);
	sonde_counters_free(set);
}

static void test_refused(void **state)
{
	static const uint32_t ids[] = { 5 }, gone[] = { 99 }, ended[] = { 5, 6 }, big[] = { UINT32_MAX };
	struct {
		struct sonde_counter_options options;
		uint64_t later[2];
	} newer = { .options = { .size = sizeof(newer), .names = "cs" } };
	struct sonde_counter_options older = { .size = offsetof(struct sonde_counter_options, flags), .names = "cs", .flags = ~0ull };
	struct sonde_event twice = { .size = sizeof(twice), .period = 1, .freq_hz = 1 },
			   flagged = { .size = sizeof(flagged), .flags = SONDE_COUNTER_SCALE }, unsized = { 0 };
	struct sonde_event *mixed = calloc(2, sizeof(*mixed)); /* the second struct has a size larger than the whole array */

	mixed[0] = (struct sonde_event){ .size = sizeof(*mixed), .type = 1 };
	mixed[1] = (struct sonde_event){ .size = 4096, .type = 1 };
	check_refused(SET(), -ENODATA, "no events");
	check_refused(SET(.names = "cycles,bogus"), -EINVAL, "bogus");
	check_refused(SET(.names = "{cycles,instructions"), -EINVAL, "brace is open");
	check_refused(SET(.names = "cycles}"), -EINVAL, "brace where none");
	check_refused(SET(.names = "{a,{b}}"), -EINVAL, "group within a group");
	check_refused(SET(.names = "{cycles}cs"), -EINVAL, "want a comma");
	check_refused(SET(.names = "{cycles}:"), -EINVAL, "no such modifiers");
	check_refused(SET(.names = "{cycles}:z"), -EINVAL, "no such event");
	check_refused(SET(.names = "cs", .kinds = 8), -EINVAL, "kinds");
	check_refused(SET(.names = "cs", .flags = 1ull << 40), -EINVAL, "unknown flags");
	check_refused(SET(.names = "cs", .flags = SONDE_COUNTER_ENABLED | SONDE_COUNTER_ON_EXEC), -EINVAL, "not both");
	check_refused(SET(.names = "cs", .ring_bytes = 5000), -EINVAL, "power of two");
	check_refused(SET(.names = "cs", .max_callers = 128), -EINVAL, "callers");
	check_refused(SET(.names = "cs", .cpus = ids, .nr_cpus = 1, .all_cpus = true), -EINVAL, "exclude");
	check_refused(SET(.names = "cs", .cgroup = "a.slice", .tids = ids, .nr_tids = 1), -EINVAL, "excludes");
	check_refused(SET(.names = "cs", .cgroup = "nowhere"), -ENOENT, "no cgroup 'nowhere'");
	check_refused(SET(.names = "cs", .cgroup = "1"), -ENOENT, "no cgroup with the id 1");
	check_refused(SET(.names = "cs", .cgroup = ""), -EINVAL, "by its path or its id");
	check_refused(SET(.names = "cs", .cgroup = "/a.slice/cgroup.procs"), -EINVAL, "a cgroup is a directory");
	check_refused(SET(.names = "cs", .tgids = gone, .nr_tgids = 1), -ESRCH, "no process 99");
	check_refused(SET(.names = "cs", .tgids = ended, .nr_tgids = 2), -ESRCH, "process 6 has just ended");
	check_refused(SET(.names = "gpu/x/,cs", .tids = big, .nr_tids = 1), -ESRCH, "no thread");
	check_refused(SET(.names = "cs", .cpus = (uint32_t[]){ 1, 0, 1 }, .nr_cpus = 3), -EINVAL, "CPU 1 is in the list twice");
	check_refused(SET(.names = "cs", .cpus = big, .nr_cpus = 1), -EINVAL, "no CPU");
	check_refused(SET(.events = &twice, .nr_events = 1), -EINVAL, "exclude each other");
	check_refused(SET(.events = &flagged, .nr_events = 1), -EINVAL, "unknown flags");
	check_refused(SET(.events = &unsized, .nr_events = 1), -EINVAL, "size");
	check_refused(SET(.events = mixed, .nr_events = 2), -EINVAL, "event 1 of the list has another size");
	check_refused(&(struct sonde_counter_options){ .names = "cs" }, -EINVAL, "size");
	sonde_counters_free(open_set(&newer.options, 0));
	newer.later[1] = 1;
	check_refused(&newer.options, -E2BIG, "does not know");
	check_refused(NULL, -ENODATA, "no events");
	sonde_counters_free(open_set(&older, 0)); /* its struct ends before the flags */
	free(mixed);
}

/* Callers compiled with another version: their arrays have another stride, and their structs end elsewhere. */
static void test_other_versions(void **state)
{
	struct older {
		char bytes[offsetof(struct sonde_event, period)];
	} older[2];
	struct newer {
		struct sonde_event event;
		uint64_t later;
	} newer[2] = { { .event = { .size = sizeof(*newer), .type = 1, .config = 2 } },
		       { .event = { .size = sizeof(*newer), .type = 1, .config = 3 } } };
	struct {
		struct sonde_counter_info info;
		uint64_t later, behind;
	} long_info = { .info = { .size = sizeof(long_info) - 8 }, .later = 7, .behind = 9 };
	struct sonde_counter_info short_info = { .size = offsetof(struct sonde_counter_info, unit), .unit = "kept" },
				  no_info = { .size = 4 };
	struct sonde_counters *set;

	for (int i = 0; i < 2; i++) {
		struct sonde_event event = { .size = sizeof(*older), .type = 1, .config = (uint64_t)i + 2, .period = 1000 };

		memcpy(&older[i], &event, sizeof(older[i]));
	}
	set = open_set(SET(.events = (void *)older, .nr_events = 2, .ring_bytes = 8192), 0);
	assert_true(fake_nr == 2 && fake_events[1].attr.config == 3 && !fake_events[1].attr.sample_period);
	assert_int_equal(sonde_counters_info(set, 1, &short_info), 0);
	assert_string_equal(short_info.name, "context-switches");
	assert_string_equal(short_info.unit, "kept");
	assert_int_equal(short_info.size, offsetof(struct sonde_counter_info, unit));
	assert_int_equal(sonde_counters_info(set, 1, &long_info.info), 0);
	assert_true(long_info.info.config == 3 && long_info.later == 0 && long_info.behind == 9 &&
		    long_info.info.size == sizeof(long_info) - 8);
	assert_int_equal(sonde_counters_info(set, 1, &no_info), -EINVAL);
	sonde_counters_free(set);
	fake_nr = 0;
	sonde_counters_free(open_set(SET(.events = &newer[0].event, .nr_events = 2), 0));
	assert_true(fake_nr == 2 && fake_events[1].attr.config == 3);
	newer[1].later = 1;
	check_refused(SET(.events = &newer[0].event, .nr_events = 2), -E2BIG, "event 1");
}

static void test_kinds(void **state)
{
	struct sonde_counters *set = open_set(SET(.kinds = SONDE_EVENTS_HARDWARE | SONDE_EVENTS_SOFTWARE | SONDE_EVENTS_CACHE), 0);

	assert_int_equal(sonde_counters_nr(set), 10 + 9 + 32);
	assert_string_equal(info_of(set, 50).json_name, "node_prefetch_miss");
	assert_string_equal(info_of(set, 10).unit, "ns");
	sonde_counters_free(set);
}

/* --- groups --------------------------------------------------------------------------------------------------------------------------- */

static void test_group(void **state)
{
	static const struct sonde_event numbered[] = { { .size = sizeof(*numbered), .type = 1, .config = 2, .group = 1 },
						       { .size = sizeof(*numbered), .type = 1, .config = 3, .group = 1 },
						       { .size = sizeof(*numbered), .type = 1, .config = 4 } };
	struct sonde_counters *set =
	    open_set(SET(.names = "cs,{cycles,instructions}:u,{faults,migrations:k}", .flags = SONDE_COUNTER_NO_INHERIT), 0);
	struct sonde_count counts[5];

	assert_int_equal(fake_nr, 5);
	assert_true(fake_events[0].group_fd == -1 && fake_events[1].group_fd == -1 && fake_events[2].group_fd == fake_events[1].fd &&
		    fake_events[3].group_fd == -1 && fake_events[4].group_fd == fake_events[3].fd);
	assert_true(fake_events[1].attr.disabled && !fake_events[2].attr.disabled); /* a member follows its leader */
	assert_true(fake_events[1].attr.exclude_kernel && fake_events[2].attr.exclude_kernel && !fake_events[3].attr.exclude_kernel &&
		    fake_events[4].attr.exclude_user);
	assert_true(fake_events[1].attr.read_format & PERF_FORMAT_GROUP && !(fake_events[2].attr.read_format & PERF_FORMAT_GROUP));
	assert_string_equal(info_of(set, 2).name, "instructions:u");
	assert_true(info_of(set, 0).flags == 0 && info_of(set, 2).flags == SONDE_COUNTER_NO_KERNEL);
	assert_true(info_of(set, 0).group == 0 && info_of(set, 1).group == 1 && info_of(set, 2).group == 1 && info_of(set, 4).group == 2);
	fake_events[1].value = 100;
	fake_events[1].enabled = fake_events[1].running = 7;
	fake_events[2].value = 250;
	assert_int_equal(sonde_counters_read(set, counts, 5), 0);
	assert_true(counts[1].value == 100 && counts[2].value == 250 && counts[2].enabled_ns == 7 && counts[2].running_ns == 7 &&
		    counts[0].value == 0);
	assert_int_equal(sonde_counters_start(set), 0);
	assert_true(fake_events[0].on && fake_events[1].on && fake_events[3].on);
	fake_events[1].is_over = true;
	assert_int_equal(sonde_counters_read(set, counts, 5), -EBUSY);
	assert_true(counts[1].err == -EBUSY && counts[2].err == -EBUSY && !counts[3].err);
	sonde_counters_free(set);
	fake_nr = 0; /* groups of names, and groups of numbers */
	set = open_set(SET(.names = "{cycles,instructions}", .events = numbered, .nr_events = 3), 0);
	assert_true(fake_events[2].group_fd == -1 && fake_events[3].group_fd == fake_events[2].fd && fake_events[4].group_fd == -1);
	sonde_counters_free(set);
	/* inherited: each event is read on its own */
	fake_nr = 0;
	set = open_set(SET(.names = "cycles,instructions", .flags = SONDE_COUNTER_GROUP), 0);
	assert_true(fake_events[1].group_fd == fake_events[0].fd && !(fake_events[0].attr.read_format & PERF_FORMAT_GROUP));
	sonde_counters_free(set);
}

static int refuse_instructions(const struct perf_event_attr *attr, int pid, int cpu)
{
	return attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_INSTRUCTIONS ? ENOENT : 0;
}

static void test_group_with_missing(void **state)
{
	struct sonde_counters *set;
	struct sonde_count counts[3];

	fake_refuse = refuse_instructions;
	set = open_set(SET(.names = "{cycles,instructions,branches}", .all_cpus = true), -ENOENT);
	fake_events[0].value = fake_events[1].value = 1;
	fake_events[3].value = fake_events[5].value = 5;
	assert_int_equal(sonde_counters_read(set, counts, 3), 0);
	assert_true(counts[0].value == 2 && counts[1].err == -ENOENT && counts[2].value == 10);
	sonde_counters_free(set);
	set = open_set(SET(.names = "{instructions,cycles}"), -ENOENT);
	assert_false(sonde_counters_has_any(set));
	assert_non_null(strstr(info_of(set, 1).error, "the first of its group"));
	sonde_counters_free(set);
	set = open_set(SET(.names = "{power/energy-pkg/,cs}", .all_cpus = true), -EINVAL);
	assert_non_null(strstr(info_of(set, 1).error, "different PMUs"));
	sonde_counters_free(set);
}

/* --- values --------------------------------------------------------------------------------------------------------------------------- */

static void test_values(void **state)
{
	struct sonde_counters *set = open_set(SET(.names = "cycles,instructions", .all_cpus = true, .flags = SONDE_COUNTER_SCALE), 0);
	struct sonde_count counts[2];

	for (int i = 0; i < 3; i++) {
		tell(&fake_events[i], 10, 100, 100);
		tell(&fake_events[3 + i], UINT64_MAX / 8, 1000, 250);
	}
	assert_int_equal(sonde_counters_read(set, counts, 2), 0);
	assert_true(counts[0].value == 30 && counts[0].enabled_ns == 300 && !counts[0].scaled);
	assert_true(counts[1].scaled && counts[1].running_ns == 750 &&
		    counts[1].value == (uint64_t)((unsigned __int128)(UINT64_MAX / 8 * 3) * 4));
	assert_int_equal(sonde_counters_reset(set), 0);
	assert_int_equal(sonde_counters_read(set, counts, 2), 0);
	assert_true(!counts[0].value && !counts[0].enabled_ns && !counts[0].running_ns && !counts[1].value && !counts[1].scaled);
	tell(&fake_events[4], UINT64_MAX / 8 + 5, 1100, 350);
	assert_int_equal(sonde_counters_read(set, counts, 2), 0);
	/* counted all the time since the reset */
	assert_true(counts[1].value == 5 && counts[1].enabled_ns == 100 && counts[1].running_ns == 100);
	sonde_counters_free(set);
	fake_nr = 0;
	set = open_set(SET(.names = "cycles"), 0);
	tell(&fake_events[0], 8, 100, 25);
	assert_int_equal(sonde_counters_read(set, counts, 1), 0);
	assert_true(counts[0].value == 8 && !counts[0].scaled);
	sonde_count_scale(&counts[0]);
	assert_true(counts[0].value == 32 && counts[0].scaled);
	sonde_count_scale(&counts[0]);
	assert_int_equal(counts[0].value, 32);
	assert_int_equal(sonde_counters_read(set, counts, 2), -EINVAL);
	assert_int_equal(counts[1].err, -EINVAL);
	sonde_counters_free(set);
}

/* A counter that cannot be read at the reset is not set to zero: later it has its old value. */
static void test_reset_that_fails(void **state)
{
	struct sonde_counters *set = open_set(SET(.names = "cycles,cs"), 0);
	struct sonde_count counts[2];

	tell(&fake_events[0], 10, 100, 100);
	tell(&fake_events[1], 20, 100, 100);
	assert_int_equal(sonde_counters_reset(set), 0);
	fake_events[0].is_over = true;
	tell(&fake_events[1], 25, 200, 200);
	assert_int_equal(sonde_counters_reset(set), -EBUSY);
	fake_events[0].is_over = false;
	tell(&fake_events[0], 13, 300, 300);
	assert_int_equal(sonde_counters_read(set, counts, 2), 0);
	assert_true(counts[0].value == 3 && counts[0].enabled_ns == 200 && counts[1].value == 0 && counts[1].enabled_ns == 0);
	sonde_counters_free(set);
}

static int refuse_thread_6(const struct perf_event_attr *attr, int pid, int cpu)
{
	return pid == 6 ? ESRCH : 0;
}

static void test_threads_that_end(void **state)
{
	static const uint32_t tgids[] = { 5 };
	struct sonde_counters *set;
	struct sonde_count counts[2];

	fake_refuse = refuse_thread_6;
	set = open_set(SET(.names = "{cs,faults}", .tgids = tgids, .nr_tgids = 1, .flags = SONDE_COUNTER_NO_INHERIT), 0);
	assert_int_equal(fake_nr, 4);
	for (int i = 0; i < 4; i++)
		fake_events[i].value = 1;
	assert_int_equal(sonde_counters_read(set, counts, 2), 0);
	assert_true(counts[0].value == 2 && counts[1].value == 2);
	assert_int_equal(sonde_counters_start(set), 0);
	sonde_counters_free(set);
}

/* All counters of a thread, one per CPU, are enabled while the thread runs on one of them. */
static void test_threads_per_cpu(void **state)
{
	static const uint32_t tids[] = { 8 }, cpus[] = { 0 };
	struct sonde_event event = { .size = sizeof(event), .type = 1, .config = 2, .period = 1 };
	struct sonde_counters *set = open_set(
	    SET(.events = &event, .nr_events = 1, .tids = tids, .nr_tids = 1, .ring_bytes = 8192, .flags = SONDE_COUNTER_SCALE), 0);
	struct sonde_count count;

	assert_int_equal(fake_nr, 3);
	tell(&fake_events[0], 6, 90, 60);
	tell(&fake_events[1], 3, 90, 30);
	tell(&fake_events[2], 0, 90, 0);
	assert_int_equal(sonde_counters_read(set, &count, 1), 0);
	assert_true(count.value == 9 && count.enabled_ns == 90 && count.running_ns == 90 && !count.scaled);
	sonde_counters_free(set);
	fake_nr = 0;
	set = open_set(SET(.names = "cs", .tids = tids, .nr_tids = 1, .cpus = cpus, .nr_cpus = 1, .flags = SONDE_COUNTER_SCALE), 0);
	tell(&fake_events[0], 6, 90, 60);
	assert_int_equal(sonde_counters_read(set, &count, 1), 0);
	assert_true(count.value == 6 && count.enabled_ns == 60 && !count.scaled);
	sonde_counters_free(set);
}

static int refuse_modes(const struct perf_event_attr *attr, int pid, int cpu)
{
	return attr->type == 21 && (attr->exclude_hv || attr->exclude_user) ? EINVAL : 0;
}

static void test_uncore(void **state)
{
	struct sonde_event by_number = { .size = sizeof(by_number), .type = 21, .config = 2 };
	struct sonde_counters *set;

	fake_refuse = refuse_modes;
	set = open_set(SET(.names = "power/energy-pkg/,uncore_imc/event=4/", .all_cpus = true), 0);
	assert_int_equal(fake_nr, 1 + 4);
	assert_true(fake_events[0].cpu == 0 && !fake_events[0].attr.exclude_hv);
	assert_true(fake_events[1].attr.type == 30 && fake_events[2].attr.type == 31 && fake_events[3].attr.type == 30 &&
		    fake_events[3].cpu == 2);
	assert_string_equal(info_of(set, 0).unit, "Joules");
	assert_true(info_of(set, 0).unit_scale == 2.5e-10 && info_of(set, 1).unit_scale == 1);
	sonde_counters_free(set);
	fake_nr = 0;
	set = open_set(SET(.events = &by_number, .nr_events = 1, .all_cpus = true), 0);
	assert_true(fake_nr == 1 && fake_events[0].cpu == 0);
	assert_string_equal(info_of(set, 0).name, "type 21 config 0x2");
	sonde_counters_free(set);
	for (int i = 0; i < 2; i++) {
		set = open_set(SET(.names = "power/energy-pkg/", .cgroup = i ? "a.slice" : NULL), -EINVAL);
		assert_non_null(strstr(info_of(set, 0).error, "whole machine only"));
		sonde_counters_free(set);
	}
	set = open_set(SET(.names = "power/energy-pkg/:u", .all_cpus = true), -EINVAL); /* the modifier is not dropped */
	sonde_counters_free(set);
	set = open_set(SET(.names = "power/energy-pkg/", .cpus = (uint32_t[]){ 1 }, .nr_cpus = 1), -ENODEV);
	sonde_counters_free(set);
}

/* --- cores of several kinds ----------------------------------------------------------------------------------------------------------- */

#define ATOM (10ull << PERF_PMU_TYPE_SHIFT)
#define CORE (4ull << PERF_PMU_TYPE_SHIFT)

/* As in Linux: a counter of one kind of cores is refused on a CPU of another. */
static int refuse_elsewhere(const struct perf_event_attr *attr, int pid, int cpu)
{
	uint64_t kind =
	    attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ? attr->config >> PERF_PMU_TYPE_SHIFT : attr->type;

	if (attr->type == PERF_TYPE_SOFTWARE || cpu < 0)
		return 0;
	return (kind == 10) == (cpu == 2) ? 0 : ENOENT;
}

static int lack_branches_on_atom(const struct perf_event_attr *attr, int pid, int cpu)
{
	return attr->config == (ATOM | PERF_COUNT_HW_BRANCH_INSTRUCTIONS) ? ENOENT : refuse_elsewhere(attr, pid, cpu);
}

static int refuse_cpu_2(const struct perf_event_attr *attr, int pid, int cpu)
{
	return cpu == 2 ? ENOENT : 0;
}

static int refuse_kinds(const struct perf_event_attr *attr, int pid, int cpu)
{
	return attr->config >> PERF_PMU_TYPE_SHIFT ? EINVAL : 0;
}

/* A thread is counted on all kinds of cores at once; it runs on one at a time. */
static void test_kinds_of_threads(void **state)
{
	struct sonde_counters *set;
	struct sonde_count counts[2];

	fake_kinds(2);
	set = open_set(SET(.names = "{cycles,L1-dcache-loads:u},cs", .flags = SONDE_COUNTER_SCALE), 0);
	assert_int_equal(fake_nr, 5);
	assert_true(fake_events[0].attr.type == 0 && fake_events[0].attr.config == CORE && fake_events[1].attr.type == 0 &&
		    fake_events[1].attr.config == ATOM);
	assert_true(fake_events[2].attr.type == 3 && fake_events[2].attr.config == CORE && fake_events[2].group_fd == fake_events[0].fd);
	assert_true(fake_events[3].attr.config == ATOM && fake_events[3].group_fd == fake_events[1].fd &&
		    fake_events[3].attr.exclude_kernel);
	assert_true(fake_events[4].attr.type == 1 && fake_events[4].attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES);
	/* for callers that compute metrics from it */
	assert_true(info_of(set, 0).type == 0 && info_of(set, 0).config == 0 && info_of(set, 1).config == 0);
	assert_string_equal(info_of(set, 0).json_name, "cpu_cycles");
	tell(&fake_events[0], 100, 1000, 700);
	tell(&fake_events[1], 50, 1000, 300);
	tell(&fake_events[2], 100, 1000, 350);
	tell(&fake_events[3], 50, 1000, 150);
	assert_int_equal(sonde_counters_read(set, counts, 2), 0);
	assert_true(counts[0].value == 150 && counts[0].enabled_ns == 1000 && counts[0].running_ns == 1000 && !counts[0].scaled);
	assert_true(counts[1].value == 300 && counts[1].enabled_ns == 1000 && counts[1].running_ns == 500 && counts[1].scaled);
	sonde_counters_free(set);
	fake_kinds(0);
}

/* The machine is counted on each CPU by the PMU of its kind. */
static void test_kinds_of_cpus(void **state)
{
	static const uint32_t cpus[] = { 0, 1 };
	struct sonde_event event = { .size = sizeof(event) };
	struct sonde_counters *set;
	struct sonde_count counts[3];

	fake_kinds(2);
	fake_refuse = refuse_elsewhere;
	check_targets(SET(.names = "cycles", .all_cpus = true), "-1/0 -1/1 -1/2", 0);
	check_targets(SET(.names = "cpu_core/LLC-loads/,cpu_atom/cycles/:u,cpu_atom/cpu-cycles/", .all_cpus = true), "-1/0 -1/1 -1/2 -1/2",
		      0);
	assert_true(fake_events[0].attr.type == 3 && fake_events[0].attr.config == (CORE | PERF_COUNT_HW_CACHE_LL));
	assert_int_equal(sonde_event_parse("cpu_core/cycles/", &event, NULL, 0), 0);
	check_targets(SET(.events = &event, .nr_events = 1, .all_cpus = true), "-1/0 -1/1", 0); /* it still counts on that kind only */
	assert_true(fake_events[2].attr.type == 0 && fake_events[2].attr.config == ATOM && fake_events[2].attr.exclude_kernel);
	assert_true(fake_events[3].attr.type == 10 && fake_events[3].attr.config == 0x3c);
	fake_nr = 0;
	set = open_set(SET(.names = "{cycles,instructions}", .all_cpus = true, .flags = SONDE_COUNTER_SCALE), 0);
	assert_true(fake_nr == 6 && fake_events[5].attr.config == (ATOM | PERF_COUNT_HW_INSTRUCTIONS) &&
		    fake_events[5].group_fd == fake_events[2].fd);
	for (int i = 0; i < 6; i++)
		tell(&fake_events[i], 10, 100, 50);
	assert_int_equal(sonde_counters_read(set, counts, 2), 0);
	assert_true(counts[0].value == 60 && counts[0].enabled_ns == 300 && counts[1].value == 60);
	sonde_counters_free(set);
	set = open_set(SET(.names = "cycles,cpu_atom/instructions/", .cpus = cpus, .nr_cpus = 2), -ENOENT);
	assert_true(!info_of(set, 0).err && info_of(set, 1).err == -ENOENT);
	sonde_counters_free(set);
	fake_kinds(0);
}

/* An event that one kind of cores lacks fails: it is not counted on the other kinds alone. */
static void test_kinds_that_lack_it(void **state)
{
	struct sonde_counters *set = NULL;

	fake_kinds(2);
	fake_refuse = lack_branches_on_atom;
	for (int i = 0; i < 2; i++) {
		set = open_set(SET(.names = "branches,{cycles,branches},cpu_core/branches/", .all_cpus = i), -ENOENT);
		assert_non_null(strstr(info_of(set, 0).error, "not all kinds of cores"));
		assert_true(info_of(set, 0).err == -ENOENT && !info_of(set, 1).err && info_of(set, 2).err == -ENOENT &&
			    !info_of(set, 3).err);
		sonde_counters_free(set);
	}
	fake_refuse = refuse_kinds; /* before Linux 5.13 */
	set = open_set(SET(.names = "cycles,cpu_atom/cpu-cycles/"), -EINVAL);
	assert_non_null(strstr(info_of(set, 0).error, "name the PMU of one and an event that it has"));
	assert_int_equal(info_of(set, 1).err, 0);
	sonde_counters_free(set);
	fake_refuse = NULL;
	fake_nr = 0;
	assert_int_equal(sonde_counters_open(PERF_TYPE_HARDWARE, ATOM | 1, 0, -1, 0, &set), 0); /* as the caller requested */
	assert_true(fake_nr == 1 && fake_events[0].attr.config == (ATOM | 1));
	sonde_counters_free(set);
	assert_int_equal(sonde_counters_open(PERF_TYPE_HARDWARE, 1, 0, -1, 0, &set), 0);
	assert_int_equal(fake_nr, 3);
	sonde_counters_free(set);
	fake_kinds(1);
	fake_nr = 0;
	sonde_counters_free(open_set(SET(.names = "cycles"), 0));
	assert_true(fake_nr == 1 && fake_events[0].attr.config == 0);
	fake_refuse = refuse_cpu_2; /* a CPU of an unknown kind */
	sonde_counters_free(open_set(SET(.names = "cycles", .all_cpus = true), -ENOENT));
	fake_kinds(0);
}

/* --- a function ----------------------------------------------------------------------------------------------------------------------- */

static int work(void *arg)
{
	assert_true(fake_events[0].on);
	tell(&fake_events[0], 77, 10, 5);
	return *(int *)arg;
}

static void test_function(void **state)
{
	struct sonde_count count = { 0 };
	int result = 3, nr_fds = nr_open_fds();

	assert_int_equal(sonde_count_function("cycles", work, &result, &count, NULL, 0), 3);
	assert_true(count.value == 154 && count.scaled && !fake_events[0].on);
	fake_nr = 0;
	assert_int_equal(sonde_count_function_config(1, 2, work, &result, &count, NULL, 0), 3);
	fake_refuse = refuse_hardware;
	assert_int_equal(sonde_count_function("cycles", work, NULL, &count, NULL, 0), -ENOENT); /* not called */
	assert_int_equal(sonde_count_function("cs,faults", work, NULL, &count, NULL, 0), -EINVAL);
	assert_int_equal(sonde_count_function_config(0, 0, work, NULL, &count, NULL, 0), -ENOENT);
	assert_int_equal(nr_open_fds(), nr_fds);
}

/* --- BPF, lists ----------------------------------------------------------------------------------------------------------------------- */

static void test_bpf(void **state)
{
	struct sonde_counters *set = open_set(SET(.names = "sched:sched_switch,cs", .all_cpus = true), 0);

	assert_int_equal(sonde_counters_attach_bpf(set, 0, 77), 0);
	assert_int_equal(sonde_counters_attach_bpf(set, 1, 78), 0);
	assert_true(fake_events[0].bpf_fd == 77 && fake_events[1].bpf_fd == -1 && fake_events[3].bpf_fd == 78 &&
		    fake_events[5].bpf_fd == 78);
	sonde_counters_free(set);
}

static void check_list(enum sonde_list_kind kind, const char *within, int want, const char *text)
{
	struct sonde_names *list = NULL;
	char joined[512] = "";
	size_t size = 0;
	const char *name;

	assert_int_equal(sonde_list(kind, within, &list), want);
	for (uint32_t i = 0; (name = sonde_names_at(list, i)); i++)
		size += (size_t)snprintf(joined + size, sizeof(joined) - size, "%s%s", i ? " " : "", name);
	if (want)
		assert_non_null(strstr(sonde_names_error(list), text));
	else
		assert_string_equal(joined, text);
	sonde_names_free(list);
}

static void test_lists(void **state)
{
	struct sonde_names *list = NULL;
	char here[512], there[512];
	uint32_t nr = 0;

	check_list(SONDE_LIST_PMUS, NULL, 0, "broken cpu power software uncore_imc_0 uncore_imc_1");
	check_list(SONDE_LIST_EVENTS, "cpu", 0, "cpu/cpu-cycles/ cpu/mem-loads/ cpu/of-core/");
	check_list(SONDE_LIST_EVENTS, "power", 0, "power/bad/ power/energy-pkg/");
	check_list(SONDE_LIST_EVENTS, "software", 0, "");
	check_list(SONDE_LIST_EVENTS, "gpu", -ENOENT, "no PMU 'gpu'");
	check_list(SONDE_LIST_EVENTS, "../x", -EINVAL, "no name");
	check_list(SONDE_LIST_SUBSYSTEMS, NULL, 0, "irq sched");
	check_list(SONDE_LIST_TRACEPOINTS, NULL, 0, "irq:irq_handler_entry sched:sched_switch sched:sched_wakeup");
	check_list(SONDE_LIST_TRACEPOINTS, "irq", 0, "irq:irq_handler_entry");
	check_list(SONDE_LIST_TRACEPOINTS, "nothing", -ENOENT, "no tracepoints of 'nothing'");
	check_list(SONDE_LIST_TRACERS, NULL, 0, "blk function nop");
	check_list(SONDE_LIST_TRACER, NULL, 0, "nop");
	check_list((enum sonde_list_kind)77, NULL, -EINVAL, "no such list");
	assert_int_equal(sonde_list(SONDE_LIST_EVENTS, NULL, &list), 0);
	while (sonde_names_at(list, nr))
		nr++;
	assert_int_equal(nr, 51 + 5);
	assert_string_equal(sonde_names_at(list, 51), "cpu/cpu-cycles/");
	sonde_names_free(list);
	fake_path("/sys/bus/event_source", here, sizeof(here));
	fake_path("/sys/bus/away", there, sizeof(there));
	assert_int_equal(rename(here, there), 0); /* no sysfs */
	assert_int_equal(sonde_list(SONDE_LIST_EVENTS, NULL, &list), 0);
	assert_true(sonde_names_at(list, 50) && !sonde_names_at(list, 51));
	sonde_names_free(list);
	sonde_counters_free(open_set(SET(.names = "cycles"), 0));
	assert_int_equal(rename(there, here), 0);
	sonde_names_free(NULL);
}

/* --- threads -------------------------------------------------------------------------------------------------------------------------- */

struct racer {
	struct sonde_counters *set;
	pthread_t thread;
	int number, nr_bad;
};

static void *race(void *arg)
{
	struct racer *racer = arg;
	struct sonde_count counts[3];
	int err = 0;

	for (int i = 0; i < 3000 && !err; i++) {
		struct sonde_names *names = NULL;

		switch ((i + racer->number) % 4) {
		case 0:
			err = sonde_counters_start(racer->set);
			break;
		case 1:
			err = sonde_counters_reset(racer->set);
			break;
		case 2:
			err = sonde_counters_stop(racer->set);
			break;
		}
		err = err ? err : sonde_counters_read(racer->set, counts, 3);
		for (int k = 0; k < 3; k++) /* all values are of the same moment, whatever was reset meanwhile */
			racer->nr_bad += counts[k].value != counts[k].enabled_ns || counts[k].value != counts[k].running_ns ||
					 counts[k].value > 1u << 30;
		if (i % 100 == 0 && !err)
			err = sonde_list(SONDE_LIST_PMUS, NULL, &names);
		sonde_names_free(names);
	}
	racer->nr_bad += err != 0;
	return NULL;
}

static void test_many_threads(void **state)
{
	struct sonde_counters *set = open_set(SET(.names = "{cycles,instructions},cs", .flags = SONDE_COUNTER_NO_INHERIT), 0);
	struct racer racers[4];
	int nr_bad = 0;

	for (int i = 0; i < 4; i++) {
		racers[i] = (struct racer){ .set = set, .number = i };
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (uint64_t i = 1; i <= 20000; i++) {
		/* as in the kernel: value and times advance together, and a group's members with their leader */
		pthread_mutex_lock(&fake_lock);
		for (int k = 0; k < 3; k++)
			tell(&fake_events[k], i, i, i);
		pthread_mutex_unlock(&fake_lock);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(racers[i].thread, NULL);
		nr_bad += racers[i].nr_bad;
	}
	assert_int_equal(nr_bad, 0);
	sonde_counters_free(set);
}

#define TEST(name) cmocka_unit_test_setup(name, fake_reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one),
		TEST(test_flags),
		TEST(test_targets),
		TEST(test_open_by_pid_and_cpu),
		TEST(test_names),
		TEST(test_names_that_make_no_sense),
		TEST(test_tracefs_elsewhere),
		TEST(test_missing_events),
		TEST(test_refused),
		TEST(test_other_versions),
		TEST(test_kinds),
		TEST(test_group),
		TEST(test_group_with_missing),
		TEST(test_values),
		TEST(test_nothing_of_the_kernel),
		TEST(test_reset_that_fails),
		TEST(test_threads_that_end),
		TEST(test_threads_per_cpu),
		TEST(test_uncore),
		TEST(test_kinds_of_threads),
		TEST(test_kinds_of_cpus),
		TEST(test_kinds_that_lack_it),
		TEST(test_function),
		TEST(test_bpf),
		TEST(test_lists),
		TEST(test_many_threads),
	};

	return cmocka_run_group_tests(tests, fake_machine, fake_machine_gone);
}
