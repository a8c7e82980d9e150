// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Times each single run of another process's BPF programs from outside, including all that they tail-call. For a tick: from before its
 * timer's function until after it. For a switch or a wake-up: from a program attached earlier to the same tracepoint to one attached
 * later, as they run in that order. fentry would be simpler, but a kernel that we test on refuses it (EPERM).
 *
 * Also measures what the host stole from the processors meanwhile: the time that its vCPUs waited, which KVM reports in nanoseconds
 * (Documentation/virt/kvm/x86/msr.rst, MSR_KVM_STEAL_TIME). The time of all vCPUs counts, because a run may wait for a lock that is held
 * on another. All of these runs have interrupts disabled, so nothing else of this machine can interrupt them. */
#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "run_times.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct hrtimer {
	void *function;
};
struct hw_perf_event {
	struct hrtimer hrtimer;
};
struct rq;
struct cfs_rq {
	struct rq *rq;
};
struct sched_entity {
	struct cfs_rq *cfs_rq;
};
struct task_struct {
	int tgid;
	struct sched_entity se;
};
struct perf_event {
	struct hw_perf_event hw;
	struct task_struct *owner;
};
#pragma clang attribute pop

extern const void perf_swevent_hrtimer __ksym;

const volatile __s64 steal_off =
    0; /* of the per-CPU struct kvm_steal_time, from the run queue, which is also a per-CPU variable; 0: unknown */

struct { /* where each CPU's is; 0: not yet known */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUN_TIMES_MAX_CPUS);
	__type(key, __u32);
	__type(value, __u64);
} steal_at SEC(".maps");

struct { /* the process with the ticks; 0: none yet */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} watched SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RUN_KINDS);
	__type(key, __u32);
	__type(value, struct run_times);
} run_times SEC(".maps");

/* Kernels do not tell BPF the addresses of their variables, but each running thread leads to its run queue. */
static __always_inline __u64 stolen_ns(void)
{
	__u32 own = bpf_get_smp_processor_id();
	__u64 *at = bpf_map_lookup_elem(&steal_at, &own), sum = 0, one;

	if (!steal_off || !at)
		return 0;
	if (!*at)
		*at = (__u64)BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), se.cfs_rq, rq) + steal_off;
	for (int cpu = 0; cpu < RUN_TIMES_MAX_CPUS; cpu++) {
		__u32 number = cpu;

		at = bpf_map_lookup_elem(&steal_at, &number);
		if (at && *at) {
			bpf_probe_read_kernel(&one, sizeof(one), (void *)*at); /* 0 if it cannot be read */
			sum += one;
		}
	}
	return sum;
}

static __always_inline int begins(__u32 kind)
{
	struct run_times *times = bpf_map_lookup_elem(&run_times, &kind);

	if (!times)
		return 0; /* there is always one */
	times->start_stolen_ns = stolen_ns();
	times->start_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void count(__u64 *steps, __u64 ns)
{
	__u64 step = ns / RUN_TIMES_STEP_NS;

	steps[(step < RUN_TIMES_STEPS ? step : RUN_TIMES_STEPS - 1) & (RUN_TIMES_STEPS - 1)]++;
}

static __always_inline int ends(__u32 kind)
{
	__u64 now_ns = bpf_ktime_get_ns(), ns, stolen, own_ns;
	struct run_times *times = bpf_map_lookup_elem(&run_times, &kind);

	if (!times || !times->start_ns)
		return 0;
	ns = now_ns - times->start_ns;
	stolen = stolen_ns() - times->start_stolen_ns;
	own_ns = stolen < ns ? ns - stolen : 0;
	times->start_ns = 0;
	times->runs++;
	count(times->by_clock, ns);
	count(times->own, own_ns);
	if (ns > times->longest_ns)
		times->longest_ns = ns;
	if (own_ns > times->longest_own_ns) {
		times->longest_own_ns = own_ns;
		times->tgid = bpf_get_current_pid_tgid() >> 32;
	}
	return 0;
}

/* True for the timer of an event that the watched process opened. */
static __always_inline bool is_tick(struct hrtimer *timer)
{
	struct perf_event *event =
	    (void *)timer - __builtin_preserve_field_info(((struct perf_event *)0)->hw.hrtimer, BPF_FIELD_BYTE_OFFSET);
	__u32 zero = 0, *tgid = bpf_map_lookup_elem(&watched, &zero);

	return tgid && *tgid && BPF_CORE_READ(timer, function) == &perf_swevent_hrtimer && BPF_CORE_READ(event, owner, tgid) == (int)*tgid;
}

SEC("raw_tp/hrtimer_expire_entry")
int tick_begins(struct bpf_raw_tracepoint_args *ctx)
{
	return is_tick((void *)ctx->args[0]) ? begins(RUN_TICK) : 0;
}

SEC("raw_tp/hrtimer_expire_exit")
int tick_ends(struct bpf_raw_tracepoint_args *ctx)
{
	return ends(RUN_TICK);
}

SEC("raw_tp/sched_switch")
int switch_begins(void *ctx)
{
	return begins(RUN_SWITCH);
}

SEC("raw_tp/sched_switch")
int switch_ends(void *ctx)
{
	return ends(RUN_SWITCH);
}

SEC("raw_tp/sched_waking")
int waking_begins(void *ctx)
{
	return begins(RUN_WAKING);
}

SEC("raw_tp/sched_waking")
int waking_ends(void *ctx)
{
	return ends(RUN_WAKING);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
