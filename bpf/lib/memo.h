/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stacks of the current thread at an event of the scheduler: those that it had before are known without a walk. One of MEMO_CHECK of these is walked all the same, and compared. */
#pragma once
#include "kernel_memo.h"
#include "stack.h"
#include "wait_counters.h"
#include "../walk/walk_memo.h"

#define MEMO_CHECK 1024

struct memos {
	struct kernel_memos kernel;
	struct walk_memo user[WALK_MEMOS];
	__u32 next_kernel, next_user; /* that is replaced next */
	__u32 nr_hits;
	__u32 fresh;                    /* the user's that was kept just now, from 1 on; 0: none */
	__u64 waker;                    /* hash: as what it woke somebody up last, which was sent */
	__u64 window;                   /* that they are of */
};

/* What was sent in an earlier window is to be sent again. */
WALK_FUNCTION int forget_earlier(struct memos *memos)
{
	__u64 number = window_number();

	if (!memos || memos->window == number)
		return 0;
	memos->window = number;
	memos->waker = 0;
	for (int i = 0; i < KERNEL_MEMOS; i++)
		memos->kernel.of[i].hash = 0;
	for (int i = 0; i < WALK_MEMOS; i++)
		memos->user[i].hash = 0;
	return 0;
}

static __always_inline struct memos *memos_of_window(struct memos *memos)
{
	if (memos)
		forget_earlier(memos);
	return memos;
}

WALK_FUNCTION int user_memo_same(const struct walk_memo *memo, __u32 slot)
{
	struct scratch *s = scratch_of(slot);

	if (!s || !memo || !walk_memo_fits(memo, &s->walk))
		return 0;
	walk_memo_fetch(memo, &s->walk);
	return walk_memo_same(memo, &s->walk);
}

WALK_FUNCTION int user_memo_keep(struct walk_memo *memo, __u32 slot, __u64 hash)
{
	struct scratch *s = scratch_of(slot);

	if (s && memo)
		walk_memo_keep(memo, &s->walk, s->raw.regs, hash);
	return 0;
}

/* The clock is asked where somebody will want to know. */
static __always_inline void set_time(struct scratch *s)
{
	if (!s->sample.time_ns)
		s->sample.time_ns = bpf_ktime_get_ns();
}

/* Is this hit one to be checked? */
static __always_inline bool is_checked(struct memos *memos, struct sonde_wait_counters *count)
{
	count->memo_hits++;
	if (++memos->nr_hits % MEMO_CHECK)
		return false;
	count->memo_checks++;
	return true;
}

static __always_inline void learn_kernel_stack(struct scratch *s, struct memos *memos, __u64 size)
{
	if (memos->kernel.of[0].hash == s->sample.kernel_stack) {
		kernel_memo_prune(&memos->kernel.of[0], s->walk.number);
	} else if (memos->kernel.of[1].hash == s->sample.kernel_stack) {
		kernel_memo_prune(&memos->kernel.of[1], s->walk.number);
	} else {
		kernel_memo_keep(&memos->kernel.of[memos->next_kernel & (KERNEL_MEMOS - 1)], s->walk.number, size, s->sample.kernel_stack);
		memos->next_kernel++;
	}
}

/* It is not known, or to be checked. Gives enum sonde_side. */
static __noinline int unwind_kernel_side(__u64 *ctx, struct scratch *s, struct memos *memos, __u64 size, struct sonde_wait_counters *count)
{
	__u64 known = s->sample.kernel_stack;
	enum sonde_side side;

	set_time(s);
	side = kernel_side(s, get_kernel_stack(ctx, s), SONDE_TRACEPOINT_FRAMES, s->sample.time_ns, &s->sample.kernel_stack);
	if (known && known != s->sample.kernel_stack)
		count->memo_wrong++;
	if (!known && size && side == SONDE_SIDE_STORED)
		learn_kernel_stack(s, memos, size);
	return side;
}

/* memos: NULL: nothing is remembered of this thread. Gives enum sonde_side. */
static __always_inline int kernel_side_by_memo(struct task_struct *task, __u64 *ctx, struct scratch *s, struct memos *memos, struct sonde_wait_counters *count)
{
	__u64 size = memos ? kernel_stack_bytes(task, ctx, s) : 0, known = size ? kernel_memo_find(&memos->kernel, s->walk.number, size) : 0;

	s->sample.kernel_stack = known;
	if (known && !is_checked(memos, count))
		return SONDE_SIDE_STORED;
	return unwind_kernel_side(ctx, s, memos, size, count);
}

/* Has the memo been found true, or made, just now? Labels may be other ones each time: whose runtime tells them is asked each time. */
static __always_inline void note_told(struct walk_memo *memo, const struct scratch *s)
{
	memo->told = s->walk.runtimes & SONDE_RUNTIMES_WITH_LABELS ? 0 : s->told;
	memo->exec = s->exec;
}

static __always_inline __u64 find_slowly(struct memos *memos, const struct scratch *s)
{
	for (int i = 0; i < WALK_MEMOS; i++) {
		if (user_memo_same(&memos->user[i], s->walk.number)) {
			note_told(&memos->user[i], s);
			return memos->user[i].hash;
		}
	}
	return 0;
}

#define USER_SIDE_WALKS (-1) /* no enum sonde_side */

/* The stack is not known by a look at it, or it is to be checked: then user_stack is its hash. Gives enum sonde_side, or USER_SIDE_WALKS: the walk stands at its begin. */
WALK_FUNCTION int begin_user_side(struct memos *memos, __u32 slot)
{
	struct sonde_wait_counters *count = wait_count();
	struct scratch *s = scratch_of(slot);

	if (!count || !s)
		return SONDE_SIDE_NONE; /* there are always some */
	set_time(s);
	if (!s->sample.user_stack)
		s->told = told_serial();
#ifdef SONDE_ARM64
	s->number = __sync_fetch_and_add(&s->number, 0); /* nothing that is read below was read before */
#endif
	if (!take_regs(slot))
		return SONDE_SIDE_NONE;
	enter_process(s, &s->sample);
	if (memos && !s->sample.user_stack) {
		s->sample.user_stack = find_slowly(memos, s);
		if (s->sample.user_stack && !is_checked(memos, count)) {
			s->sample.generation = s->walk.generation;
			s->runtimes_left = s->walk.runtimes & SONDE_RUNTIMES_WITH_LABELS;
			return SONDE_SIDE_STORED;
		}
	}
	walk_enter(&s->walk);
	return USER_SIDE_WALKS;
}

/* Behind the walk. What interpreters the process has are asked afterwards, but for those of a stack that is known to be none of theirs. */
WALK_FUNCTION int end_user_side(struct memos *memos, __u32 slot)
{
	__u32 zero = 0, i;
	struct sonde_counters *sent = bpf_map_lookup_elem(&counters, &zero);
	struct sonde_wait_counters *count = wait_count();
	struct scratch *s = scratch_of(slot);
	enum sonde_side side;
	__u64 known;

	if (!sent || !count || !s)
		return SONDE_SIDE_NONE; /* there are always some */
	known = s->sample.user_stack;
	end_walk(&s->walk, &s->sample);
	side = send_user(s, &s->sample, sent, 0);
	s->runtimes_left = s->walk.runtimes;
	if (known && known != s->sample.user_stack && side == SONDE_SIDE_STORED && s->told == told_serial()) /* else it was right, and is another by now */
		count->memo_wrong++;
	if (!known && memos && side == SONDE_SIDE_STORED) {
		i = memos->next_user++ & (WALK_MEMOS - 1);
		note_told(&memos->user[i], s);
		user_memo_keep(&memos->user[i], slot, s->sample.user_stack);
		memos->fresh = i + 1;
	}
	return side;
}

static __always_inline int walk_user_side(struct memos *memos, __u32 slot)
{
	int side = begin_user_side(memos, slot);

	if (side != USER_SIDE_WALKS)
		return side;
	walk_all(slot);
	return end_user_side(memos, slot);
}

/* By what is to be seen without calls, of a process that has run the same program since and of which user space has told nothing since. */
static __always_inline bool user_memo_fits(const struct walk_memo *memo, const user_regs_t *regs, __u32 told, __u32 exec)
{
	__u64 differs = 0;

	if (!memo->hash || !memo->is_bare || memo->told != told || memo->exec != exec || memo->tls_base || (memo->nr_words && !memo->near_bytes))
		return false;
	if (memo->pc != USER_PC(regs) || memo->sp != USER_SP(regs) || memo->bp != USER_BP(regs))
		return false;
	if (!memo->used_regs)
		return true;
#pragma clang loop unroll(full)
	for (int i = 0; i < WALK_NR_REGS; i++)
		differs |= (memo->regs[i] ^ user_reg(regs, i)) & -(__u64)(memo->used_regs >> i & 1);
	return !differs;
}

/* The stack ends where user space has not told enough yet. It would come raw, were there not too many of these just now? */
static __always_inline bool would_be_raw(struct scratch *s, __u64 hash)
{
	__u32 zero = 0;
	struct sonde_counters *sent = bpf_map_lookup_elem(&counters, &zero);

	if (!sent || is_settled(hash))
		return false;
	set_time(s);
	if (may_send_raw(s, s->sample.time_ns))
		return true;
	count_one(&sent->raws_refused);
	return false;
}

/* The hash of a memo that fits, if the stack's words are the same, too, and it is not one that has to be sent; else 0. */
WALK_FUNCTION __u64 user_memo_hash(const struct walk_memo *memo, __u32 slot)
{
	struct scratch *s = scratch_of(slot);
	__u32 size;

	if (!s || !memo)
		return 0;
	size = memo->near_bytes;
	barrier_var(size);
	if (size && (size > WALK_BLOCK_BYTES || read_user(&s->walk, s->walk.block, size, memo->at[0]) || !walk_memo_same_near(memo, &s->walk)))
		return 0;
	return memo->stop == SONDE_STOP_COMPLETE || !would_be_raw(s, memo->hash) ? memo->hash : 0;
}

static __always_inline __u64 find_by_regs(const struct memos *memos, struct scratch *s, const user_regs_t *regs)
{
	s->told = told_serial();
	if (!is_64_bit(regs))
		return 0;
	for (int i = 0; i < WALK_MEMOS; i++) {
		if (user_memo_fits(&memos->user[i], regs, s->told, s->exec)) {
			s->sample.generation = memos->user[i].generation;
			return user_memo_hash(&memos->user[i], s->walk.number);
		}
	}
	return 0;
}

/* The user side. regs: NULL: they have to be copied. */
static __always_inline int user_side_by_memo(struct task_struct *task, const user_regs_t *regs, struct scratch *s, struct memos *memos, struct sonde_wait_counters *count)
{
	__u64 known;

	s->exec = task->self_exec_id;
	known = memos && regs ? find_by_regs(memos, s, regs) : 0;
	s->sample.user_stack = known;
	return known && !is_checked(memos, count) ? SONDE_SIDE_STORED : walk_user_side(memos, s->walk.number);
}

/* The interpreters have been asked. */
static __always_inline void end_memo(struct memos *memos, const struct scratch *s)
{
	__u32 i = memos->fresh - 1;

	if (i < WALK_MEMOS)
		memos->user[i].is_bare = !s->runtime.nr_frames && !s->runtime.record.stop && !s->runtimes_left;
	memos->fresh = 0;
}
