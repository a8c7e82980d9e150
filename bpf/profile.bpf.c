// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sampler: runs at every tick of a perf event, on every CPU that has one, and sends the sample with its user and kernel stack.
 *
 * A stack's body is sent when its hash is new to the map `stacks`, before the sample that names it. A user stack of a process or a file that is not known
 * yet is sent raw, and walked in user space. Nothing is lost without a
 * name: every way out adds to a counter, which needs no atomics (see lib/scratch.h).
 *
 * What interpreters of the process run is found by programs of their own, to which this one goes on at its end (lib/send.h). */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi/config.h"
#include "abi/unwind.h"
#include "lib/maps.h"
#include "lib/retry.h"
#include "lib/scratch.h"
#include "lib/send.h"
#include "lib/unwind.h"
#include "lib/user_regs.h"

#define SYS_EXECVE 59            /* asm/unistd_64.h */
#define SYS_EXECVEAT 322
#define FEW_TURNS 4    /* 13 % less time at 34 frames than 1; 8 was no better */
#define MANY_TURNS 512

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

/* Sends the body in s->stack, unless one with that hash was sent. */
static __always_inline enum sonde_side send_stack(struct scratch *s, __u64 time_ns)
{
	if (is_sent(s->stack.header.hash))
		return SONDE_SIDE_STORED;
	s->stack.header.type = SONDE_RECORD_STACK;
	s->stack.header.time_ns = time_ns;
	return send_body(&s->stack, sizeof(s->stack.header) + s->stack.header.nr_frames * sizeof(__u64), sizeof(s->stack), s->stack.header.hash, wake_flag());
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
	s->stack.header.known_ns = 0;
	s->stack.header.nr_walked = s->stack.header.nr_frames = size / sizeof(__u64);
	s->stack.header.stop = s->stack.header.nr_frames < SONDE_MAX_KERNEL_FRAMES ? SONDE_STOP_COMPLETE : SONDE_STOP_DEPTH;
	*ret_hash = hash;
	return send_stack(s, time_ns);
}

/* Finds the process's mappings. The hash that the walk starts with tells address spaces apart. */
static __always_inline void walk_enter_process(struct walk *w, __u32 tgid)
{
	__u32 *pos = bpf_map_lookup_elem(&processes, &tgid);
	__u64 *born_ns = bpf_map_lookup_elem(&born, &tgid);
	const __u32 *words;

	w->hash = w->hash_begin = tgid;
	w->process_pos = 0;
	w->nr_mappings = 0;
	w->known_ns = 0;
	w->runtimes = 0;
	if (!pos)
		return;
	words = chunk_at(w, *pos);
	if (!words || CHUNK_WORD(words, *pos) != tgid)
		return;
	w->known_ns = CHUNK_U64(words, *pos + 4);
	if (born_ns && *born_ns > w->known_ns) /* that was another program, or another process */
		return;
	w->nr_mappings = CHUNK_WORD(words, *pos + 1);
	w->generation = CHUNK_WORD(words, *pos + 2);
	w->runtimes = CHUNK_WORD(words, *pos + 6);
	w->hash = w->hash_begin = hash_step(tgid, w->generation);
	w->serial = CHUNK_WORD(words, *pos + 3);
	w->process_pos = *pos + sizeof(struct sonde_process) / 4;
}

/* Puts the user registers into the walk; 0: there are none. Its copy of them would be too much for the 512 bytes that on_tick and the walk have together. */
WALK_FUNCTION int take_regs(struct bpf_perf_event_data *ctx, __u32 cpu)
{
	struct scratch *s = scratch_of(cpu);

	return s && user_regs(ctx, (void *)bpf_get_current_task(), &s->walk);
}

/* The walk's loop is three loops, of functions that the verifier proves once each and that take numbers alone: so it needs neither bpf_loop (Linux 5.17) nor tail calls, which
 * end after 33, and is the same on all kernels. */
WALK_FUNCTION int walk_few(__u32 cpu)
{
	struct scratch *s = scratch_of(cpu);

	if (!s)
		return WALK_ENDED;
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < FEW_TURNS; turn++) {
		if (walk_step(&s->walk, s->stack.frames) != WALK_GOES_ON)
			return WALK_ENDED;
	}
	return WALK_GOES_ON;
}

WALK_FUNCTION int walk_many(__u32 cpu)
{
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < MANY_TURNS; turn += FEW_TURNS) {
		if (walk_few(cpu) != WALK_GOES_ON)
			return WALK_ENDED;
	}
	return WALK_GOES_ON;
}

static __always_inline void walk_all(__u32 cpu)
{
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < WALK_MAX_TURNS; turn += MANY_TURNS) {
		if (walk_many(cpu) != WALK_GOES_ON)
			break;
	}
}

WALK_FUNCTION __u64 hash_walk(__u32 cpu)
{
	struct scratch *s = scratch_of(cpu);

	return s ? walk_hash(&s->walk, s->stack.frames) : 0;
}

/* Copies the stack from `start` on, page by page up to the first that is not there. */
WALK_FUNCTION __u32 copy_stack(__u32 cpu, __u64 start)
{
	struct scratch *s = scratch_of(cpu);
	__u32 size = WALK_PAGE_BYTES - (start & (WALK_PAGE_BYTES - 1)), off = 0;

	if (!s)
		return 0;
	for (int page = 0; page <= SONDE_RAW_MAX_BYTES / WALK_PAGE_BYTES; page++) {
		if (off + size > SONDE_RAW_MAX_BYTES) /* it ends where a page does */
			break;
		if (size > WALK_PAGE_BYTES || bpf_probe_read_user(s->raw.bytes + off, size, (const void *)(start + off)))
			break;
		off += size;
		size = WALK_PAGE_BYTES;
	}
	return off;
}

static __always_inline bool may_send_raw(struct scratch *s, __u64 time_ns)
{
	open_window(s, time_ns);
	return s->nr_raws < RAW_MAX;
}

/* Has user space seen this stack, and found no more to it? */
static __always_inline bool is_settled(__u64 hash)
{
	__u8 *state = bpf_map_lookup_elem(&stacks, &hash);

	return state && *state == SONDE_STACK_SETTLED;
}

/* Sends the registers and the stack as they are, behind the header that stands in s->raw. 0, or not 0: it was not possible. */
WALK_FUNCTION int send_raw(struct bpf_perf_event_data *ctx, __u32 cpu, __u64 flags)
{
	struct scratch *s = scratch_of(cpu);
	__u64 nr_bytes;

	if (!s || !take_regs(ctx, cpu))
		return -1;
	s->raw.header.compat = s->walk.compat;
	for (int i = 0; i < WALK_NR_REGS; i++)
		s->raw.header.regs[i] = s->walk.regs[i];
	s->raw.header.regs[WALK_REG_BP] = s->walk.bp;
	s->raw.header.regs[WALK_REG_SP] = s->walk.sp;
	s->raw.header.regs[SONDE_REG_PC] = s->walk.pc;
	s->raw.header.stack_start = s->walk.sp - SONDE_RED_ZONE_BYTES;
	nr_bytes = copy_stack(cpu, s->raw.header.stack_start);
	if (!nr_bytes) {
		s->raw.header.stack_start = s->walk.sp;
		nr_bytes = copy_stack(cpu, s->walk.sp);
	}
	barrier_var(nr_bytes);
	if (nr_bytes > SONDE_RAW_MAX_BYTES) /* never: for the verifier */
		nr_bytes = SONDE_RAW_MAX_BYTES;
	s->raw.header.stack_bytes = nr_bytes;
	return bpf_ringbuf_output(&ring, &s->raw, sizeof(s->raw.header) + nr_bytes, flags) != 0;
}

/* May user space come farther than the kernel did? */
static __always_inline bool is_early(enum sonde_stop stop)
{
	return stop == SONDE_STOP_NO_PROCESS || stop == SONDE_STOP_NO_MAPPING || stop == SONDE_STOP_NOT_LOADED;
}

/* While a program is replaced there are the registers of the old one, but not its memory. */
static __always_inline bool in_exec(struct bpf_perf_event_data *ctx, struct task_struct *task)
{
	__u64 number = user_mode(ctx) ? 0 : user_syscall(task);

	return number == SYS_EXECVE || number == SYS_EXECVEAT;
}

/* What send_raw does not know. */
static __always_inline void begin_raw(struct scratch *s, const struct sonde_sample_record *sample, __u64 hash, enum sonde_raw_use use, enum sonde_stop stop)
{
	struct sonde_raw_record *raw = &s->raw.header;

	s->nr_raws++;
	raw->type = SONDE_RECORD_RAW;
	raw->tgid = sample->tgid;
	raw->time_ns = sample->time_ns;
	raw->id = sample->user_stack;
	raw->hash = hash;
	raw->use = use;
	raw->stop = stop;
	raw->in_syscall = s->walk.in_syscall;
}

/* Sends what the walk has found or, when user space may find more, the stack itself. */
static __always_inline enum sonde_side send_user(struct bpf_perf_event_data *ctx, struct scratch *s, struct sonde_sample_record *sample, struct sonde_counters *count, bool can_retry)
{
	__u32 nr_walked = s->walk.nr_frames;
	enum sonde_stop stop = s->walk.stop;
	bool early = is_early(stop);
	__u64 hash = hash_walk(sample->cpu);
	enum sonde_side side;

	sample->user_stack = hash;
	if ((early || (can_retry && stop == SONDE_STOP_READ_FAULT)) && !is_settled(hash)) {
		if (may_send_raw(s, sample->time_ns)) {
			sample->user_stack = hash_step(hash_step(hash, sample->time_ns), sample->cpu);
			begin_raw(s, sample, hash, SONDE_RAW_WALK, stop);
			if (early ? send_raw(ctx, sample->cpu, stop == SONDE_STOP_NOT_LOADED ? BPF_RB_FORCE_WAKEUP : wake_flag()) : retry_later(&s->raw.header))
				return SONDE_SIDE_LOST;
			count->raws++;
			return SONDE_SIDE_RAW;
		}
		count->raws_refused += early;
	}
	s->stack.header.tgid = sample->tgid;
	s->stack.header.hash = hash;
	s->stack.header.known_ns = s->walk.known_ns;
	s->stack.header.nr_walked = nr_walked;
	s->stack.header.nr_frames = nr_walked < SONDE_MAX_USER_FRAMES ? nr_walked : SONDE_MAX_USER_FRAMES;
	s->stack.header.stop = stop;
	side = send_stack(s, sample->time_ns);
	if (cfg.audit_every && side == SONDE_SIDE_STORED && ++s->nr_walked % cfg.audit_every == 0 && may_send_raw(s, sample->time_ns)) {
		begin_raw(s, sample, hash, SONDE_RAW_AUDIT, stop);
		send_raw(ctx, sample->cpu, wake_flag()); /* if not, one less is audited */
	}
	return side;
}

static __always_inline enum sonde_side user_side(struct bpf_perf_event_data *ctx, struct task_struct *task, struct scratch *s, struct sonde_sample_record *sample,
						 struct sonde_counters *count, bool can_retry)
{
	s->walk.number = sample->cpu;
	walk_enter_process(&s->walk, sample->tgid);
	walk_enter(&s->walk);
	walk_all(sample->cpu);
	if (s->walk.stop != SONDE_STOP_COMPLETE && in_exec(ctx, task)) {
		walk_enter(&s->walk); /* its frames mean nothing */
		s->walk.hash = sample->tgid;
		s->walk.stop = SONDE_STOP_EXEC;
	}
	return send_user(ctx, s, sample, count, can_retry);
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

/* What a sample begins with, and nothing of the one before. */
static __always_inline void begin_sample(struct scratch *s, __u32 cpu, __u64 tgid_tid)
{
	s->sample = (struct sonde_sample_record){ .type = SONDE_RECORD_SAMPLE, .cpu = cpu, .time_ns = bpf_ktime_get_ns(), .tgid = tgid_tid >> 32, .tid = tgid_tid };
	s->runtimes_left = 0;
	s->runtime.nr_frames = 0;
	s->runtime.record.stop = 0;
	s->runtime.record.fault = 0;
}

static __always_inline int take_sample(struct bpf_perf_event_data *ctx, bool can_retry)
{
	__u32 zero = 0, cpu = bpf_get_smp_processor_id();
	struct sonde_counters *count = bpf_map_lookup_elem(&counters, &zero);
	struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 tgid_tid = bpf_get_current_pid_tgid();
	char comm[SONDE_COMM_BYTES] = {};

	if (!count)
		return 0; /* there is always one */
	count->ticks++;
	bpf_get_current_comm(comm, sizeof(comm));
	if (is_filtered(count, task, tgid_tid, comm))
		return 0;
	if (!s) {
		count->dropped[SONDE_DROP_NO_SCRATCH]++;
		return 0;
	}
	begin_sample(s, cpu, tgid_tid);
	__builtin_memcpy(s->sample.comm, comm, sizeof(comm));
	if (cfg.kernel_stacks && !user_mode(ctx))
		s->sample.kernel_side = kernel_side(ctx, s, s->sample.time_ns, &s->sample.kernel_stack);
	if (cfg.user_stacks && take_regs(ctx, cpu)) {
		s->sample.user_side = user_side(ctx, task, s, &s->sample, count, can_retry);
		s->runtimes_left = s->walk.runtimes;
	}
	return next_runtime(ctx, s);
}

SEC("perf_event")
int on_tick(struct bpf_perf_event_data *ctx)
{
	return take_sample(ctx, false);
}

/* The same where the kernel has bpf_task_work. */
SEC("perf_event")
int on_tick_retry(struct bpf_perf_event_data *ctx)
{
	return take_sample(ctx, true);
}

/* A process comes to life, so what was known of its id is of another. For `-- command`: the children of a target are targets from their first instruction on, and no
 * longer than they live. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = parent->tgid, child_tgid = child->tgid;
	__u64 start_ns = child->start_time; /* before the side-band tells of it: who has read that knows the child */
	__u8 yes = 1;

	if (parent_tgid == child_tgid) /* a thread */
		return 0;
	bpf_map_update_elem(&born, &child_tgid, &start_ns, BPF_ANY);
	if (cfg.filter_tgid && bpf_map_lookup_elem(&targets, &parent_tgid) && cfg.follow)
		bpf_map_update_elem(&targets, &child_tgid, &yes, BPF_ANY); /* holds more processes than can be told apart at once */
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	__u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&born, &tgid, &now, BPF_ANY);
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
