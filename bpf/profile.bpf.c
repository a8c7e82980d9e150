// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sampler: runs at every tick of a perf event, on every CPU that has one, and sends the sample with its user and kernel stack.
 *
 * A stack's payload is sent when its hash is not in the map `stacks` yet, before the sample that refers to it. A user stack of a process or
 * file that is not known yet is sent as a deferred stack, and walked in user space. Every loss is counted. Counters that only ticks change
 * need no atomics: no perf event's program interrupts another's (the kernel's bpf_prog_active).
 *
 * Programs of their own find what the process's interpreters run; this one goes on to them at its end (lib/send.h). */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi/config.h"
#include "abi/unwind.h"
#include "lib/filter.h"
#include "lib/maps.h"
#include "lib/retry.h"
#include "lib/scratch.h"
#include "lib/send.h"
#include "lib/user_walk.h"
#include "walk/unwind.h"
#include "lib/user_regs.h"

static const bool scratch_nests = true;

/* Puts the user registers into the walk; 0: there are none. Its copy of them would exceed the 512 bytes of stack that sonde_tick and the
 * walk share. */
WALK_FUNCTION int take_regs(struct bpf_perf_event_data *ctx, __u32 slot)
{
	struct scratch *s = scratch_of(slot);

	return s && tick_regs(ctx, (void *)bpf_get_current_task(), &s->walk, &s->deferred);
}

static __always_inline bool is_filtered(struct sonde_counters *count, struct task_struct *task, __u64 tgid_tid, const char *comm)
{
	if (!tgid_tid && !cfg.include_idle) {
		count->filtered[SONDE_FILTER_IDLE]++;
		return true;
	}
	if (!is_wanted(task, tgid_tid >> 32, tgid_tid, comm)) {
		count->filtered[SONDE_FILTER_TARGET]++;
		return true;
	}
	return false;
}

static __always_inline int send_sample(struct scratch *s)
{
	struct sonde_counters *count = zeroth(&counters);

	if (!count)
		return 0; /* there is always one */
	if (s->runtimes_left)
		count_one(&count->runtimes_missed);
	send_runtime(s);
	if (bpf_ringbuf_output(&ring, &s->sample, sizeof(s->sample), wake_flag()))
		count->dropped[SONDE_DROP_RING_FULL]++;
	else
		count->recorded++;
	scratch_leave(s);
	return 0;
}

/* Runs after the programs of the runtimes. */
SEC("perf_event")
int sonde_sample(struct bpf_perf_event_data *ctx)
{
	struct scratch *s = scratch_of_run(ctx);

	return s ? send_sample(s) : 0;
}

static __always_inline int take_sample(struct bpf_perf_event_data *ctx, bool can_retry)
{
	struct sonde_counters *count = zeroth(&counters);
	struct scratch *s;
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 tgid_tid = bpf_get_current_pid_tgid();
	char comm[SONDE_COMM_BYTES] = {};

	if (!count)
		return 0; /* there is always one */
	count->ticks++;
	bpf_get_current_comm(comm, sizeof(comm));
	if (is_filtered(count, task, tgid_tid, comm))
		return 0;
	s = scratch_take(ctx);
	if (!s) {
		count->dropped[SONDE_DROP_NO_SCRATCH]++;
		return 0;
	}
	begin_sample(s, bpf_ktime_get_ns(), tgid_tid);
	__builtin_memcpy(s->sample.comm, comm, sizeof(comm));
	if (cfg.kernel_stacks && !user_mode(ctx))
		s->sample.kernel_state = kernel_state(s, get_kernel_stack(ctx, s), 0, s->sample.time_ns, &s->sample.kernel_stack);
	if (cfg.user_stacks && take_regs(ctx, s->walk.number)) {
		enter_process(s, &s->sample);
		take_user_stack(s, count, can_retry ? retry_later : 0);
	}
	return is_next_runtime(s) ? next_runtime(ctx, s) : send_sample(s);
}

SEC("perf_event")
int sonde_tick(struct bpf_perf_event_data *ctx)
{
	return take_sample(ctx, false);
}

/* The same for kernels with bpf_task_work. */
SEC("perf_event")
int sonde_retry(struct bpf_perf_event_data *ctx)
{
	return take_sample(ctx, true);
}

/* A process starts: what was known of its id belongs to another. For `-- command`: the children of a target are targets from their first
 * instruction on, as long as they live. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(sonde_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = parent->tgid, child_tgid = child->tgid;
	__u64 start_ns = child->start_time; /* earlier than the side-band's record of it, so a reader of that record knows the child */
	__u8 yes = 1;

	if (parent_tgid == child_tgid) /* a thread */
		return 0;
	bpf_map_update_elem(&start_times, &child_tgid, &start_ns, BPF_ANY);
	if (cfg.command_tgid && bpf_map_lookup_elem(&targets, &parent_tgid))
		bpf_map_update_elem(&targets, &child_tgid, &yes, BPF_ANY); /* the map has room for more children than live at once */
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sonde_exec, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	__u64 now = bpf_ktime_get_ns();
	__u8 yes = 1;

	bpf_map_update_elem(&start_times, &tgid, &now, BPF_ANY);
	if (cfg.command_tgid && cfg.command_tgid == tgid)
		bpf_map_update_elem(&targets, &tgid, &yes, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sonde_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (!task->signal->live.counter) /* the last thread */
		bpf_map_delete_elem(&targets, &tgid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
