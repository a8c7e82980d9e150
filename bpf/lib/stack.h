/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stacks of the current thread, as all triggers send them: what the native walk needs to know of the process, the kernel's stack, and
 * deferred stacks where user space may find more frames. */
#pragma once
#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "maps.h"
#include "deferred_copy.h"
#include "scratch.h"
#include "send.h"
#include "../walk/unwind.h"
#include "user_regs.h"
#include "../walk/walk_clock.h"

#define SYS_EXECVE 59            /* asm/unistd_64.h */
#define SYS_EXECVEAT 322

/* For events of which an unknown process may have thousands a second: deferred stacks leave room in the ring for payloads of known stacks,
 * and the first one in a window wakes the reader. */
static const bool deferred_leaves_room;

/* Sends the payload in s->stack, unless one with that hash was sent. */
static __always_inline enum sonde_stack_state send_stack(struct scratch *s, __u64 time_ns)
{
	if (is_sent(s->stack.header.hash))
		return SONDE_STACK_STORED;
	s->stack.header.type = SONDE_RECORD_STACK;
	s->stack.header.time_ns = time_ns;
	return send_payload(&s->stack, sizeof(s->stack.header) + s->stack.header.nr_frames * sizeof(__u64), sizeof(s->stack),
			    s->stack.header.hash, wake_flag());
}

static __always_inline long get_kernel_stack(void *ctx, struct scratch *s)
{
	return bpf_get_stack(ctx, s->stack.frames, SONDE_MAX_KERNEL_FRAMES * sizeof(__u64), 0);
}

/* Hashes the frames from number `from` up to `nr`. Verified by itself: inlined, it made Linux 6.1 verify three times as many
 * instructions. */
WALK_FUNCTION __u64 hash_kernel_stack(__u32 slot, __u32 from, __u32 nr)
{
	struct scratch *s = scratch_of(slot);
	__u64 hash = cfg.hash_seed;

	if (!s)
		return 0;
	for (__u32 i = from; i < SONDE_MAX_KERNEL_FRAMES && i < nr; i++)
		hash = hash_step(hash, s->stack.frames[i]);
	return hash;
}

/* Sends the kernel stack in s->stack.frames: `size` bytes, as bpf_get_stack returns it. The hash leaves out the first nr_own frames. */
static __always_inline enum sonde_stack_state kernel_state(struct scratch *s, long size, __u32 nr_own, __u64 time_ns, __u64 *ret_hash)
{
	__u64 hash;

	if (size <= 0)
		return SONDE_STACK_LOST;
	hash = hash_kernel_stack(s->walk.number, nr_own, size / sizeof(__u64));
	s->stack.header.tgid = 0;
	s->stack.header.generation = 0;
	s->stack.header.hash = hash;
	s->stack.header.known_ns = 0;
	s->stack.header.nr_walked = s->stack.header.nr_frames = size / sizeof(__u64);
	s->stack.header.stop = s->stack.header.nr_frames < SONDE_MAX_KERNEL_FRAMES ? SONDE_STOP_COMPLETE : SONDE_STOP_DEPTH;
	*ret_hash = hash;
	return send_stack(s, time_ns);
}

/* For a process that user space has not described yet. Its start time and its count of execs tell lives and programs apart. */
static __always_inline void walk_enter_unknown(struct walk *w, __u32 tgid)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 start_ns = BPF_CORE_READ(task, group_leader, start_time), exec = BPF_CORE_READ(task, self_exec_id);

	w->generation = 0;
	w->hash = w->hash_begin = hash_process(cfg.hash_seed, tgid, 0, hash_step(start_ns, exec));
}

/* Finds the process's mappings. False: they are not known. */
static __always_inline bool walk_find_process(struct walk *w, __u32 tgid)
{
	__u32 *pos = bpf_map_lookup_elem(&processes, &tgid);
	__u64 *process_start_ns = bpf_map_lookup_elem(&start_times, &tgid);
	const __u32 *words;

	w->process_pos = 0;
	w->nr_mappings = 0;
	w->known_ns = 0;
	w->runtimes = 0;
	if (!pos)
		return false;
	words = chunk_at(w, *pos);
	if (!words || CHUNK_WORD(words, *pos) != tgid)
		return false;
	w->known_ns = CHUNK_U64(words, *pos + 4);
	if (process_start_ns && *process_start_ns > w->known_ns) /* they belong to another program, or another process */
		return false;
	w->nr_mappings = CHUNK_WORD(words, *pos + 1);
	w->generation = CHUNK_WORD(words, *pos + 2);
	w->serial = CHUNK_WORD(words, *pos + 3);
	w->runtimes = CHUNK_WORD(words, *pos + 6);
	w->process_pos = *pos + sizeof(struct sonde_process) / 4;
	return true;
}

/* The hash that the walk starts with differs between address spaces. */
static __always_inline void walk_enter_process(struct walk *w, __u32 tgid)
{
	if (walk_find_process(w, tgid))
		w->hash = w->hash_begin = hash_process(cfg.hash_seed, tgid, w->generation, 0);
	else
		walk_enter_unknown(w, tgid);
}

WALK_FUNCTION __u64 hash_walk(__u32 slot)
{
	struct scratch *s = scratch_of(slot);

	return s ? walk_hash(&s->walk, s->stack.frames) : 0;
}

static __always_inline bool may_send_deferred(struct scratch *s, __u64 time_ns)
{
	open_window(s, time_ns);
	if (deferred_leaves_room && bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= 3ull * cfg.ring_wake_bytes / 2) /* three quarters */
		return false;
	return s->nr_deferred < DEFERRED_MAX;
}

/* True if user space has walked this stack and found no more frames. */
static __always_inline bool is_settled(__u64 hash)
{
	__u64 key = sonde_sent_key(hash, window_number());
	__u8 *state = bpf_map_lookup_elem(&stacks, &key);

	return state && *state == SONDE_STACK_SETTLED;
}

/* Sends s->deferred with nr_pages of the stack behind it. Returns 0; not 0: there is no room. */
WALK_FUNCTION int send_deferred(__u32 slot, __u32 nr_pages, __u64 flags)
{
	struct scratch *s = scratch_of(slot);

	return !s || send_copy(&s->deferred, nr_pages, flags);
}

/* While a program is replaced, the registers are still the old one's, but its memory is unmapped. */
static __always_inline bool in_exec(const struct walk *w)
{
	return w->syscall == SYS_EXECVE || w->syscall == SYS_EXECVEAT;
}

/* All ones; 0: the walk was so slow that there is no time left for a long copy. */
WALK_FUNCTION __u64 long_copy_mask(__u32 slot)
{
	struct scratch *s = scratch_of(slot);

	return s && !was_walk_slow(&s->walk, WALK_MORE_NS) ? -1ULL : 0;
}

/* Number of pages of a stack to send: all of it, if the limits allow that now. */
static __always_inline __u32 choose_length(struct scratch *s, struct sonde_counters *count)
{
	/* half of the ring is kept for shorter stacks */
	__u64 used = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA),
	      room = used < cfg.ring_wake_bytes ? (cfg.ring_wake_bytes - used) / WALK_PAGE_BYTES : 0;
	__u32 left = DEFERRED_MORE_PAGES - s->nr_deferred_pages, asked = deferred_pages(s->deferred.stack_start),
	      length = deferred_length(asked ? asked : DEFERRED_UNKNOWN_PAGES);
	__u32 best = length;

	room &= long_copy_mask(s->walk.number);
	for (int i = 0; i < DEFERRED_LENGTHS - 1 && length > SONDE_DEFERRED_MIN_PAGES && (length > left || length > room); i++)
		length /= 2;
	if (length > SONDE_DEFERRED_MIN_PAGES)
		s->nr_deferred_pages += length;
	if (length < best)
		count_one(&count->deferred_cut);
	s->deferred.is_cut = !asked || asked > length;
	return length;
}

/* Wakes the reader if it has a table to load, and for stacks that take much room. */
static __always_inline __u64 raw_flag(const struct scratch *s, __u32 length, enum sonde_stop stop)
{
	return stop == SONDE_STOP_NOT_LOADED || length > SONDE_DEFERRED_MIN_PAGES || (deferred_leaves_room && s->nr_deferred == 1)
		   ? BPF_RB_FORCE_WAKEUP
		   : wake_flag();
}

/* Fills in what send_deferred does not. */
static __always_inline void begin_deferred(struct scratch *s, const struct sonde_sample_record *sample, __u64 hash,
					   enum sonde_deferred_use use, enum sonde_stop stop)
{
	struct sonde_deferred_record *deferred = &s->deferred;

	s->nr_deferred++;
	deferred->type = SONDE_RECORD_DEFERRED;
	deferred->tgid = sample->tgid;
	deferred->time_ns = sample->time_ns;
	deferred->id = sample->user_stack;
	deferred->hash = hash;
	deferred->hash_begin = s->walk.hash_begin;
	deferred->use = use;
	deferred->stop = stop;
	deferred->in_syscall = s->walk.in_syscall;
	deferred->stack_start &= -(__u64)WALK_PAGE_BYTES;
	deferred->is_cut = 1;
}

/* Makes the current thread send the record that begins with `header` later. Returns 0; not 0: that is not possible. NULL: this trigger has
 * no such way. */
typedef int (*retry_fn)(const struct sonde_deferred_record *header);

/* Sends the frames of the walk or, if user space may find more, the stack itself. */
static __always_inline enum sonde_stack_state send_user(struct scratch *s, struct sonde_sample_record *sample, struct sonde_counters *count,
							retry_fn retry)
{
	__u32 nr_walked = s->walk.nr_frames, length;
	enum sonde_stop stop = s->walk.stop;
	bool early = is_early(stop);
	__u64 hash = hash_walk(s->walk.number);
	enum sonde_stack_state state;

	sample->user_stack = hash;
	sample->generation = s->walk.generation;
	if ((early || (retry && stop == SONDE_STOP_READ_FAULT)) && !is_settled(hash)) {
		if (may_send_deferred(s, sample->time_ns)) {
			sample->user_stack = hash_step(hash_step(hash, sample->time_ns), sample->cpu);
			begin_deferred(s, sample, hash, SONDE_DEFERRED_WALK, stop);
			length = early ? choose_length(s, count) : 0;
			if (early ? send_deferred(s->walk.number, length, raw_flag(s, length, stop)) : retry(&s->deferred))
				return SONDE_STACK_LOST;
			count_one(&count->deferred);
			return SONDE_STACK_DEFERRED;
		}
		if (early)
			count_one(&count->deferred_refused);
	}
	s->stack.header.tgid = sample->tgid;
	s->stack.header.generation = sample->generation;
	s->stack.header.hash = hash;
	s->stack.header.known_ns = s->walk.known_ns;
	s->stack.header.nr_walked = nr_walked;
	s->stack.header.nr_frames = nr_walked < SONDE_MAX_USER_FRAMES ? nr_walked : SONDE_MAX_USER_FRAMES;
	s->stack.header.stop = stop;
	state = send_stack(s, sample->time_ns);
	if (cfg.audit_every && state == SONDE_STACK_STORED && !s->runtime.nr_frames && ++s->nr_walked % cfg.audit_every == 0 &&
	    may_send_deferred(s, sample->time_ns)) {
		begin_deferred(s, sample, hash, SONDE_DEFERRED_AUDIT, stop);
		send_deferred(s->walk.number, SONDE_DEFERRED_MIN_PAGES, wake_flag()); /* on failure one stack fewer is audited */
	}
	return state;
}

/* Prepares the walk for the sample's process. */
static __always_inline void enter_process(struct scratch *s, const struct sonde_sample_record *sample)
{
	s->walk.event_ns = sample->time_ns;
	walk_enter_process(&s->walk, sample->tgid);
}

/* Ends the walk. While the program is being replaced its frames mean nothing. */
static __always_inline void end_walk(struct scratch *s)
{
	struct walk *w = &s->walk;

	if (w->stop == SONDE_STOP_COMPLETE && w->has_gap)
		w->stop = SONDE_STOP_GAP;
	if (w->stop == SONDE_STOP_COMPLETE || !in_exec(w))
		return;
	walk_enter(w);
	walk_enter_unknown(w, s->sample.tgid);
	w->stop = SONDE_STOP_EXEC;
	w->runtimes = 0; /* the interpreter's memory is unmapped, too */
	s->runtime.nr_frames = 0;
	s->runtime.record.stop = 0;
}

/* Sends the user stack of the current thread, when it has been walked. */
static __always_inline void end_user_stack(struct scratch *s, struct sonde_counters *count, retry_fn retry)
{
	end_walk(s);
	s->sample.user_state = send_user(s, &s->sample, count, retry);
	s->runtimes_left = s->walk.runtimes & ~(__u32)SONDE_RUNTIMES_THAT_OWN_CODE;
}
