// SPDX-License-Identifier: Apache-2.0
/* Turns findings into what each verb can do, and the one command that helps most. */
#include "doctor/doctor.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/small_file.h"

enum need_level {
	NEED_MUST, /* the verb does not work without it */
	NEED_MORE, /* works with less without it */
	NEED_NOTE, /* some option does not work without it */
};

struct need {
	const char *check;
	enum need_level level;
	const char *effect; /* of its absence */
};

struct verb_needs {
	const char *verb, *oldest; /* Linux */
	const struct need *needs;
	size_t nr;
};

#define PROGRAM_NEEDS \
	{ "kernel.btf", NEED_MUST, "the BPF programs cannot be fitted to this kernel" }, \
	{ "map.hash", NEED_MUST, "no place for what is known of processes" }, \
	{ "map.array", NEED_MUST, "no place for unwind tables" }, \
	{ "map.percpu_array", NEED_MUST, "nothing can be counted" }, \
	{ "map.array_of_maps", NEED_MUST, "no place for unwind tables" }

#define STACK_NEEDS \
	{ "program.tp_btf", NEED_MUST, "forks and exits cannot be followed" }, \
	{ "map.large", NEED_MUST, "no place for stacks and unwind tables" }, \
	{ "map.ringbuf", NEED_MUST, "stacks cannot be sent to user space" }, \
	{ "helper.bpf_get_stack", NEED_MUST, "no kernel stacks" }, \
	{ "helper.bpf_ringbuf_output", NEED_MUST, "stacks cannot be sent to user space" }, \
	{ "helper.bpf_ringbuf_query", NEED_MUST, "stacks cannot be sent to user space" }, \
	{ "helper.bpf_probe_read_user", NEED_MUST, "user stacks cannot be read" }, \
	{ "helper.bpf_probe_read_kernel", NEED_MUST, "user registers cannot be read" }, \
	{ "event.sideband", NEED_MUST, "new processes cannot be followed" }, \
	{ "access.processes", NEED_MORE, "functions of other users' processes have no names" }, \
	{ "access.kallsyms", NEED_MORE, "kernel functions have no names" }, \
	{ "access.map_files", NEED_MORE, "functions of deleted and replaced files have no names" }, \
	{ "access.pid_namespace", NEED_MORE, "the ids of processes are not those of /proc here" }

#define TICK_NEEDS \
	{ "program.perf_event", NEED_MUST, "no program can run at a sample" }, \
	{ "event.cpu_clock", NEED_MUST, "nothing drives the sampling" }, \
	{ "event.attach", NEED_MUST, "no program can run at a sample" }

#define WAIT_NEEDS \
	{ "program.sched_switch", NEED_MUST, "switches of threads cannot be seen" }, \
	{ "program.iter_task", NEED_MUST, "threads that wait at the start or the end cannot be seen" }, \
	{ "map.task_storage", NEED_MUST, "no place for what is known of threads (Linux 5.12)" }

static const struct need profile_needs[] = {
	PROGRAM_NEEDS, STACK_NEEDS, TICK_NEEDS,
	{ "event.cycles", NEED_NOTE, "-e with a hardware event falls back to cpu-clock" },
};

static const struct need offcpu_needs[] = { PROGRAM_NEEDS, STACK_NEEDS, WAIT_NEEDS };

static const struct need wall_needs[] = {
	PROGRAM_NEEDS, STACK_NEEDS, TICK_NEEDS, WAIT_NEEDS,
	{ "kernel.sched_info", NEED_MORE, "ready to run and blocked look the same" },
};

static const struct need runq_needs[] = {
	PROGRAM_NEEDS,
	{ "program.sched_switch", NEED_MUST, "switches of threads cannot be seen" },
	{ "program.iter_task", NEED_MORE, "--oncpu and --len only" },
	{ "map.task_storage", NEED_MORE, "--oncpu and --len only (Linux 5.12)" },
	{ "kernel.sched_info", NEED_MORE, "--oncpu and --len only" },
	{ "map.ringbuf", NEED_NOTE, "no --slower" },
	{ "access.pid_namespace", NEED_MORE, "the ids of processes are not those of /proc here" },
};

#define CALL_NEEDS \
	{ "kernel.btf", NEED_MUST, "the BPF programs cannot be fitted to this kernel" }, \
	{ "map.hash", NEED_MUST, "no place for sums" }, \
	{ "map.percpu_array", NEED_MUST, "nothing can be counted" }, \
	{ "map.ringbuf", NEED_MUST, "nothing can be sent to user space" }, \
	{ "helper.bpf_probe_read_user", NEED_MUST, "texts of programs cannot be read" }, \
	{ "helper.bpf_probe_read_kernel", NEED_MUST, "names of files cannot be read" }, \
	{ "access.pid_namespace", NEED_MORE, "the ids of processes are not those of /proc here" }

static const struct need files_needs[] = {
	CALL_NEEDS,
	{ "program.sys_enter", NEED_MUST, "system calls cannot be seen" },
	{ "map.array_of_maps", NEED_MUST, "no place for sums" },
};

static const struct need io_needs[] = {
	CALL_NEEDS,
	{ "program.sys_enter", NEED_MUST, "system calls cannot be seen" },
	{ "map.array_of_maps", NEED_MUST, "no place for sums" },
	{ "map.task_storage", NEED_MUST, "no place for what is known of threads (Linux 5.12)" },
};

static const struct need trace_needs[] = {
	CALL_NEEDS,
	{ "program.raw_tracepoint", NEED_MUST, "neither tracepoints nor system calls can be seen" },
	{ "kernel.kprobes", NEED_NOTE, "no kernel functions by kprobe; sonde trace names the nearest tracepoint" },
	{ "program.fentry", NEED_NOTE, "no kernel functions by fentry" },
	{ "kernel.uprobes", NEED_NOTE, "no functions of programs and no USDT probes" },
};

#define HEAP_NEEDS \
	{ "program.uprobe", NEED_MUST, "allocators cannot be probed (Linux 6.2, CONFIG_UPROBE_EVENTS)" }, \
	{ "map.task_storage", NEED_MUST, "no place for what is known of threads (Linux 5.12)" }

static const struct need leak_needs[] = {
	PROGRAM_NEEDS, STACK_NEEDS, HEAP_NEEDS,
	{ "program.kmalloc", NEED_NOTE, "no --kernel (Linux 6.1)" },
};

static const struct need alloc_needs[] = {
	PROGRAM_NEEDS, STACK_NEEDS, HEAP_NEEDS,
	{ "program.rss_stat", NEED_NOTE, "no --rss (Linux 5.12)" },
};

static const struct need stat_needs[] = {
	{ "event.cpu_clock", NEED_MORE, "own processes only, in user space where kernel.perf_event_paranoid says so" },
	{ "event.cycles", NEED_NOTE, "events of the hardware are <not supported>" },
};

static const struct verb_needs verbs[] = {
	{ "profile", "5.10", profile_needs, ARRAY_SIZE(profile_needs) },
	{ "offcpu", "5.12", offcpu_needs, ARRAY_SIZE(offcpu_needs) },
	{ "wall", "5.12", wall_needs, ARRAY_SIZE(wall_needs) },
	{ "runq", "5.10", runq_needs, ARRAY_SIZE(runq_needs) },
	{ "leak", "6.2", leak_needs, ARRAY_SIZE(leak_needs) },
	{ "alloc", "6.2", alloc_needs, ARRAY_SIZE(alloc_needs) },
	{ "stat", "5.10", stat_needs, ARRAY_SIZE(stat_needs) },
	{ "files", "5.10", files_needs, ARRAY_SIZE(files_needs) },
	{ "io", "5.12", io_needs, ARRAY_SIZE(io_needs) },
	{ "trace", "5.10", trace_needs, ARRAY_SIZE(trace_needs) },
	{ "doctor", "", NULL, 0 },
};

const char *doctor_verdict_name(enum doctor_verdict verdict)
{
	switch (verdict) {
	case DOCTOR_WORKS:
		return "works";
	case DOCTOR_LESS:
		return "works-with-less";
	case DOCTOR_NOT_PERMITTED:
		return "not-permitted";
	case DOCTOR_KERNEL_CANNOT:
		break;
	}
	return "kernel-cannot";
}

static void add_missing(struct doctor_opinion *opinion, const struct need *need)
{
	if (opinion->nr_missing == DOCTOR_MAX_MISSING)
		return; /* cannot happen: no verb has that many needs */
	opinion->missing[opinion->nr_missing].check = need->check;
	opinion->missing[opinion->nr_missing].effect = need->effect;
	opinion->missing[opinion->nr_missing].fatal = need->level == NEED_MUST;
	opinion->missing[opinion->nr_missing++].note = need->level == NEED_NOTE;
}

static void worse(struct doctor_opinion *opinion, enum doctor_verdict verdict)
{
	if (verdict > opinion->verdict)
		opinion->verdict = verdict;
}

static bool is_missing(const struct doctor_opinion *opinion, const char *check)
{
	for (uint32_t i = 0; i < opinion->nr_missing; i++) {
		if (!strcmp(opinion->missing[i].check, check))
			return true;
	}
	return false;
}

/* Kernel addresses can be hidden even from root. */
static bool hidden_from_all(void)
{
	char text[16];

	return small_file_read(AT_FDCWD, "/proc/sys/kernel/kptr_restrict", text, sizeof(text)) == 0 && !strcmp(text, "2");
}

static void fix_capabilities(struct doctor_opinion *opinion)
{
	char program[256];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[length < 0 ? 0 : length] = '\0';
	if (doctor_grant(CAP_BPF) == DOCTOR_GRANT_NONE || doctor_grant(CAP_PERFMON) == DOCTOR_GRANT_NONE)
		snprintf(opinion->fix, sizeof(opinion->fix), "docker run --pid=host --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE "
			 "--cap-add SYSLOG --cap-add CHECKPOINT_RESTORE ...");
	else if (doctor_no_new_privs() || length <= 0)
		snprintf(opinion->fix, sizeof(opinion->fix), "as root: sonde %s", opinion->verb);
	else
		snprintf(opinion->fix, sizeof(opinion->fix),
			 "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_checkpoint_restore+ep %s", program);
}

/* The worst problem first. */
static void find_fix(struct doctor_opinion *opinion, const char *oldest)
{
	bool may = doctor_grant(CAP_BPF) == DOCTOR_GRANT_EFFECTIVE && doctor_grant(CAP_PERFMON) == DOCTOR_GRANT_EFFECTIVE;

	if (opinion->verdict == DOCTOR_KERNEL_CANNOT)
		snprintf(opinion->fix, sizeof(opinion->fix), "a kernel of Linux %s or newer, built with CONFIG_DEBUG_INFO_BTF, "
			 "CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS", oldest);
	else if (is_missing(opinion, "map.large") && (!is_missing(opinion, "map.array") || doctor_may_use_bpf()))
		snprintf(opinion->fix, sizeof(opinion->fix), "ulimit -l unlimited");
	else if (opinion->verdict == DOCTOR_NOT_PERMITTED && may)
		snprintf(opinion->fix, sizeof(opinion->fix), "capabilities are there, so a security module, a seccomp filter or lockdown "
			 "refuses: docker run --security-opt seccomp=unconfined ...");
	else if (opinion->verdict == DOCTOR_NOT_PERMITTED)
		fix_capabilities(opinion);
	else if (is_missing(opinion, "access.kallsyms") && hidden_from_all())
		snprintf(opinion->fix, sizeof(opinion->fix), "sudo sysctl kernel.kptr_restrict=%d",
			 doctor_grant(CAP_SYSLOG) == DOCTOR_GRANT_EFFECTIVE ? 1 : 0);
	else if (is_missing(opinion, "access.pid_namespace"))
		snprintf(opinion->fix, sizeof(opinion->fix), "docker run --pid=host ...");
	else if (opinion->verdict == DOCTOR_LESS)
		fix_capabilities(opinion);
}

bool doctor_opinion(const struct doctor *doctor, size_t i, struct doctor_opinion *ret_opinion)
{
	struct doctor_opinion opinion = { .verdict = DOCTOR_WORKS };

	if (i >= ARRAY_SIZE(verbs))
		return false;
	opinion.verb = verbs[i].verb;
	for (size_t k = 0; k < verbs[i].nr; k++) {
		const struct need *need = &verbs[i].needs[k];
		const struct doctor_finding *finding = doctor_find(doctor, need->check);

		if (!finding || finding->state == DOCTOR_YES)
			continue;
		add_missing(&opinion, need);
		if (need->level == NEED_MORE)
			worse(&opinion, DOCTOR_LESS);
		else if (need->level == NEED_MUST)
			worse(&opinion, finding->state == DOCTOR_DENIED ? DOCTOR_NOT_PERMITTED : DOCTOR_KERNEL_CANNOT);
	}
	find_fix(&opinion, verbs[i].oldest);
	*ret_opinion = opinion;
	return true;
}
