/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ruby's stack: the control frames of the thread's (or fiber's) execution context, from ec->cfp up to the outermost, as
 * rb_ec_partial_backtrace_object goes (vm_backtrace.c). Frames with an iseq and a pc, and methods written in C, are frames; blocks that are
 * C functions (IFUNC) are not, as for Thread#backtrace.
 *
 * Runs: a frame that C called has the flag FINISH and an activation of rb_vm_exec of its own. It is pushed before rb_vm_exec is called, and
 * popped before that returns, so one side may be ahead at the leaf. A fiber has its own control frames and its own native stack. These are
 * switched one after the other: in between the thread is not on the native stack of its execution context.
 *
 * What an iseq or a method entry says is kept (`runtime_cached`). Only the garbage collector frees and moves them. Each of its runs has a
 * number, and first marks what is in use, as are all that a stack has. So what was read in a run that had marked is the same code's until
 * there is another run; what is read while it marks is not kept.
 *
 * Cost: one read per four frames, one per 2 KiB of the stack's values, two for the collector; two more per frame with an iseq (iseq, body),
 * one or two per method written in C, where nothing is kept. */
#pragma once
#include "../abi/ruby.h"
#include "runtime.h"

enum ruby_state {
	RUBY_LAST,  /* address of the outermost frame */
	RUBY_BLOCK, /* address of the frames in the buffer; 0: none */
	RUBY_LEAF,  /* the first frame is still to be read */
	RUBY_KEY,   /* of the process and the collector's run; 0: nothing is kept */
	RUBY_KEEPS, /* what is read now may be kept */
};

/* Words of the buffer: frames; an iseq's body, or a method entry. The values of the stack, with the frames' flags, are in the block. */
#define RUBY_BLOCK_BYTES 256
#define RUBY_CODE 36

/* Reads the number of the collector's run, and then what it does: it may begin another one in between. */
static __always_inline void ruby_look_at_gc(struct walk *w, struct runtime_walk *r, const struct sonde_ruby *ruby)
{
	__u64 count = 0;
	__u8 flags = 0;

	r->state[RUBY_KEY] = r->state[RUBY_KEEPS] = 0;
	if (!ruby->gc_count || read_user(w, &count, sizeof(count), ruby->gc_count) || read_user(w, &flags, sizeof(flags), ruby->gc_flags))
		return;
	flags &= SONDE_RUBY_GC_MODE_MASK | SONDE_RUBY_GC_COMPACTS;
	r->state[RUBY_KEY] = hash_step(hash_step(w->hash_begin, ruby->process.serial), count) | 1;
	r->state[RUBY_KEEPS] = flags == SONDE_RUBY_GC_NONE || flags == SONDE_RUBY_GC_SWEEPING;
}

/* Call before the first step. RUNTIME_ENDED: the thread runs no Ruby, or its stack cannot be read. */
static __always_inline int ruby_enter(struct walk *w, struct runtime_walk *r, const struct sonde_ruby *ruby)
{
	__u64 ec = runtime_root(w, r, &ruby->process.root), stack, words, end;
	__u32 machine = ruby->ec_machine / 8 & 31;

	if (!ec || runtime_read(w, r, r->buffer, SONDE_RUBY_EC_BYTES, ec))
		return RUNTIME_ENDED;
	stack = r->buffer[0];
	words = r->buffer[1];
	r->cursor = r->buffer[2];
	if (!stack) /* the context has just been made, or its thread ends */
		return runtime_stop(r, SONDE_RUNTIME_STOP_COMPLETE);
	end = stack + words * 8;
	if (words > SONDE_RUBY_MAX_STACK_WORDS || r->cursor < stack || r->cursor > end || r->cursor & 7)
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	if (r->buffer[machine] - w->start.sp > r->buffer[machine + SONDE_RUBY_MACHINE_SIZE / 8]) {
		if (ruby->process.root.kind == SONDE_TLS_GLOBAL) /* up to 2.7: it is that of the thread that has the lock, not this one */
			return RUNTIME_ENDED;
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN); /* it switches to another fiber */
	}
	r->state[RUBY_LAST] = end - 2 * ruby->cfp_bytes; /* the very first one only marks the end */
	r->state[RUBY_BLOCK] = 0;
	r->state[RUBY_LEAF] = 1;
	r->block_bytes = 0;
	ruby_look_at_gc(w, r, ruby);
	return RUNTIME_GOES_ON;
}

/* Gets the frame at the cursor into the buffer. Returns the number of its first word there; -1: it cannot be read. */
static __always_inline int ruby_read_frame(struct walk *w, struct runtime_walk *r)
{
	__u64 off = r->cursor - r->state[RUBY_BLOCK];

	if (r->state[RUBY_BLOCK] && off <= RUBY_BLOCK_BYTES - SONDE_RUBY_CFP_MAX_BYTES)
		return (int)(off / 8) & 31;
	r->state[RUBY_BLOCK] = 0;
	if (read_user(w, r->buffer, RUBY_BLOCK_BYTES, r->cursor)) { /* the memory ends behind the outermost one and one more */
		if (runtime_read(w, r, r->buffer, SONDE_RUBY_CFP_MAX_BYTES, r->cursor))
			return -1;
		return 0;
	}
	r->state[RUBY_BLOCK] = r->cursor;
	return 0;
}

static __always_inline __u64 ruby_field(const struct runtime_walk *r, int first, __u32 off)
{
	return r->buffer[((__u32)first + off / 8) & 63];
}

/* Is the pc one that is left from before? YJIT's code stores it only before it calls code that needs it, so that of the innermost frame
 * need not be its own (rb_profile_frames in vm_backtrace.c). Any frame that such code has entered has the address that it returns to. */
static __always_inline int ruby_is_stale(struct runtime_walk *r, const struct sonde_ruby *ruby, int first)
{
	__u64 is_leaf = r->state[RUBY_LEAF];

	r->state[RUBY_LEAF] = 0;
	return is_leaf && ruby->cfp_jit_return && ruby_field(r, first, ruby->cfp_jit_return);
}

/* Reads what an iseq says: where its instructions are, and its cookie. */
static __always_inline int ruby_read_iseq(struct walk *w, struct runtime_walk *r, __u64 iseq, __u64 *encoded, __u32 *cookie)
{
	__u64 body = 0;

	if (runtime_read(w, r, &body, sizeof(body), iseq + SONDE_RUBY_ISEQ_BODY) ||
	    runtime_read(w, r, &r->buffer[RUBY_CODE], SONDE_RUBY_BODY_BYTES, body))
		return -1;
	*encoded = r->buffer[RUBY_CODE + SONDE_RUBY_BODY_ENCODED / 8];
	*cookie = ruby_cookie(body, *encoded, r->buffer[RUBY_CODE + SONDE_RUBY_BODY_LABEL / 8]);
	return 0;
}

/* The cache's entry for an iseq or a method entry; 0: it has none, or what is kept is to be read again. */
static __always_inline const struct runtime_cached *ruby_kept(struct runtime_walk *r, __u64 key)
{
	const struct runtime_cached *cached = runtime_cached(r, key);

	return r->state[RUBY_KEY] && cached->key == key && !runtime_is_checked(r) ? cached : 0;
}

/* Stores a frame of Ruby code. `pc` 0: it is not known. */
static __always_inline int ruby_push_iseq(struct walk *w, struct runtime_walk *r, __u64 iseq, __u64 pc)
{
	__u64 key = hash_step(r->state[RUBY_KEY], iseq) | 1, encoded, where = SONDE_RUBY_NO_POSITION;
	const struct runtime_cached *kept = ruby_kept(r, key);
	__u32 cookie;

	if (kept) {
		encoded = kept->where;
		cookie = kept->cookie;
	} else {
		if (ruby_read_iseq(w, r, iseq, &encoded, &cookie))
			return RUNTIME_ENDED;
		if (r->state[RUBY_KEEPS])
			runtime_keep(r, key, encoded, cookie);
	}
	if (pc && (pc < encoded || (pc - encoded) & 7))
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	if (pc)
		where = (pc - encoded) / 8;
	return runtime_push(r, iseq, where, cookie, 0);
}

static __always_inline __u32 ruby_imemo(__u64 flags)
{
	return (flags & SONDE_RUBY_TYPE_MASK) == SONDE_RUBY_T_IMEMO ? (__u32)(flags >> SONDE_RUBY_IMEMO_SHIFT) & SONDE_RUBY_IMEMO_MASK : 0;
}

/* Stores a method that is written in C: `me` is its method entry, or the variables that hold it. */
static __always_inline int ruby_push_c(struct walk *w, struct runtime_walk *r, __u64 me)
{
	__u64 key = hash_step(r->state[RUBY_KEY], me) | 1, held = me;
	const struct runtime_cached *kept = ruby_kept(r, key);
	__u32 cookie;

	if (kept)
		return runtime_push(r, me | SONDE_RUBY_CODE_C, 0, kept->cookie, 0);
	if (runtime_read(w, r, &r->buffer[RUBY_CODE], SONDE_RUBY_ME_BYTES, me))
		return RUNTIME_ENDED;
	if (ruby_imemo(r->buffer[RUBY_CODE]) == SONDE_RUBY_IMEMO_SVAR) {
		me = r->buffer[RUBY_CODE + SONDE_RUBY_SVAR_ME / 8];
		if (runtime_read(w, r, &r->buffer[RUBY_CODE], SONDE_RUBY_ME_BYTES, me))
			return RUNTIME_ENDED;
	}
	if (ruby_imemo(r->buffer[RUBY_CODE]) != SONDE_RUBY_IMEMO_ME)
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	cookie = ruby_cookie(r->buffer[RUBY_CODE + SONDE_RUBY_ME_DEF / 8], r->buffer[RUBY_CODE + SONDE_RUBY_ME_CALLED_ID / 8], 0);
	if (held == me && r->state[RUBY_KEEPS])
		runtime_keep(r, key, 0, cookie);
	return runtime_push(r, me | SONDE_RUBY_CODE_C, 0, cookie, 0);
}

/* Stores one frame, or none, and moves to its caller. */
static __always_inline int ruby_step(struct walk *w, struct runtime_walk *r, const struct sonde_ruby *ruby)
{
	__u64 pc, iseq, me, flags;
	__s64 ep;
	int first, is_stale, err = RUNTIME_GOES_ON;

	if (r->cursor > r->state[RUBY_LAST])
		return runtime_stop(r, SONDE_RUNTIME_STOP_COMPLETE);
	first = ruby_read_frame(w, r);
	if (first < 0)
		return RUNTIME_ENDED;
	is_stale = ruby_is_stale(r, ruby, first);
	pc = ruby_field(r, first, SONDE_RUBY_CFP_PC);
	iseq = ruby_field(r, first, SONDE_RUBY_CFP_ISEQ);
	ep = runtime_block(w, r, ruby_field(r, first, SONDE_RUBY_CFP_EP) - SONDE_RUBY_EP_ME, SONDE_RUBY_EP_ME + 8);
	if (ep < 0)
		return RUNTIME_ENDED;
	me = runtime_word(r, ep);
	flags = runtime_word(r, ep + SONDE_RUBY_EP_ME);
	if (!(flags & 1)) /* flags are a small integer, as an object */
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	r->cursor += ruby->cfp_bytes;
	if ((flags & SONDE_RUBY_FRAME_MASK) == SONDE_RUBY_FRAME_CFUNC)
		return ruby_push_c(w, r, me);
	if (flags & SONDE_RUBY_FRAME_C)
		return RUNTIME_GOES_ON;
	if (iseq && (pc || is_stale))
		err = ruby_push_iseq(w, r, iseq, is_stale ? 0 : pc);
	return err == RUNTIME_GOES_ON && flags & SONDE_RUBY_FRAME_FINISH ? runtime_entry(r) : err;
}
