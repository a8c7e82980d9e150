// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The program of any trigger (src/collect/trigger.h): counts the hit, takes the current thread's stacks as the sampler does
 * (bpf/profile.bpf.c), whose maps it shares, and sends a record.
 *
 * Other programs may interrupt it. Where it may be preempted, the same trigger may run in another thread on the same CPU. So working memory
 * has levels (lib/scratch.h), and each count is one atomic addition. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi/event.h"
#include "lib/filter.h"
#include "lib/maps.h"
#include "lib/probe_hit.h"
#include "lib/scratch.h"
#include "lib/send.h"
#include "lib/user_walk.h"
#include "lib/user_regs.h"
#include "lib/map.h"

const volatile struct sonde_event_config event_cfg = {};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_event_counters);
} event_counters MAP("sonde_events");

static __always_inline struct sonde_event_counters *event_count(void)
{
	return zeroth(&event_counters);
}

/* The system call that the current thread is in, by the numbers of 64-bit code. */
WALK_FUNCTION __u64 current_syscall(void)
{
	const void *at = saved_regs((void *)bpf_get_current_task());
	user_regs_t saved;

	if (bpf_probe_read_kernel(&saved, sizeof(saved), at) || !is_64_bit(&saved))
		return NO_SYSCALL;
	return saved_syscall(at, &saved);
}

/* Puts the user registers into the walk; 0: there are none. A function of its own, as the copy takes much of the stack. */
WALK_FUNCTION int take_regs(__u32 slot)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct scratch *s = scratch_of(slot);

	if (!s || !user_regs(task, saved_regs(task), &s->walk, &s->deferred))
		return 0;
	if (event_cfg.in_user) {
		s->walk.in_syscall = 0;
		s->walk.syscall = NO_SYSCALL;
	}
	return 1;
}

/* sonde itself, or a process that it has started to help it: it must not record what recording makes it do. */
static __always_inline bool is_own(struct task_struct *task, __u32 tgid)
{
	return event_cfg.own_tgid && (tgid == event_cfg.own_tgid || BPF_CORE_READ(task, real_parent, tgid) == (int)event_cfg.own_tgid);
}

static __always_inline bool is_filtered(struct sonde_event_counters *count, struct task_struct *task, __u64 tgid_tid, const char *comm)
{
	bool is_idle = !tgid_tid && !cfg.include_idle;

	if (!is_idle && (event_cfg.syscall == SONDE_EVENT_ANY_SYSCALL || event_cfg.syscall == current_syscall()) &&
	    !is_own(task, tgid_tid >> 32) && is_wanted(task, tgid_tid >> 32, tgid_tid, comm))
		return false;
	count_one(&count->filtered[is_idle ? SONDE_FILTER_IDLE : SONDE_FILTER_TARGET]);
	return true;
}

struct { /* of a run, by the number of its scratch */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader: as many as there are scratches */
	__type(key, __u32);
	__type(value, struct sonde_probe_values);
} hit_values MAP("sonde_values");

/* Is the hit one that was asked for? Takes its values. A function of its own, for its stack. */
static __noinline bool examine(void *ctx, __u32 slot)
{
	struct hit hit = { .tgid_tid = bpf_get_current_pid_tgid() };
	struct sonde_probe_values *values = bpf_map_lookup_elem(&hit_values, &slot);
	struct sonde_event_counters *count = event_count();
	bool unread = false;

	bpf_get_current_comm(hit.comm, sizeof(hit.comm));
	if (!values || !take_args(&hit, ctx))
		return false;
	if (!passes_all(&hit, &unread)) {
		if (unread && count)
			count_one(&count->unread);
		return false;
	}
	take_values(&hit, values);
	return true;
}

/* A record with the values of the hit. */
static __always_inline bool send_values(struct scratch *s)
{
	__u32 slot = s->walk.number;
	const struct sonde_probe_values *values = bpf_map_lookup_elem(&hit_values, &slot);
	struct sonde_probe_stacks_record *record = values ? bpf_ringbuf_reserve(&ring, sizeof(*record), 0) : 0;

	if (!record)
		return false;
	record->event.type = SONDE_RECORD_HIT;
	record->event.trigger = event_cfg.trigger;
	record->event.sample = s->sample;
	bpf_probe_read_kernel(&record->values, sizeof(record->values), values);
	bpf_ringbuf_submit(record, wake_flag());
	return true;
}

static __always_inline bool send_sample_alone(struct scratch *s)
{
	struct sonde_event_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record)
		return false;
	record->type = SONDE_RECORD_EVENT;
	record->trigger = event_cfg.trigger;
	record->sample = s->sample;
	bpf_ringbuf_submit(record, wake_flag());
	return true;
}

static __always_inline int send_event(struct scratch *s)
{
	struct sonde_event_counters *count = event_count();
	struct sonde_counters *shared = zeroth(&counters);
	bool sent;

	if (shared && s->runtimes_left)
		count_one(&shared->runtimes_missed);
	send_runtime(s);
	sent = probe_cfg.nr_printed ? send_values(s) : send_sample_alone(s);
	scratch_leave(s);
	if (count)
		count_one(sent ? &count->recorded : &count->dropped[SONDE_DROP_RING_FULL]);
	return 0;
}

/* Runs after the programs of the runtimes. */
SEC("kprobe")
int sonde_event_end(void *ctx)
{
	struct scratch *s = scratch_of_run(ctx);

	return s ? send_event(s) : 0;
}

SEC("kprobe")
int sonde_event(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct sonde_event_counters *count = event_count();
	__u64 tgid_tid = bpf_get_current_pid_tgid();
	char comm[SONDE_COMM_BYTES] = {};
	struct sonde_counters *shared;
	struct scratch *s;

	shared = zeroth(&counters);
	if (!count || !shared)
		return 0; /* there are always some */
	count_one(&count->hits);
	bpf_get_current_comm(comm, sizeof(comm));
	if (is_filtered(count, task, tgid_tid, comm))
		return 0;
	s = scratch_take(ctx);
	if (!s) {
		count_one(&count->dropped[SONDE_DROP_NO_SCRATCH]);
		return 0;
	}
	if (probe_cfg.examined && !examine(ctx, s->walk.number)) {
		scratch_leave(s);
		count_one(&count->filtered[SONDE_FILTER_TARGET]);
		return 0;
	}
	begin_sample(s, bpf_ktime_get_ns(), tgid_tid);
	__builtin_memcpy(s->sample.comm, comm, sizeof(comm));
	if (cfg.kernel_stacks && !event_cfg.in_user)
		s->sample.kernel_state =
		    kernel_state(s, get_kernel_stack(ctx, s), event_cfg.nr_own_frames, s->sample.time_ns, &s->sample.kernel_stack);
	if (cfg.user_stacks && take_regs(s->walk.number)) {
		enter_process(s, &s->sample);
		take_user_stack(s, shared, 0);
	}
	return is_next_runtime(s) ? next_runtime(ctx, s) : send_event(s);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
