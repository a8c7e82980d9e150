/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ruby's stack: the control frames of the thread's (or fiber's) execution context, from ec->cfp up to the outermost, as
 * rb_ec_partial_backtrace_object goes (vm_backtrace.c). Frames with an iseq and a pc, and methods written in C, are frames; blocks that are
 * C functions (IFUNC) are not, as for Thread#backtrace.
 *
 * Runs: a frame that C called has the flag FINISH and an activation of rb_vm_exec of its own. It is pushed before rb_vm_exec is called, and
 * popped before that returns, so one side may be ahead at the leaf. A fiber has its own control frames and its own native stack. These are
 * switched one after the other: in between the thread is not on the native stack of its execution context.
 *
 * Cost: one read per four frames; three more per frame with an iseq (flags, iseq, body), two or three per method written in C. */
#pragma once
#include "../abi/ruby.h"
#include "runtime.h"

enum ruby_state {
	RUBY_LAST,  /* address of the outermost frame */
	RUBY_BLOCK, /* address of the frames in the buffer; 0: none */
};

/* Words of the buffer: frames; flags with the method entry; an iseq's body, or a method entry. */
#define RUBY_BLOCK_BYTES 256
#define RUBY_EP 32
#define RUBY_CODE 36

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
	if (r->buffer[machine] - w->start.sp > r->buffer[machine + SONDE_RUBY_MACHINE_SIZE / 8]) /* it switches to another fiber */
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	r->state[RUBY_LAST] = end - 2 * ruby->cfp_bytes; /* the very first one only marks the end */
	r->state[RUBY_BLOCK] = 0;
	return RUNTIME_GOES_ON;
}

/* Gets the frame at the cursor into the buffer. Returns the number of its first word there; -1: it cannot be read. */
static __always_inline int ruby_read_frame(struct walk *w, struct runtime_walk *r)
{
	__u64 off = r->cursor - r->state[RUBY_BLOCK];

	if (r->state[RUBY_BLOCK] && off <= RUBY_BLOCK_BYTES - SONDE_RUBY_CFP_MAX_BYTES)
		return (int)(off / 8) & 31;
	r->state[RUBY_BLOCK] = 0;
	if (read_user(w, r->buffer, RUBY_BLOCK_BYTES, r->cursor)) { /* it may be the last one before the end of the memory */
		if (runtime_read(w, r, r->buffer, SONDE_RUBY_CFP_EP + 8, r->cursor))
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

/* Stores a frame of Ruby code. */
static __always_inline int ruby_push_iseq(struct walk *w, struct runtime_walk *r, __u64 iseq, __u64 pc)
{
	__u64 body = 0, encoded;

	if (runtime_read(w, r, &body, sizeof(body), iseq + SONDE_RUBY_ISEQ_BODY) ||
	    runtime_read(w, r, &r->buffer[RUBY_CODE], SONDE_RUBY_BODY_BYTES, body))
		return RUNTIME_ENDED;
	encoded = r->buffer[RUBY_CODE + SONDE_RUBY_BODY_ENCODED / 8];
	if (pc < encoded || (pc - encoded) & 7)
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	return runtime_push(r, iseq, (pc - encoded) / 8, ruby_cookie(body, encoded, r->buffer[RUBY_CODE + SONDE_RUBY_BODY_LABEL / 8]), 0);
}

static __always_inline __u32 ruby_imemo(__u64 flags)
{
	return (flags & SONDE_RUBY_TYPE_MASK) == SONDE_RUBY_T_IMEMO ? (__u32)(flags >> SONDE_RUBY_IMEMO_SHIFT) & SONDE_RUBY_IMEMO_MASK : 0;
}

/* Stores a method that is written in C: `me` is its method entry, or the variables that hold it. */
static __always_inline int ruby_push_c(struct walk *w, struct runtime_walk *r, __u64 me)
{
	__u64 def;

	if (runtime_read(w, r, &r->buffer[RUBY_CODE], SONDE_RUBY_ME_BYTES, me))
		return RUNTIME_ENDED;
	if (ruby_imemo(r->buffer[RUBY_CODE]) == SONDE_RUBY_IMEMO_SVAR) {
		me = r->buffer[RUBY_CODE + SONDE_RUBY_SVAR_ME / 8];
		if (runtime_read(w, r, &r->buffer[RUBY_CODE], SONDE_RUBY_ME_BYTES, me))
			return RUNTIME_ENDED;
	}
	if (ruby_imemo(r->buffer[RUBY_CODE]) != SONDE_RUBY_IMEMO_ME)
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	def = r->buffer[RUBY_CODE + SONDE_RUBY_ME_DEF / 8];
	return runtime_push(r, me | SONDE_RUBY_CODE_C, 0, ruby_cookie(def, r->buffer[RUBY_CODE + SONDE_RUBY_ME_CALLED_ID / 8], 0), 0);
}

/* Stores one frame, or none, and moves to its caller. */
static __always_inline int ruby_step(struct walk *w, struct runtime_walk *r, const struct sonde_ruby *ruby)
{
	__u64 pc, iseq, ep, flags;
	int first, err = RUNTIME_GOES_ON;

	if (r->cursor > r->state[RUBY_LAST])
		return runtime_stop(r, SONDE_RUNTIME_STOP_COMPLETE);
	first = ruby_read_frame(w, r);
	if (first < 0)
		return RUNTIME_ENDED;
	pc = ruby_field(r, first, SONDE_RUBY_CFP_PC);
	iseq = ruby_field(r, first, SONDE_RUBY_CFP_ISEQ);
	ep = ruby_field(r, first, SONDE_RUBY_CFP_EP);
	if (runtime_read(w, r, &r->buffer[RUBY_EP], SONDE_RUBY_EP_ME + 8, ep - SONDE_RUBY_EP_ME))
		return RUNTIME_ENDED;
	flags = r->buffer[RUBY_EP + SONDE_RUBY_EP_ME / 8];
	if (!(flags & 1)) /* flags are a small integer, as an object */
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	r->cursor += ruby->cfp_bytes;
	if ((flags & SONDE_RUBY_FRAME_MASK) == SONDE_RUBY_FRAME_CFUNC)
		return ruby_push_c(w, r, r->buffer[RUBY_EP]);
	if (flags & SONDE_RUBY_FRAME_C)
		return RUNTIME_GOES_ON;
	if (pc && iseq)
		err = ruby_push_iseq(w, r, iseq, pc);
	return err == RUNTIME_GOES_ON && flags & SONDE_RUBY_FRAME_FINISH ? runtime_entry(r) : err;
}
