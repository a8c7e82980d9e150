// SPDX-License-Identifier: Apache-2.0
/* The list of checks, in the order of the report. */
#include "doctor/doctor.h"

#include <linux/bpf.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"

#define CAPABILITY(name_, capability) \
	{ .id = "capability." name_, .group = "Capabilities", .title = #capability, .probe = doctor_capability, .number = capability }
#define MAP(name_, type) { .id = "map." name_, .group = "BPF maps", .title = name_, .probe = doctor_map, .number = type }
#define HELPER(name_, function) \
	{ .id = "helper." name_, \
	  .group = "BPF helpers (in a perf_event program)", \
	  .title = name_, \
	  .probe = doctor_helper, \
	  .number = function }
#define SETTING(id_, group_, title_, path_) { .id = id_, .group = group_, .title = title_, .probe = doctor_setting, .path = path_ }

static const struct doctor_check checks[] = {
	{ .id = "kernel.release", .group = "Kernel", .title = "release", .probe = doctor_release },
	{ .id = "kernel.btf",
	  .group = "Kernel",
	  .title = "type information (BTF)",
	  .probe = doctor_btf,
	  .path = "/sys/kernel/btf/vmlinux" },
	SETTING("kernel.lockdown", "Kernel", "lockdown", "/sys/kernel/security/lockdown"),
	{ .id = "kernel.cgroups", .group = "Kernel", .title = "cgroups", .probe = doctor_cgroups },
	{ .id = "kernel.sched_info",
	  .group = "Kernel",
	  .title = "time on run queues per thread",
	  .probe = doctor_task_field,
	  .path = "sched_info" },
	{ .id = "kernel.tracefs", .group = "Kernel", .title = "tracefs", .probe = doctor_tracefs, .path = "/sys/kernel/tracing/events" },
	{ .id = "kernel.kprobes",
	  .group = "Kernel",
	  .title = "kprobes",
	  .probe = doctor_present,
	  .path = "/sys/bus/event_source/devices/kprobe" },
	{ .id = "kernel.uprobes",
	  .group = "Kernel",
	  .title = "uprobes",
	  .probe = doctor_present,
	  .path = "/sys/bus/event_source/devices/uprobe" },

	{ .id = "program.perf_event", .group = "BPF programs", .title = "perf_event", .probe = doctor_perf_program },
	{ .id = "program.tp_btf",
	  .group = "BPF programs",
	  .title = "tp_btf (typed tracepoint)",
	  .probe = doctor_tracing_program,
	  .path = "sched_process_exit" },
	{ .id = "program.raw_tracepoint",
	  .group = "BPF programs",
	  .title = "raw_tracepoint",
	  .probe = doctor_raw_program,
	  .path = "sched_process_exit" },
	{ .id = "program.sched_switch",
	  .group = "BPF programs",
	  .title = "tp_btf on sched_switch",
	  .probe = doctor_tracing_program,
	  .path = "sched_switch" },
	{ .id = "program.sys_enter",
	  .group = "BPF programs",
	  .title = "tp_btf on sys_enter",
	  .probe = doctor_tracing_program,
	  .path = "sys_enter" },
	{ .id = "program.fentry", .group = "BPF programs", .title = "fentry", .probe = doctor_fentry_program, .path = "vfs_fallocate" },
	{ .id = "program.uprobe",
	  .group = "BPF programs",
	  .title = "uprobe, with task_storage",
	  .probe = doctor_uprobe,
	  .path = "/sys/bus/event_source/devices/uprobe" },
	{ .id = "program.rss_stat",
	  .group = "BPF programs",
	  .title = "tp_btf on rss_stat",
	  .probe = doctor_tracing_program,
	  .path = "rss_stat" },
	{ .id = "program.kmalloc",
	  .group = "BPF programs",
	  .title = "tp_btf on kmalloc",
	  .probe = doctor_tracing_program,
	  .path = "kmalloc" },
	{ .id = "program.iter_task", .group = "BPF programs", .title = "iterator of threads", .probe = doctor_iterator, .path = "task" },
	MAP("hash", BPF_MAP_TYPE_HASH),
	MAP("array", BPF_MAP_TYPE_ARRAY),
	MAP("percpu_array", BPF_MAP_TYPE_PERCPU_ARRAY),
	MAP("array_of_maps", BPF_MAP_TYPE_ARRAY_OF_MAPS),
	MAP("ringbuf", BPF_MAP_TYPE_RINGBUF),
	{ .id = "map.task_storage", .group = "BPF maps", .title = "task_storage, for tracing", .probe = doctor_task_storage },
	{ .id = "map.large", .group = "BPF maps", .title = "16 MiB in one map", .probe = doctor_large_map, .number = 16 },
	HELPER("bpf_get_stack", BPF_FUNC_get_stack),
	HELPER("bpf_ringbuf_output", BPF_FUNC_ringbuf_output),
	HELPER("bpf_ringbuf_query", BPF_FUNC_ringbuf_query),
	HELPER("bpf_probe_read_user", BPF_FUNC_probe_read_user),
	HELPER("bpf_probe_read_kernel", BPF_FUNC_probe_read_kernel),

	{ .id = "event.cpu_clock", .group = "Events (whole system)", .title = "cpu-clock", .probe = doctor_event, .number = 0 },
	{ .id = "event.attach", .group = "Events (whole system)", .title = "a BPF program on cpu-clock", .probe = doctor_attach },
	{ .id = "event.sideband", .group = "Events (whole system)", .title = "side-band of processes", .probe = doctor_sideband },
	{ .id = "event.cycles", .group = "Events (whole system)", .title = "cycles (hardware PMU)", .probe = doctor_event, .number = 1 },

	CAPABILITY("bpf", CAP_BPF),
	CAPABILITY("perfmon", CAP_PERFMON),
	CAPABILITY("sys_ptrace", CAP_SYS_PTRACE),
	CAPABILITY("syslog", CAP_SYSLOG),
	CAPABILITY("checkpoint_restore", CAP_CHECKPOINT_RESTORE),
	CAPABILITY("sys_admin", CAP_SYS_ADMIN),
	CAPABILITY("sys_resource", CAP_SYS_RESOURCE),

	{ .id = "access.kallsyms",
	  .group = "Access",
	  .title = "addresses of kernel functions",
	  .probe = doctor_kallsyms,
	  .path = "/proc/kallsyms" },
	{ .id = "access.processes", .group = "Access", .title = "processes of other users", .probe = doctor_other_processes },
	{ .id = "access.map_files", .group = "Access", .title = "files by their mapping", .probe = doctor_map_files },
	{ .id = "access.pid_namespace", .group = "Access", .title = "root PID namespace", .probe = doctor_pid_namespace },

	SETTING("setting.perf_event_paranoid", "Settings", "kernel.perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid"),
	SETTING("setting.kptr_restrict", "Settings", "kernel.kptr_restrict", "/proc/sys/kernel/kptr_restrict"),
	SETTING("setting.unprivileged_bpf_disabled", "Settings", "kernel.unprivileged_bpf_disabled",
		"/proc/sys/kernel/unprivileged_bpf_disabled"),
	SETTING("setting.max_sample_rate", "Settings", "kernel.perf_event_max_sample_rate", "/proc/sys/kernel/perf_event_max_sample_rate"),
	SETTING("setting.max_stack", "Settings", "kernel.perf_event_max_stack", "/proc/sys/kernel/perf_event_max_stack"),
	{ .id = "limit.nofile", .group = "Settings", .title = "open files", .probe = doctor_limit, .number = RLIMIT_NOFILE },
	{ .id = "limit.memlock", .group = "Settings", .title = "locked memory, bytes", .probe = doctor_limit, .number = RLIMIT_MEMLOCK },
};
_Static_assert(ARRAY_SIZE(checks) <= DOCTOR_MAX_CHECKS, "too many checks");

const struct doctor_check *doctor_check_at(size_t i)
{
	return i < ARRAY_SIZE(checks) ? &checks[i] : NULL;
}

void doctor_say(struct doctor_finding *finding, enum doctor_state state, const char *fmt, ...)
{
	va_list args;

	finding->state = state;
	va_start(args, fmt);
	vsnprintf(finding->detail, sizeof(finding->detail), fmt, args);
	va_end(args);
}

void doctor_examine(struct doctor *doctor)
{
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		checks[i].probe(&checks[i], &doctor->findings[i]);
}

const struct doctor_finding *doctor_find(const struct doctor *doctor, const char *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		if (!strcmp(checks[i].id, id))
			return &doctor->findings[i];
	}
	return NULL;
}

const char *doctor_state_name(enum doctor_state state)
{
	switch (state) {
	case DOCTOR_YES:
		return "yes";
	case DOCTOR_NO:
		return "no";
	case DOCTOR_DENIED:
		return "denied";
	case DOCTOR_INFO:
		break;
	}
	return "info";
}
