/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* java_chunk: the frames of a virtual thread that are on the heap. A thread that was parked gets only its innermost frames back on the
 * stack. The last one of these returns to a stub, which brings more (StubRoutines::cont_returnBarrier); the others are in objects
 * (jdk.internal.vm.StackChunk; Continuation.tail is the innermost). The way there: the ContinuationEntry, which is on the stack behind
 * these frames, has the Continuation.
 *
 * In a chunk, frames lie as on the stack (continuationFreezeThaw.cpp, stackChunkFrameStream_x86.inline.hpp). Compiled ones are copies. In
 * interpreted ones, the sender's sp is a distance from rbp, and the saved rbp of an interpreted caller is one from its own slot: in words.
 * The frame below the outermost one of a chunk is in the next chunk (`parent`), or it is that of Continuation.enterSpecial on the stack.
 *
 * The thread itself does not run while its stack is walked, so only a collector may move these objects. The proof that the right ones were
 * read: neither has a forwarding pointer in its header, and the chunk's `cont` is the entry's Continuation. ZGC has its forwarding pointers
 * elsewhere, and an entry may still have an object's old place, where another one may be. But its references show whether they are up to
 * date: all on the way must be, and the thread's VirtualThread must have the entry's Continuation. All frames lie in the chunk, and the
 * outermost one ends where the chunk's frames end.
 *
 * While the VM freezes the thread again, its frames may be both on the stack and in the chunk. Before it writes to one, it sets the
 * thread's anchor to the entry (unwind_frames), and when it has returned, the thread is in the code of Continuation.doYield, or the chunk's
 * flags say that it was taken off within the VM. */
#pragma once
#include "java_blob.h"

/* Words of the walk's state. */
#define JAVA_STATE_CHUNK 8       /* the walk's number while it is at frames on the heap */
#define JAVA_STATE_CHUNK_END 9   /* behind the chunk's frames; 0: the walk comes from the stack */
#define JAVA_STATE_CHUNK_NEXT 10 /* the next chunk, or 0 */
#define JAVA_STATE_ENTRY 11      /* the address of the ContinuationEntry: sp of the frame that entered the continuation */
#define JAVA_STATE_YIELD 12      /* the walk's number if doYield's code was interrupted */
#define JAVA_STATE_THAW 13       /* the walk's number if the VM brings frames from the heap */
/* What is kept during a frame's step: here, as BPF's stack is small. */
#define JAVA_STATE_BP 14         /* an interpreted frame's rbp, else 0 */
#define JAVA_STATE_STOP 15       /* of the record: stop and stopped_runtime */
#define JAVA_STATE_METHOD 16     /* what names an interpreted method: a struct sonde_java_method */

/* ContinuationEntry: _cont and _argsize; the same in 21 to 25. They are in no table, so what _cont leads to proves them. */
#define JAVA_ENTRY_CONT 16
#define JAVA_ENTRY_ARGUMENTS 36
#define JAVA_ENTRY_MAX_BYTES 2048 /* of arguments of the last frame on the stack, which are between it and the entry */
#define JAVA_ENTRY_TRIED 12       /* as many pairs of words, where the thread does not say where the entry is (until 23) */
#define JAVA_CHUNK_MAX_WORDS (1 << 24)
/* StackChunk._flags that say nothing about frames: has interpreted ones, is being or was made ready for a collector. Others (since 24) are
 * set while the thread is off its carrier, or are not known. */
#define JAVA_CHUNK_USUAL_FLAGS 0x1f
#define JAVA_MARK_BITS 3         /* of an object's header; all set: moved, or marked by a collector */
#define JAVA_OBJECT_BYTES 128    /* a power of two: more than the fields of the objects that are read */
#define JAVA_YIELD_BYTES 16      /* frame of doYield's code, the only native method whose frame has no room for anything */

static __always_inline int java_is_on_heap(const struct walk *w, const struct runtime_walk *r)
{
	return r->state[JAVA_STATE_CHUNK] == w->nr_walks;
}

static __always_inline void java_note_yield(const struct walk *w, struct runtime_walk *r, const struct java_blob *blob)
{
	if (w->exact != WALK_RETURN && blob->kind == JAVA_BLOB_NATIVE && blob->frame_bytes == JAVA_YIELD_BYTES)
		r->state[JAVA_STATE_YIELD] = w->nr_walks;
}

/* Is the blob whose header is in the buffer the one with the stubs that bring frames from the heap? Only where the thread says where the
 * entry is: before, other stubs were in it, too. */
static __always_inline int java_is_thawing(struct walk *w, const struct runtime_walk *r, const struct sonde_java *j)
{
	__u64 text[3];

	if (j->chunk.thread_entry == SONDE_JAVA_NONE ||
	    read_user(w, text, sizeof(text), java_u64(r->buffer, j->block_bytes + j->blob_name)))
		return 0;
	return text[1] == JAVA_TEXT('i', 'n', 'e', 's', ' ', '(', 'c', 'o') && (text[2] & 0xffff) == ('n' | 't' << 8);
}

/* The walk is at the last frame's caller, which is not on the stack. `is_thawing`: the VM is about to bring it, or has brought it to
 * between the stub that has called it and the entry. */
static __always_inline void java_leave_stack(const struct walk *w, struct runtime_walk *r, int is_thawing)
{
	r->state[JAVA_STATE_THAW] = is_thawing ? w->nr_walks : 0;
	r->state[JAVA_STATE_CHUNK] = w->nr_walks;
	r->state[JAVA_STATE_CHUNK_END] = 0;
	r->state[JAVA_STATE_ENTRY] = w->sp;
}

struct java_colors {
	__u64 bad, shift;
};

static __always_inline int java_colors(struct walk *w, const struct sonde_java_chunk *c, struct java_colors *ret_colors)
{
	ret_colors->bad = ret_colors->shift = 0;
	if (c->bad_mask && read_user(w, &ret_colors->bad, 8, c->bad_mask))
		return -1;
	return c->shift && read_user(w, &ret_colors->shift, 8, c->shift) ? -1 : 0;
}

/* The address that the reference at an offset of the buffer's object has; 0: none; odd: none that is known to be good. */
static __always_inline __u64 java_reference(const struct runtime_walk *r, const struct sonde_java_chunk *c,
					    const struct java_colors *colors, __u32 off)
{
	__u64 value;

	off &= JAVA_OBJECT_BYTES - 1;
	if (c->oop_bytes == 4) {
		value = java_u32(r->buffer, off);
		return value ? c->narrow_base + (value << (c->narrow_shift & 31)) : 0;
	}
	value = java_u64(r->buffer, off);
	return value & colors->bad ? 1 : value >> (colors->shift & 63);
}

/* Reads an object into the buffer: 0, or -1. */
static __always_inline int java_object(struct walk *w, struct runtime_walk *r, __u64 at, __u32 bytes)
{
	if (!at || at & 7 || read_user(w, r->buffer, bytes & (JAVA_OBJECT_BYTES - 1), at))
		return -1;
	return (r->buffer[0] & JAVA_MARK_BITS) == JAVA_MARK_BITS ? -1 : 0;
}

/* Is the Continuation where the thread's VirtualThread has it? Asked only where it may be an old place. */
static __always_inline int java_is_in_place(struct walk *w, const struct sonde_java_chunk *c, const struct java_colors *colors,
					    __u64 thread, __u64 cont)
{
	__u64 handle, vthread, found;

	if (!c->bad_mask)
		return 1;
	return !read_user(w, &handle, 8, thread + c->thread_vthread) && !read_user(w, &vthread, 8, handle) && !(vthread & colors->bad) &&
	       !read_user(w, &found, 8, (vthread >> (colors->shift & 63)) + c->vthread_cont) && !(found & colors->bad) &&
	       found >> (colors->shift & 63) == cont;
}

/* Moves to the innermost frame in a chunk, or of its parent if it is empty: 0, or -1. */
static __always_inline int java_enter_chunk(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, __u64 chunk)
{
	const struct sonde_java_chunk *c = &j->chunk;
	struct java_colors colors;
	__u64 cont, sp = 0, bottom = 0, pc, link;

	if (java_colors(w, c, &colors) || read_user(w, &cont, 8, r->state[JAVA_STATE_ENTRY] + JAVA_ENTRY_CONT))
		return -1;
	WALK_ROLLED
	for (int turn = 0; turn < 2 && sp == bottom; turn++) {
		if (java_object(w, r, chunk, c->words) || (!c->bad_mask && java_reference(r, c, &colors, c->cont) != cont) ||
		    java_u8(r->buffer, c->flags) & ~JAVA_CHUNK_USUAL_FLAGS)
			return -1;
		sp = java_u32(r->buffer, c->sp);
		bottom = java_u32(r->buffer, c->bottom);
		r->state[JAVA_STATE_CHUNK_END] = chunk + c->words + 8 * bottom;
		w->sp = chunk + c->words + 8 * sp;
		chunk = java_reference(r, c, &colors, c->parent);
	}
	r->state[JAVA_STATE_CHUNK_NEXT] = chunk;
	if (sp < 2 || sp >= bottom || bottom > JAVA_CHUNK_MAX_WORDS || walk_peek(w, w->sp - 16, &link) || walk_peek(w, w->sp - 8, &pc) ||
	    java_heap_of(j, pc) >= SONDE_JAVA_MAX_HEAPS)
		return -1;
	walk_return_to(w, pc, w->sp, java_is_interpreter(j, pc) ? w->sp - 16 + 8 * link : link);
	return 0;
}

/* Finds the entry behind the last frame's arguments on the stack, if there are some: 0, or -1. */
static __always_inline int java_find_entry(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, __u64 anchor)
{
	__u64 entry, word, at = w->sp, max_bytes;

	if (j->chunk.thread_entry != SONDE_JAVA_NONE) {
		max_bytes = r->state[JAVA_STATE_THAW] == w->nr_walks ? WALK_MAX_FP_FRAME_BYTES : JAVA_ENTRY_MAX_BYTES;
		if (read_user(w, &entry, 8, anchor - j->thread_anchor + j->chunk.thread_entry) || entry - w->sp > max_bytes)
			return -1;
		r->state[JAVA_STATE_ENTRY] = entry;
		return 0;
	}
	WALK_ROLLED
	for (__u32 pairs = 0; pairs < JAVA_ENTRY_TRIED; pairs++, at += 16) {
		if (walk_peek(w, at + JAVA_ENTRY_ARGUMENTS - 4, &word))
			return -1;
		if (((word >> 32) + 1) / 2 != pairs)
			continue;
		r->state[JAVA_STATE_ENTRY] = at;
		return 0;
	}
	return -1;
}

/* The innermost chunk; 0 or odd: it is not known. `anchor`: the thread's own, or 0. */
static __always_inline __u64 java_first_chunk(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, __u64 anchor)
{
	const struct sonde_java_chunk *c = &j->chunk;
	struct java_colors colors;
	__u64 last_sp, cont;

	if (!c->words || !anchor || java_find_entry(w, r, j, anchor) || r->state[JAVA_STATE_THAW] == w->nr_walks ||
	    r->state[JAVA_STATE_YIELD] == w->nr_walks ||
	    read_user(w, &last_sp, 8, anchor + j->anchor_sp) || last_sp >= w->sp || java_colors(w, c, &colors) ||
	    read_user(w, &cont, 8, r->state[JAVA_STATE_ENTRY] + JAVA_ENTRY_CONT) ||
	    !java_is_in_place(w, c, &colors, anchor - j->thread_anchor, cont) || java_object(w, r, cont, c->tail + 8))
		return 0;
	return java_reference(r, c, &colors, c->tail);
}

/* Has the walk, which has come from one frame on the heap to its caller, come to the end of the chunk's frames? */
static __always_inline int java_is_behind_chunk(const struct walk *w, const struct runtime_walk *r)
{
	return w->sp == r->state[JAVA_STATE_CHUNK_END];
}

/* Takes the caller's registers, which the step from a frame on the heap has found: 0; -1: they make no sense. An interpreted caller's rbp
 * is relative to where it was saved. */
static __always_inline int java_take_caller(struct walk *w, const struct runtime_walk *r, const struct sonde_java *j)
{
	__u64 link = r->state[JAVA_STATE_BP];

	if (w->sp > r->state[JAVA_STATE_CHUNK_END] || java_heap_of(j, w->pc) >= SONDE_JAVA_MAX_HEAPS)
		return -1;
	if (java_is_interpreter(j, w->pc))
		w->bp = (link ? link : w->sp - 16) + 8 * w->bp;
	return 0;
}
