/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stacks of the current thread at an event of the scheduler: those that it had before are known without a walk. One of MEMO_CHECK of these is walked all the same, and compared. */
#pragma once
#include "kernel_memo.h"
#include "stack.h"
#include "wait_counters.h"
#include "walk_memo.h"

#define MEMO_CHECK 1024

struct memos {
	struct kernel_memo kernel[KERNEL_MEMOS];
	struct walk_memo user[WALK_MEMOS];
	__u32 next_kernel, next_user; /* that is replaced next */
	__u32 nr_hits;
	__u32 fresh;                    /* the user's that was kept just now, from 1 on; 0: none */
};

WALK_FUNCTION int user_memo_same(const struct walk_memo *memo, __u32 cpu)
{
	struct scratch *s = scratch_of(cpu);

	if (!s || !memo || !walk_memo_fits(memo, &s->walk))
		return 0;
	walk_memo_fetch(memo, &s->walk);
	return walk_memo_same(memo, &s->walk, 0, WALK_TRAIL_WORDS);
}

WALK_FUNCTION int user_memo_keep(struct walk_memo *memo, __u32 cpu, __u64 hash)
{
	struct scratch *s = scratch_of(cpu);

	if (s && memo)
		walk_memo_keep(memo, &s->walk, s->raw.regs, hash);
	return 0;
}

/* The hash of the remembered stack that the current one is; 0: it is none of them. */
static __always_inline __u64 kernel_memo_find(const struct memos *memos, __u32 cpu)
{
	if (kernel_memo_same(&memos->kernel[0], cpu))
		return memos->kernel[0].hash;
	return kernel_memo_same(&memos->kernel[1], cpu) ? memos->kernel[1].hash : 0;
}

static __always_inline __u64 user_memo_find(const struct memos *memos, __u32 cpu)
{
	if (user_memo_same(&memos->user[0], cpu))
		return memos->user[0].hash;
	return user_memo_same(&memos->user[1], cpu) ? memos->user[1].hash : 0;
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
	if (memos->kernel[0].hash == s->sample.kernel_stack) {
		kernel_memo_prune(&memos->kernel[0], s->sample.cpu);
	} else if (memos->kernel[1].hash == s->sample.kernel_stack) {
		kernel_memo_prune(&memos->kernel[1], s->sample.cpu);
	} else {
		kernel_memo_keep(&memos->kernel[memos->next_kernel & (KERNEL_MEMOS - 1)], s->sample.cpu, size, s->sample.kernel_stack);
		memos->next_kernel++;
	}
}

/* memos: NULL: nothing is remembered of this thread. Gives enum sonde_side. */
static __noinline int kernel_side_by_memo(__u64 *ctx, struct scratch *s, struct memos *memos, struct sonde_wait_counters *count)
{
	__u64 size = memos ? kernel_stack_bytes(ctx, s) : 0, known = size ? kernel_memo_find(memos, s->sample.cpu) : 0;
	enum sonde_side side;

	s->sample.kernel_stack = known;
	if (known && !is_checked(memos, count))
		return SONDE_SIDE_STORED;
	side = kernel_side(s, get_kernel_stack(ctx, s), TRACEPOINT_FRAMES, s->sample.time_ns, &s->sample.kernel_stack);
	if (known && known != s->sample.kernel_stack)
		count->memo_wrong++;
	if (!known && size && side == SONDE_SIDE_STORED)
		learn_kernel_stack(s, memos, size);
	return side;
}

/* The user side; the registers stand in the walk. What interpreters the process has are asked afterwards, but for those of a stack that is known to be none of theirs. */
static __always_inline int user_side_by_memo(struct scratch *s, struct memos *memos, struct sonde_counters *counters, struct sonde_wait_counters *count)
{
	__u64 known = 0;
	enum sonde_side side;

	enter_process(s, &s->sample);
	if (memos)
		known = user_memo_find(memos, s->sample.cpu);
	s->sample.user_stack = known;
	if (known && !is_checked(memos, count)) {
		s->runtimes_left = s->walk.runtimes & 1u << SONDE_RUNTIME_GO; /* labels are the goroutine's */
		return SONDE_SIDE_STORED;
	}
	side = user_side(s, &s->sample, counters, 0);
	s->runtimes_left = s->walk.runtimes;
	if (known && known != s->sample.user_stack)
		count->memo_wrong++;
	if (!known && memos && side == SONDE_SIDE_STORED) {
		user_memo_keep(&memos->user[memos->next_user & (WALK_MEMOS - 1)], s->sample.cpu, s->sample.user_stack);
		memos->fresh = (memos->next_user++ & (WALK_MEMOS - 1)) + 1;
	}
	return side;
}

/* The interpreters have been asked. */
static __always_inline void end_memo(struct memos *memos, const struct scratch *s)
{
	__u32 i = memos->fresh - 1;

	if (i < WALK_MEMOS)
		memos->user[i].is_bare = !s->runtime.nr_frames && !s->runtime.record.stop && !s->runtimes_left;
	memos->fresh = 0;
}
