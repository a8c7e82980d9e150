// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sampler: runs at every tick of a perf event, on every CPU that has one, and sends the sample with its user and kernel stack.
 *
 * A stack's body is sent when its hash is new to the map `stacks`, before the sample that names it. Nothing is lost without a
 * name: every way out adds to a counter. One perf_event program never interrupts another on the same CPU (the kernel's
 * bpf_prog_active), so one scratch per CPU is enough and its counters need no atomics. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi/config.h"
#include "abi/unwind.h"
#include "lib/maps.h"
#include "lib/unwind.h"
#include "lib/user_regs.h"

struct scratch {
	struct walk walk;
	struct {
		struct sonde_stack_record header;
		__u64 frames[SONDE_MAX_USER_FRAMES];
	} stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader: one per possible CPU */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline bool is_target(__u64 tgid_tid)
{
	__u32 id = cfg.filter_tgid ? tgid_tid >> 32 : (__u32)tgid_tid;

	return bpf_map_lookup_elem(&targets, &id);
}

static __always_inline bool same_comm(const char *comm)
{
	for (int i = 0; i < SONDE_COMM_BYTES; i++) {
		if (comm[i] != cfg.comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

static __always_inline bool is_comm(struct task_struct *task, const char *comm)
{
	char leader[SONDE_COMM_BYTES] = {};

	if (same_comm(comm))
		return true;
	BPF_CORE_READ_STR_INTO(&leader, task, group_leader, comm); /* on failure "", which no filter is */
	return same_comm(leader);
}

static __always_inline __u64 wake_flag(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= cfg.ring_wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Sends the body in s->stack, unless one with that hash was sent. */
static __always_inline enum sonde_side store_stack(struct scratch *s, __u64 time_ns)
{
	__u64 hash = s->stack.header.hash;
	__u32 nr_frames = s->stack.header.nr_frames;
	__u8 sent = 1;
	long err;

	if (bpf_map_lookup_elem(&stacks, &hash))
		return SONDE_SIDE_STORED;
	err = bpf_map_update_elem(&stacks, &hash, &sent, BPF_NOEXIST);
	if (err == -17) /* EEXIST: another CPU was faster, and sends it */
		return SONDE_SIDE_STORED;
	if (err)
		return err == -7 ? SONDE_SIDE_FULL : SONDE_SIDE_LOST; /* E2BIG; else EBUSY */
	if (nr_frames > SONDE_MAX_USER_FRAMES) /* never: for the verifier */
		nr_frames = SONDE_MAX_USER_FRAMES;
	s->stack.header.type = SONDE_RECORD_STACK;
	s->stack.header.time_ns = time_ns;
	if (bpf_ringbuf_output(&ring, &s->stack, sizeof(s->stack.header) + nr_frames * sizeof(__u64), wake_flag())) {
		bpf_map_delete_elem(&stacks, &hash);
		return SONDE_SIDE_LOST;
	}
	return SONDE_SIDE_STORED;
}

static __always_inline enum sonde_side kernel_side(void *ctx, struct scratch *s, __u64 time_ns, __u64 *ret_hash)
{
	long size = bpf_get_stack(ctx, s->stack.frames, SONDE_MAX_KERNEL_FRAMES * sizeof(__u64), 0);
	__u64 hash = 0;

	if (size <= 0)
		return SONDE_SIDE_LOST;
	for (__u32 i = 0; i < SONDE_MAX_KERNEL_FRAMES && i < size / sizeof(__u64); i++)
		hash = hash_step(hash, s->stack.frames[i]);
	s->stack.header.tgid = 0;
	s->stack.header.hash = hash;
	s->stack.header.nr_frames = size / sizeof(__u64);
	s->stack.header.stop = s->stack.header.nr_frames < SONDE_MAX_KERNEL_FRAMES ? SONDE_STOP_COMPLETE : SONDE_STOP_DEPTH;
	*ret_hash = hash;
	return store_stack(s, time_ns);
}

/* Finds the process's mappings. The hash that the walk starts with tells address spaces apart. */
static __always_inline void walk_enter_process(struct walk *w, __u32 tgid)
{
	__u32 *pos = bpf_map_lookup_elem(&processes, &tgid);
	const __u32 *words;

	w->hash = tgid;
	w->process_pos = 0;
	w->nr_mappings = 0;
	w->mapping.start_pc = w->mapping.end_pc = 0;
	if (!pos)
		return;
	words = chunk_at(*pos);
	if (!words || CHUNK_WORD(words, *pos) != tgid)
		return;
	w->nr_mappings = CHUNK_WORD(words, *pos + 1);
	w->hash = hash_step(tgid, CHUNK_WORD(words, *pos + 2)); /* generation */
	w->serial = CHUNK_WORD(words, *pos + 3);
	w->process_pos = *pos + sizeof(struct sonde_process) / 4;
}

static long on_frame(__u32 turn, void *arg)
{
	__u32 cpu = *(__u32 *)arg;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);

	if (!s)
		return WALK_ENDED;
	return walk_step(&s->walk, s->stack.frames) == WALK_GOES_ON ? 0 : 1; /* in a form whose range the verifier sees */
}

static __always_inline enum sonde_side user_side(struct scratch *s, __u32 cpu, __u32 tgid, __u64 time_ns, __u64 *ret_hash)
{
	struct walk *w = &s->walk;

	walk_enter_process(w, tgid);
	w->block_limit = 0;
	w->nr_frames = 0;
	w->exact = 1;
	w->stop = SONDE_STOP_DEPTH; /* unless the walk says otherwise */
	bpf_loop(SONDE_MAX_USER_FRAMES, on_frame, &cpu, 0);
	s->stack.header.tgid = tgid;
	s->stack.header.hash = hash_step(w->hash, w->stop);
	s->stack.header.nr_frames = w->nr_frames;
	s->stack.header.stop = w->stop;
	*ret_hash = s->stack.header.hash;
	return store_stack(s, time_ns);
}

static __always_inline bool is_filtered(struct sonde_counters *count, struct task_struct *task, __u64 tgid_tid, const char *comm)
{
	if (!tgid_tid && !cfg.include_idle) {
		count->filtered[SONDE_FILTER_IDLE]++;
		return true;
	}
	if (((cfg.filter_tgid || cfg.filter_tid) && !is_target(tgid_tid)) || (cfg.filter_comm && !is_comm(task, comm))) {
		count->filtered[SONDE_FILTER_TARGET]++;
		return true;
	}
	return false;
}

SEC("perf_event")
int on_tick(struct bpf_perf_event_data *ctx)
{
	__u32 zero = 0, cpu = bpf_get_smp_processor_id();
	struct sonde_counters *count = bpf_map_lookup_elem(&counters, &zero);
	struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct sonde_sample_record sample = { .type = SONDE_RECORD_SAMPLE, .cpu = cpu, .time_ns = bpf_ktime_get_ns() };
	__u64 tgid_tid = bpf_get_current_pid_tgid();

	if (!count)
		return 0; /* there is always one */
	count->ticks++;
	bpf_get_current_comm(sample.comm, sizeof(sample.comm));
	if (is_filtered(count, task, tgid_tid, sample.comm))
		return 0;
	if (!s) {
		count->dropped[SONDE_DROP_NO_SCRATCH]++;
		return 0;
	}
	sample.tgid = tgid_tid >> 32;
	sample.tid = tgid_tid;
	if (cfg.kernel_stacks && !user_mode(ctx))
		sample.kernel_side = kernel_side(ctx, s, sample.time_ns, &sample.kernel_stack);
	if (cfg.user_stacks && user_regs(ctx, task, &s->walk))
		sample.user_side = user_side(s, cpu, sample.tgid, sample.time_ns, &sample.user_stack);
	if (bpf_ringbuf_output(&ring, &sample, sizeof(sample), wake_flag()))
		count->dropped[SONDE_DROP_RING_FULL]++;
	else
		count->recorded++;
	return 0;
}

/* For `-- command`: the children of a target are targets from their first instruction on, and no longer than they live. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = parent->tgid, child_tgid = child->tgid;
	__u8 yes = 1;

	if (parent_tgid != child_tgid && bpf_map_lookup_elem(&targets, &parent_tgid))
		bpf_map_update_elem(&targets, &child_tgid, &yes, BPF_ANY); /* holds more processes than can be told apart at once */
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (!task->signal->live.counter) /* the last thread */
		bpf_map_delete_elem(&targets, &tgid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
