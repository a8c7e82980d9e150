/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the walks of all runtimes share: where their frames go, and how runs are paired with the native frames of the interpreter's loop.
 * Compiles for BPF and for the host, as walk/unwind.h does, with its accessors.
 *
 * A runtime's own header (lib/NAME.h) has the steps: each takes one frame down and moves to the one that called it. */
#pragma once
#include "../abi/record.h"
#include "../abi/runtime.h"
#include "tls.h"
#include "../walk/unwind.h"

#define RUNTIME_GOES_ON 0
#define RUNTIME_ENDED 1
#define RUNTIME_ALL_HERE (~0u)
#define RUNTIME_TO_COUNT (~0ULL - 2) /* `where` of an entry until runtime_pair_one */
#define RUNTIME_MAX_LOOPS \
	2048 /* a power of two: activations of the interpreter's loop that can be paired by counting; as many as native frames are kept */

/* How the entries of a runtime are paired that are paired by counting, where there are more activations of its loop than runs. */
enum runtime_pairing {
	RUNTIME_PAIR_ALL, /* those too many are at the leaf */
	RUNTIME_PAIR_ONE, /* of more than one too many, the outer ones are those of another interpreter in this thread, or their runs were
			     not read */
	RUNTIME_PAIR_BETWEEN, /* the runtime says how many there can be: min_ahead, max_ahead */
};

struct runtime_walk {
	__u64 cursor;        /* what the next step is about: address of the next frame */
	__u64 state[6];      /* the runtime's own, from step to step */
	__u64 buffer[64];    /* for what a step reads: BPF's stack is small */
	__u64 block[64];     /* where frames lie beside each other: user memory around the last that was not yet in it */
	__u64 block_start;   /* user address of block[0] */
	__u64 block_bytes;   /* 0: there is nothing in it */
	__u32 nr_frames;     /* in `frames`, with the entries */
	__u32 first_frame;   /* of the runtime that walks now */
	__u32 nr_entries;    /* likewise */
	__u32 nr_here; /* of them: on the native stack that was walked, the others are on other ones; RUNTIME_ALL_HERE: it was not said */
	__u32 next_native;   /* the native frame that the search for the next entry begins with */
	__u32 nr_loops;
	__u64 leaf_pc;       /* in the innermost activation of the loop; where there is none, of the thread */
	__s32 min_ahead, max_ahead; /* RUNTIME_PAIR_BETWEEN: so many more activations than runs there can be */
	__u8 runtime;        /* enum sonde_runtime: that walks now */
	__u8 pairing;        /* enum runtime_pairing */
	__u8 pad[6];
	struct sonde_code_range ranges[SONDE_MAX_LOOPS];
	__u16 loops[RUNTIME_MAX_LOOPS]; /* numbers of the native frames that stand in these ranges, leaf first */
	__u64 known_hash;                   /* of a body that was sent; 0: none was looked for */
	struct sonde_runtime_record record; /* its `fault`, `stop` and `stopped_runtime` are filled in on the way */
	struct sonde_runtime_frame frames[SONDE_MAX_RUNTIME_FRAMES];
};

static __always_inline int runtime_stop(struct runtime_walk *r, enum sonde_runtime_stop stop)
{
	r->record.stop = stop;
	r->record.stopped_runtime = r->runtime;
	return RUNTIME_ENDED;
}

/* Reads what a runtime's walk follows. 0, or -1: the walk ends there, marked. */
static __always_inline int runtime_read(struct walk *w, struct runtime_walk *r, void *to, __u32 size, __u64 from)
{
	if (!read_user(w, to, size, from))
		return 0;
	r->record.fault = from;
	runtime_stop(r, SONDE_RUNTIME_STOP_READ_FAULT);
	return -1;
}

/* Has `size` bytes of user memory, less than the block's, in the block, with what lies below them on the same page. Gives where in it they
 * begin, a multiple of 8, or -1: the walk ends there, marked. */
static __always_inline __s64 runtime_block(struct walk *w, struct runtime_walk *r, __u64 from, __u32 size)
{
	__u64 off = from - r->block_start, below = sizeof(r->block) - size, in_page = from & (WALK_PAGE_BYTES - 1);

	if (off < r->block_bytes && off + size <= r->block_bytes && !(off & 7))
		return off;
	below = (below < in_page ? below : in_page) & ~7ULL;
	r->block_bytes = 0;
	if (runtime_read(w, r, r->block, sizeof(r->block), from - below))
		return -1;
	r->block_start = from - below;
	r->block_bytes = sizeof(r->block);
	return below;
}

/* The thread's state that `tls` leads to; 0: this thread has none, or it cannot be read: then the walk ends there, marked. */
static __always_inline __u64 runtime_root(struct walk *w, struct runtime_walk *r, const struct sonde_tls *tls)
{
	__u64 root = 0;

	if (tls->kind != SONDE_TLS_NONE && tls_read(w, tls, &root) < 0 && (tls->kind == SONDE_TLS_GLOBAL || user_tls_base(w)))
		runtime_stop(r, SONDE_RUNTIME_STOP_READ_FAULT);
	return root;
}

/* Takes a frame down. GOES_ON, or ENDED: there is no room for it. */
static __always_inline int runtime_push(struct runtime_walk *r, __u64 code, __u64 where, __u32 cookie, __u8 flags)
{
	struct sonde_runtime_frame *frame;
	__u32 i = r->nr_frames;

	if (i >= SONDE_MAX_RUNTIME_FRAMES)
		return runtime_stop(r, SONDE_RUNTIME_STOP_DEPTH);
	frame = &r->frames[i & (SONDE_MAX_RUNTIME_FRAMES - 1)];
	frame->code = code;
	frame->where = where;
	frame->cookie = cookie;
	frame->runtime = r->runtime;
	frame->flags = flags;
	frame->pad = 0;
	r->nr_frames = i + 1;
	if (flags & SONDE_RUNTIME_ENTRY)
		r->nr_entries++;
	return RUNTIME_GOES_ON;
}

#define RUNTIME_SEARCH_FEW 8

/* The number of native frames that can be told apart. */
static __always_inline __u32 runtime_nr_natives(const struct walk *w)
{
	return w->nr_frames < SONDE_LEAF_FRAMES ? w->nr_frames : SONDE_LEAF_FRAMES;
}

static __always_inline __u64 runtime_sp(const struct walk *w, __u32 number)
{
	return w->sps[number & (SONDE_MAX_USER_FRAMES - 1)];
}

/* The first of a few native frames from `from` on whose caller's stack pointer is above `at`; else the one behind them. */
WALK_FUNCTION __u32 runtime_search_few(WALK_REF ref, __u32 from, __u64 at)
{
	struct walk *w = walk_of(ref);

	if (!w)
		return from;
	w->nr_looks++; /* for the clock */
#pragma clang loop unroll(disable)
	for (int step = 0; step < RUNTIME_SEARCH_FEW; step++, from++) {
		if (from + 1 >= runtime_nr_natives(w) || at < runtime_sp(w, from + 1))
			return from;
	}
	return from;
}

WALK_FUNCTION __u32 runtime_search(WALK_REF ref, __u32 from, __u64 at)
{
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < SONDE_LEAF_FRAMES / RUNTIME_SEARCH_FEW; turn++) {
		__u32 next = runtime_search_few(ref, from, at);

		if (next - from < RUNTIME_SEARCH_FEW)
			return next;
		from = next;
	}
	return from;
}

/* Ends a run whose native frame holds the address `at` of the thread's native stack: the interpreter keeps something of the run in its own
 * frame there. */
static __always_inline int runtime_entry_at(struct walk *w, struct runtime_walk *r, __u64 at)
{
	__u32 i = runtime_search(ref_of(w), r->next_native, at);
	__u64 native = SONDE_RUNTIME_UNPLACED;

	if (!r->nr_entries && at < runtime_sp(w, 0)) { /* its frame is gone, it has just ended */
		native = SONDE_RUNTIME_AT_LEAF;
	} else if (i < runtime_nr_natives(w) && at >= runtime_sp(w, i) &&
		   (i + 1 < runtime_nr_natives(w) || (w->stop == SONDE_STOP_COMPLETE &&
						      w->nr_frames <= SONDE_LEAF_FRAMES))) { /* of the last kept one the end is not known */
		native = i;
		r->next_native = i + 1;
	}
	return runtime_push(r, 0, native, 0, SONDE_RUNTIME_ENTRY);
}

/* Ends a run that is paired by counting: runtime_pair_one tells the native frame later. */
static __always_inline int runtime_entry(struct runtime_walk *r)
{
	return runtime_push(r, 0, RUNTIME_TO_COUNT, 0, SONDE_RUNTIME_ENTRY);
}

static __always_inline int runtime_is_in_loop(const struct runtime_walk *r, __u64 pc)
{
	for (int i = 0; i < SONDE_MAX_LOOPS; i++) {
		if (pc - r->ranges[i].start_pc < r->ranges[i].end_pc - r->ranges[i].start_pc)
			return 1;
	}
	return 0;
}

/* Is the i-th native frame an activation of the loop? */
static __always_inline void runtime_look_at_native(struct runtime_walk *r, const __u64 *frames, __u32 i)
{
	__u64 frame = frames[i & (SONDE_MAX_USER_FRAMES - 1)], pc = (frame & ~SONDE_FRAME_RETURN) - (frame >> 63);

	if (!runtime_is_in_loop(r, pc))
		return;
	if (!r->nr_loops)
		r->leaf_pc = pc;
	r->loops[r->nr_loops++ & (RUNTIME_MAX_LOOPS - 1)] = i; /* never more than there are native frames */
}

/* The interpreter came here from another native stack (a fiber's bottom): runs that end farther out are none of this one. */
static __always_inline void runtime_leave_stack(struct runtime_walk *r)
{
	if (r->nr_here == RUNTIME_ALL_HERE)
		r->nr_here = r->nr_entries;
}

#define RUNTIME_NOT_PAIRED (-0x7fffffff)

/* Do all runs of this native stack stand in the list, and all activations, if it was walked to its root? */
static __always_inline int runtime_is_whole(const struct walk *w, const struct runtime_walk *r)
{
	int is_cut = r->record.stop && r->record.stopped_runtime == r->runtime;

	return w->nr_frames <= SONDE_LEAF_FRAMES && (!is_cut || r->nr_here != RUNTIME_ALL_HERE);
}

/* How many activations at the leaf have no run, of a runtime that knows how many there can be; -1: the first run has no activation yet. Of
 * stacks that are whole and do not pair nobody knows which belong together. */
static __always_inline __s32 runtime_ahead_between(const struct walk *w, const struct runtime_walk *r, __s32 nr_ahead)
{
	if (!runtime_is_whole(w, r))
		return 0;
	if (w->stop != SONDE_STOP_COMPLETE && r->nr_here == RUNTIME_ALL_HERE) /* activations are missing at the root end */
		return nr_ahead <= 0 ? 0 : RUNTIME_NOT_PAIRED;
	if (w->stop != SONDE_STOP_COMPLETE && nr_ahead < 0) /* of a fiber's stack, too */
		return RUNTIME_NOT_PAIRED;
	return nr_ahead >= r->min_ahead && nr_ahead <= r->max_ahead ? nr_ahead : RUNTIME_NOT_PAIRED;
}

/* How much farther out than its number among the runs an entry's activation is. Where the runtime does not say how many there can be they
 * are counted from the root end: at the leaf the interpreter may be about to enter its loop or have just left it. Where one of the stacks
 * does not reach the root that is possible only when there are more activations than runs; else they are counted from the leaf. */
static __always_inline __s32 runtime_ahead(const struct walk *w, const struct runtime_walk *r, __s32 nr_ahead)
{
	if (r->pairing == RUNTIME_PAIR_BETWEEN)
		return runtime_ahead_between(w, r, nr_ahead);
	if (r->pairing == RUNTIME_PAIR_ONE && nr_ahead > 1)
		return 0;
	if ((w->stop == SONDE_STOP_COMPLETE && runtime_is_whole(w, r)) || (nr_ahead > 0 && w->nr_frames <= SONDE_LEAF_FRAMES))
		return nr_ahead;
	return 0;
}

/* Pairs the entry that is the `number`th of its runtime. */
static __always_inline void runtime_pair_one(const struct walk *w, const struct runtime_walk *r, struct sonde_runtime_frame *entry,
					     __u32 number)
{
	__u32 nr_here = r->nr_here < r->nr_entries ? r->nr_here : r->nr_entries;
	__s32 ahead = runtime_ahead(w, r, (__s32)(r->nr_loops - nr_here)), at = (__s32)number + ahead;

	entry->where = SONDE_RUNTIME_UNPLACED;
	if (number >= nr_here || ahead == RUNTIME_NOT_PAIRED)
		return;
	if (at < 0)
		entry->where = SONDE_RUNTIME_AT_LEAF;
	else if ((__u32)at < r->nr_loops && at < RUNTIME_MAX_LOOPS)
		entry->where = r->loops[at & (RUNTIME_MAX_LOOPS - 1)];
}
