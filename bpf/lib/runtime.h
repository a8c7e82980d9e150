/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the walks of all runtimes share: where their frames go, and how runs are paired with the native frames of the interpreter's loop. Compiles for BPF and
 * for the host, as lib/unwind.h does, with its accessors and:
 *
 *   struct runtime_walk *runtime_walk_of(WALK_REF ref)   the runtime walk that belongs to a native walk, or NULL
 *
 * A runtime's own header (lib/python.h, ...) has the steps: each takes one frame down and moves to the one that called it. */
#pragma once
#include "../abi/runtime.h"
#include "unwind.h"

#define RUNTIME_GOES_ON 0
#define RUNTIME_ENDED 1
#define RUNTIME_MAX_LOOPS 512 /* a power of two: activations of the interpreter's loop that can be paired by counting */

struct runtime_walk {
	__u64 cursor;        /* what the next step is about: address of the next frame */
	__u64 state[6];      /* the runtime's own, from step to step */
	__u64 hash;          /* of the frames so far */
	__u64 fault;         /* user address that could not be read; 0: none */
	__u32 nr_frames;     /* in `frames`, with the entries */
	__u32 nr_entries;    /* of the runtime that walks now */
	__u32 next_native;   /* the native frame that the search for the next entry begins with */
	__u32 nr_loops;
	__u32 first_frame;   /* of the runtime that walks now */
	__u8 stop;           /* enum sonde_runtime_stop */
	__u8 runtime;        /* enum sonde_runtime: that walks now */
	__u8 stopped_runtime;/* of which `stop` tells */
	__u8 pad;
	__u64 buffer[64];    /* for what a step reads: BPF's stack is small */
	__u16 loops[RUNTIME_MAX_LOOPS]; /* numbers of the native frames that stand in the loop's code, leaf first */
	struct sonde_runtime_frame frames[SONDE_MAX_RUNTIME_FRAMES];
};

static __always_inline int runtime_stop(struct runtime_walk *r, enum sonde_runtime_stop stop)
{
	r->stop = stop;
	r->stopped_runtime = r->runtime;
	return RUNTIME_ENDED;
}

/* Reads what a runtime's walk follows. 0, or -1: the walk ends there, marked. */
static __always_inline int runtime_read(const struct walk *w, struct runtime_walk *r, void *to, __u32 size, __u64 from)
{
	if (!read_user(w, to, size, from))
		return 0;
	r->fault = from;
	runtime_stop(r, SONDE_RUNTIME_STOP_READ_FAULT);
	return -1;
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

/* Ends a run whose native frame holds the address `at` of the thread's native stack: the interpreter keeps something of the run in its own frame there. */
static __always_inline int runtime_entry_at(struct walk *w, struct runtime_walk *r, __u64 at)
{
	__u32 nr = w->nr_frames < SONDE_LEAF_FRAMES ? w->nr_frames : SONDE_LEAF_FRAMES, i = r->next_native;
	__u64 native = SONDE_RUNTIME_UNPLACED;

#pragma clang loop unroll(disable)
	for (int step = 0; step < SONDE_LEAF_FRAMES && i < nr; step++, i++) {
		__u64 end = i + 1 < nr ? w->sps[(i + 1) & (SONDE_MAX_USER_FRAMES - 1)] : ~0ULL;

		if (at < end) {
			if (at >= w->sps[i & (SONDE_MAX_USER_FRAMES - 1)])
				native = i;
			break;
		}
	}
	r->next_native = i;
	return runtime_push(r, 0, native, 0, SONDE_RUNTIME_ENTRY);
}

/* Ends a run that is paired by counting: runtime_pair tells the native frame later. */
static __always_inline int runtime_entry(struct runtime_walk *r)
{
	return runtime_push(r, 0, SONDE_RUNTIME_UNPLACED, 0, SONDE_RUNTIME_ENTRY);
}
