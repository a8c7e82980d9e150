/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the walks of all runtimes share: where their frames are stored, and how runs are paired with the native frames of the interpreter's
 * loop. Compiles for BPF and for the host, as walk/unwind.h does, with its accessors.
 *
 * A runtime's own header (runtimes/NAME.h) has the steps: each stores one frame and moves to its caller. */
#pragma once
#include "../abi/record.h"
#include "../abi/runtime.h"
#include "../walk/tls.h"
#include "../walk/unwind.h"

#define RUNTIME_GOES_ON 0
#define RUNTIME_ENDED 1
#define RUNTIME_ALL_HERE (~0u)
#define RUNTIME_TO_COUNT (~0ULL - 2) /* `where` of an entry until runtime_pair_one */
#define RUNTIME_MAX_LOOPS \
	2048 /* a power of two: most activations of the loop that are paired by counting; as many as native frames are kept */

/* How the entries of a runtime that are paired by counting are paired, if there are more activations of its loop than runs. */
enum runtime_pairing {
	RUNTIME_PAIR_ALL, /* the surplus activations are at the leaf */
	RUNTIME_PAIR_ONE, /* with a surplus above one, the outer ones are another interpreter's, or their runs were not read */
	RUNTIME_PAIR_BETWEEN, /* the runtime gives the limits of the surplus: min_ahead, max_ahead */
};

#define RUNTIME_BLOCK_WORDS 256 /* a power of two. A read of 2 KiB takes 10 % longer than one of 8 bytes. */

/* What was read of some code, of a frame's fields. `key` is a hash of the code's address and of all that says that it is still the same
 * code; it has 64 bits, and depends on the recording's seed, as the hashes of stacks do. 0: none. */
#define RUNTIME_CACHE_SHIFT 10
struct runtime_cached {
	__u64 key;
	__u64 where;  /* Perl's; CPython's are not kept */
	__u32 cookie, pad;
};
#define RUNTIME_CACHE_CHECK 16 /* one of so many hits is read again, and compared */

/* How far below the thread pointer a process's variable is. `key`: a hash of the process and what is known of it; 0: none. */
#define RUNTIME_PLACES_SHIFT 4
struct runtime_place {
	__u64 key, below;
};

struct runtime_walk {
	__u64 cursor;        /* address of the next frame */
	__u64 state[24];     /* the runtime's own, kept from step to step */
	__u64 buffer[64];    /* for the reads of a step: BPF's stack is small */
	/* For frames that lie beside each other: user memory around the last frame that was not in it yet. */
	__u64 block[RUNTIME_BLOCK_WORDS];
	__u64 block_start;   /* user address of block[0] */
	__u64 block_bytes;   /* 0: it is empty */
	__u32 nr_frames;     /* in `frames`, with the entries */
	__u32 first_frame;   /* of the runtime that walks now */
	__u32 nr_entries;    /* of the runtime that walks now */
	__u32 nr_here; /* entries on the native stack that was walked, the others are on other stacks; RUNTIME_ALL_HERE: all */
	__u32 next_native;   /* the native frame where the search for the next entry begins */
	__u32 nr_loops;
	__u64 leaf_pc;       /* in the innermost activation of the loop; without one, the thread's pc */
	__s32 min_ahead, max_ahead; /* RUNTIME_PAIR_BETWEEN: least and greatest surplus of activations over runs */
	__u8 runtime;        /* enum sonde_runtime: the one that walks now */
	__u8 pairing;        /* enum runtime_pairing */
	__u8 counts;         /* some entries are paired by counting */
	__u8 pad[5];
	__u32 nr_cached;     /* frames that were in the cache, in all walks */
	__u32 nr_hits, nr_checked, nr_wrong; /* likewise, of the runtime that walks now; of these: read again; found to be other code */
	struct sonde_code_range ranges[SONDE_MAX_LOOPS];
	struct sonde_code_range inner; /* a function of the loop's own, whose frame the run replaces where the loop has called it */
	__u16 loops[RUNTIME_MAX_LOOPS]; /* numbers of the native frames in these ranges, leaf first */
	struct runtime_place places[1 << RUNTIME_PLACES_SHIFT]; /* outlives the walk */
	struct runtime_cached cache[1 << RUNTIME_CACHE_SHIFT]; /* likewise */
	__u64 known_hash;                   /* hash of a payload that was sent; 0: not looked up */
	struct sonde_runtime_record record; /* the walk fills in its `fault`, `stop` and `stopped_runtime` */
	struct sonde_runtime_frame frames[SONDE_MAX_RUNTIME_FRAMES];
};

static __always_inline int runtime_stop(struct runtime_walk *r, enum sonde_runtime_stop stop)
{
	r->record.stop = stop;
	r->record.stopped_runtime = r->runtime;
	return RUNTIME_ENDED;
}

/* Reads memory for a runtime's walk. Returns 0; -1: the walk ends there, marked. */
static __always_inline int runtime_read(struct walk *w, struct runtime_walk *r, void *to, __u32 size, __u64 from)
{
	if (!read_user(w, to, size, from))
		return 0;
	r->record.fault = from;
	runtime_stop(r, SONDE_RUNTIME_STOP_READ_FAULT);
	return -1;
}

/* Gets `size` bytes of user memory, less than the block's size, into the block, with what is below them on the same page. Returns their
 * offset in it, a multiple of 8; -1: the walk ends there, marked. */
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

/* The word of the block at an offset that runtime_block has returned, plus that of a field. */
static __always_inline __u64 runtime_word(const struct runtime_walk *r, __u32 off)
{
	return r->block[off / 8 & (RUNTIME_BLOCK_WORDS - 1)];
}

/* The cache's entry for code with this key. */
static __always_inline struct runtime_cached *runtime_cached(struct runtime_walk *r, __u64 key)
{
	return &r->cache[key >> (64 - RUNTIME_CACHE_SHIFT)];
}

/* A hit: true if the code is to be read again all the same. */
static __always_inline int runtime_is_checked(struct runtime_walk *r)
{
	r->nr_hits++;
	if (++r->nr_cached % RUNTIME_CACHE_CHECK)
		return 0;
	r->nr_checked++;
	return 1;
}

/* Keeps what was read of code with this key. If the entry has other things of it, it was wrong. */
static __always_inline void runtime_keep(struct runtime_walk *r, __u64 key, __u64 where, __u32 cookie)
{
	struct runtime_cached *cached = runtime_cached(r, key);

	if (cached->key == key && (cached->where != where || cached->cookie != cookie))
		r->nr_wrong++;
	cached->key = key;
	cached->where = where;
	cached->cookie = cookie;
}

/* Appends a frame, and adds it to the hash. Returns RUNTIME_GOES_ON; RUNTIME_ENDED: there is no room for it. */
static __always_inline int runtime_push(struct runtime_walk *r, __u64 code, __u64 where, __u32 cookie, __u8 flags)
{
	struct sonde_runtime_frame *frame;
	__u32 i = r->nr_frames;

	if (i >= SONDE_MAX_RUNTIME_FRAMES)
		return runtime_stop(r, SONDE_RUNTIME_STOP_DEPTH);
	barrier_var(i); /* else the mask is left out, and verifiers before Linux 6.3 do not know a number's range that was on the stack */
	frame = &r->frames[i & (SONDE_MAX_RUNTIME_FRAMES - 1)];
	frame->code = code;
	frame->where = where;
	frame->cookie = cookie;
	frame->runtime = r->runtime;
	frame->flags = flags;
	frame->native = 0;
	r->nr_frames = i + 1;
	r->record.hash = hash_step(hash_step(hash_step(r->record.hash, code), where), (__u64)cookie << 32 | r->runtime << 8 | flags);
	if (flags & SONDE_RUNTIME_ENTRY)
		r->nr_entries++;
	return RUNTIME_GOES_ON;
}

/* Appends a frame of a runtime that owns code: the walk's current frame. */
static __always_inline int runtime_push_placed(struct walk *w, struct runtime_walk *r, __u64 code, __u64 where, __u32 cookie)
{
	__u32 i = r->nr_frames, number = w->nr_frames - 1;

	if (number >= SONDE_LEAF_FRAMES) /* it is not kept, or at a number that changes */
		return RUNTIME_GOES_ON;
	if (runtime_push(r, code, where, cookie, SONDE_RUNTIME_PLACED) != RUNTIME_GOES_ON)
		return RUNTIME_ENDED;
	barrier_var(i);
	r->frames[i & (SONDE_MAX_RUNTIME_FRAMES - 1)].native = number;
	r->record.hash = hash_step(r->record.hash, number);
	return RUNTIME_GOES_ON;
}

/* Ends the walk in code of a runtime that owns it: what stands there makes no sense, or cannot be read. */
static __always_inline int runtime_owner_torn(struct walk *w, struct runtime_walk *r)
{
	runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	return walk_stop(w, SONDE_STOP_NO_ROW);
}

static __always_inline int runtime_owner_fault(struct walk *w, struct runtime_walk *r, __u64 at)
{
	r->record.fault = at;
	runtime_stop(r, SONDE_RUNTIME_STOP_READ_FAULT);
	return walk_stop(w, SONDE_STOP_READ_FAULT);
}

#define RUNTIME_SEARCH_FEW 8

/* Number of native frames whose positions are kept. */
static __always_inline __u32 runtime_nr_natives(const struct walk *w)
{
	return w->nr_frames < SONDE_LEAF_FRAMES ? w->nr_frames : SONDE_LEAF_FRAMES;
}

static __always_inline __u64 runtime_sp(const struct walk *w, __u32 number)
{
	return w->sps[number & (SONDE_MAX_USER_FRAMES - 1)];
}

/* The first of a few native frames, starting at `from`, whose caller's stack pointer is above `at`; if none is, the frame after them. */
WALK_FUNCTION __u32 runtime_search_few(WALK_REF ref, __u32 from, __u64 at)
{
	struct walk *w = walk_of(ref);

	if (!w)
		return from;
	w->nr_looks++; /* for the clock */
	WALK_ROLLED
	for (int step = 0; step < RUNTIME_SEARCH_FEW; step++, from++) {
		if (from + 1 >= runtime_nr_natives(w) || at < runtime_sp(w, from + 1))
			return from;
	}
	return from;
}

WALK_FUNCTION __u32 runtime_search(WALK_REF ref, __u32 from, __u64 at)
{
	WALK_ROLLED
	for (int turn = 0; turn < SONDE_LEAF_FRAMES / RUNTIME_SEARCH_FEW; turn++) {
		__u32 next = runtime_search_few(ref, from, at);

		if (next - from < RUNTIME_SEARCH_FEW)
			return next;
		from = next;
	}
	return from;
}

/* Ends a run whose native frame contains the address `at` of the thread's native stack, where the interpreter keeps data of the run. */
static __always_inline int runtime_entry_at(struct walk *w, struct runtime_walk *r, __u64 at)
{
	__u32 i = runtime_search(ref_of(w), r->next_native, at);
	__u64 native = SONDE_RUNTIME_UNPLACED;

	if (!r->nr_entries && at < runtime_sp(w, 0)) { /* its frame is popped: it has just ended */
		native = SONDE_RUNTIME_AT_LEAF;
	} else if (i < runtime_nr_natives(w) && at >= runtime_sp(w, i) &&
		   (i + 1 < runtime_nr_natives(w) || (w->stop == SONDE_STOP_COMPLETE &&
						      w->nr_frames <= SONDE_LEAF_FRAMES))) { /* the end of the last kept one is not known */
		native = i;
		r->next_native = i + 1;
	}
	return runtime_push(r, 0, native, 0, SONDE_RUNTIME_ENTRY);
}

/* Ends a run that is paired by counting; runtime_pair_one finds its native frame later. */
static __always_inline int runtime_entry(struct runtime_walk *r)
{
	r->counts = 1;
	return runtime_push(r, 0, RUNTIME_TO_COUNT, 0, SONDE_RUNTIME_ENTRY);
}

static __always_inline __u64 runtime_native_pc(const __u64 *frames, __u32 i)
{
	__u64 frame = frames[i & (SONDE_MAX_USER_FRAMES - 1)];

	return (frame & ~SONDE_FRAME_RETURN) - (frame >> 63);
}

static __always_inline int runtime_is_in_loop(const struct runtime_walk *r, __u64 pc)
{
	for (int i = 0; i < SONDE_MAX_LOOPS; i++) {
		if (pc - r->ranges[i].start_pc < r->ranges[i].end_pc - r->ranges[i].start_pc)
			return 1;
	}
	return 0;
}

/* Notes the i-th native frame if it is an activation of the loop. */
static __always_inline void runtime_look_at_native(struct runtime_walk *r, const __u64 *frames, __u32 i)
{
	__u64 pc = runtime_native_pc(frames, i), called;

	if (!runtime_is_in_loop(r, pc))
		return;
	if (!r->nr_loops)
		r->leaf_pc = pc;
	called = i ? runtime_native_pc(frames, i - 1) : 0;
	i -= called - r->inner.start_pc < r->inner.end_pc - r->inner.start_pc;
	r->loops[r->nr_loops++ & (RUNTIME_MAX_LOOPS - 1)] = i; /* never more than there are native frames */
}

/* The interpreter continues on another native stack (at a fiber's bottom): runs that end farther out are not on this one. */
static __always_inline void runtime_leave_stack(struct runtime_walk *r)
{
	if (r->nr_here == RUNTIME_ALL_HERE)
		r->nr_here = r->nr_entries;
}

#define RUNTIME_NOT_PAIRED (-0x7fffffff)

/* True if all runs on this native stack were read and, if it was walked to its root, all activations. */
static __always_inline int runtime_is_whole(const struct walk *w, const struct runtime_walk *r)
{
	int is_cut = r->record.stop && r->record.stopped_runtime == r->runtime;

	return w->nr_frames <= SONDE_LEAF_FRAMES && (!is_cut || r->nr_here != RUNTIME_ALL_HERE);
}

/* How many activations at the leaf have no run, for a runtime that gives limits; -1: the first run has no activation yet.
 * RUNTIME_NOT_PAIRED: both stacks are whole but do not match, so it is not known which belong together. */
static __always_inline __s32 runtime_ahead_between(const struct walk *w, const struct runtime_walk *r, __s32 nr_ahead)
{
	if (!runtime_is_whole(w, r))
		return 0;
	if (w->stop != SONDE_STOP_COMPLETE && r->nr_here == RUNTIME_ALL_HERE) /* activations are missing at the root end */
		return nr_ahead <= 0 ? 0 : RUNTIME_NOT_PAIRED;
	if (w->stop != SONDE_STOP_COMPLETE && nr_ahead < 0) /* on a fiber's stack as well */
		return RUNTIME_NOT_PAIRED;
	return nr_ahead >= r->min_ahead && nr_ahead <= r->max_ahead ? nr_ahead : RUNTIME_NOT_PAIRED;
}

/* The difference between the number of an entry's activation and its own number among the runs. A runtime that gives no limits counts from
 * the root end: at the leaf the interpreter may be about to enter its loop or have just left it. If one of the stacks does not reach the
 * root, that is possible only with more activations than runs; else it counts from the leaf. */
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

/* Pairs the entry with this number, among those of its runtime. */
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
