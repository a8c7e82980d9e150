/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk of CPython's frames, 3.6 and newer, as abi/python.h describes them. Facts: Include/internal/pycore_frame.h, Python/ceval.c.
 *
 * A run ends with the frame that its activation of the loop was entered with. What the activation keeps on the native stack tells where that is: up to 3.9 nothing, each frame
 * has an activation of its own, so they are paired by counting; 3.10 a CFrame for each frame; 3.11 a _PyCFrame for each run; 3.12 and newer the shim frame below the run.
 *
 * Cost: for each frame a read of user memory for its code, and for several frames one for themselves, since those of 3.11 and newer lie beside each other (callers below); one for
 * each of the chain of cframes. */
#pragma once
#include "../abi/python.h"
#include "runtime.h"

/* state[] of a walk */
#define PYTHON_CFRAME 0  /* of the run that comes next; 0: none */
#define PYTHON_IN_RUN 1  /* frames since the last entry */
#define PYTHON_TSTATE 2

#define PYTHON_TSTATE_BYTES 4096 /* more than it has: 280 in 3.10, 360 in 3.11 */

#define PYTHON_CO_OPTIMIZED 1
#define PYTHON_CO_NEWLOCALS 2

/* What stands at an offset in the walk's buffer or block, both of which have 512 bytes. */
static __always_inline __u64 python_u64(const __u64 *words, __u32 off)
{
	return words[off / 8 & 63];
}

static __always_inline __u32 python_u32(const __u64 *words, __u32 off)
{
	return ((const __u32 *)words)[off / 4 & 127];
}

static __always_inline __u8 python_u8(const __u64 *words, __u32 off)
{
	return ((const __u8 *)words)[off & 511];
}

/* Reads the cframe of the next run, and its frame where it leads to one. */
static __always_inline int python_cframe(struct walk *w, struct runtime_walk *r, const struct sonde_python *p, __u64 cframe, __u64 *ret_previous, __u64 *ret_frame)
{
	if (runtime_read(w, r, r->buffer, 24, cframe))
		return -1;
	*ret_previous = python_u64(r->buffer, p->cframe_previous);
	if (p->cframe_frame != SONDE_PYTHON_NONE)
		*ret_frame = python_u64(r->buffer, p->cframe_frame);
	return 0;
}

/* The thread's PyThreadState, of which the buffer holds the begin. 0: there is none, or it could not be read. */
static __always_inline __u64 python_tstate(struct walk *w, struct runtime_walk *r, const struct sonde_python *p)
{
	__u64 tstate = 0;

	if (p->current.kind != SONDE_TLS_NONE && !tls_read(w, &p->current, &tstate) && tstate) {
		if (!read_user(w, r->buffer, p->tstate_bytes & 511, tstate) &&
		    (p->current.kind != SONDE_TLS_GLOBAL || python_u64(r->buffer, p->tstate_thread_id) == user_tls_base(w)))
			return tstate;
		tstate = 0;
	}
	tstate = runtime_root(w, r, &p->process.root);
	if (!tstate)
		return 0;
	return runtime_read(w, r, r->buffer, p->tstate_bytes & 511, tstate) ? 0 : tstate;
}

/* Begins with what the thread runs. GOES_ON, or ENDED: no interpreter runs in this thread, or it could not be read. */
static __always_inline int python_enter(struct walk *w, struct runtime_walk *r, const struct sonde_python *p)
{
	__u64 cframe = 0, previous;

	r->state[PYTHON_CFRAME] = 0;
	r->state[PYTHON_IN_RUN] = 0;
	r->cursor = 0;
	r->block_bytes = 0;
	r->state[PYTHON_TSTATE] = python_tstate(w, r, p);
	if (!r->state[PYTHON_TSTATE])
		return RUNTIME_ENDED;
	r->cursor = python_u64(r->buffer, p->tstate_frame);
	if (p->tstate_cframe != SONDE_PYTHON_NONE)
		cframe = python_u64(r->buffer, p->tstate_cframe);
	if (p->cframe_frame != SONDE_PYTHON_NONE) {
		if (!cframe || python_cframe(w, r, p, cframe, &previous, &r->cursor))
			return RUNTIME_ENDED;
	}
	if (p->kind != SONDE_PYTHON_SHIMS)
		r->state[PYTHON_CFRAME] = cframe;
	return r->cursor ? RUNTIME_GOES_ON : RUNTIME_ENDED;
}

/* Behind the last frame: all runs have ended, and what is left of the cframes is root_cframe in the PyThreadState, or the walk met the interpreter while it went from one frame
 * to another. */
static __always_inline int python_end(struct runtime_walk *r)
{
	__u64 cframe = r->state[PYTHON_CFRAME];

	if ((cframe && cframe - r->state[PYTHON_TSTATE] >= PYTHON_TSTATE_BYTES) || r->state[PYTHON_IN_RUN])
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	return RUNTIME_ENDED;
}

/* Ends the run of an activation that keeps a cframe, or nothing. */
static __always_inline int python_run_ends(struct walk *w, struct runtime_walk *r, const struct sonde_python *p)
{
	__u64 cframe = r->state[PYTHON_CFRAME], frame;

	r->state[PYTHON_IN_RUN] = 0;
	if (p->tstate_cframe == SONDE_PYTHON_NONE)
		return runtime_entry(r);
	if (!cframe) /* more frames than cframes */
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	if (runtime_entry_at(w, r, cframe) != RUNTIME_GOES_ON || python_cframe(w, r, p, cframe, &r->state[PYTHON_CFRAME], &frame))
		return RUNTIME_ENDED;
	return RUNTIME_GOES_ON;
}

/* The byte offset of a frame's instruction from the first one of its code. What has not run one yet is before it. */
static __always_inline __u64 python_where(struct walk *w, struct runtime_walk *r, const struct sonde_python *p, __u64 code, __u64 position, __u32 tlbc)
{
	__u64 start = code + p->code_code;

	if (p->position != SONDE_PYTHON_ADDRESS) {
		__s32 lasti = (__s32)position;

		return lasti < 0 ? 0 : (__u64)lasti << (p->position == SONDE_PYTHON_UNITS);
	}
	if (tlbc && (read_user(w, &start, sizeof(start), code + p->code_tlbc) || read_user(w, &start, sizeof(start), start + 8 + 8 * (__u64)tlbc)))
		return 0;
	return position - start < (1u << 30) ? position - start : 0;
}

/* Takes a code object down. Entered with __init__ of a class runs a frame of the interpreter's own (_Py_InitCleanup), which is nobody's: it is left out. */
static __always_inline int python_push(struct walk *w, struct runtime_walk *r, const struct sonde_python *p, __u64 code, __u64 position, __u32 tlbc)
{
	__u32 flags, line, cookie;

	if (runtime_read(w, r, r->buffer, p->code_bytes & 511, code))
		return RUNTIME_ENDED;
	if (p->code_type && python_u64(r->buffer, p->code_type_off) != p->code_type)
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	flags = python_u32(r->buffer, p->code_flags);
	line = python_u32(r->buffer, p->code_firstlineno);
	if (p->kind == SONDE_PYTHON_SHIMS && !line && (flags & (PYTHON_CO_OPTIMIZED | PYTHON_CO_NEWLOCALS)) == PYTHON_CO_OPTIMIZED)
		return RUNTIME_GOES_ON;
	cookie = line ^ flags << 16 ^ python_u32(r->buffer, p->code_argcount) << 8 ^ python_u32(r->buffer, p->code_kwonlyargcount) << 4 ^
		 (__u32)(python_u64(r->buffer, p->code_linetable) >> 4);
	r->state[PYTHON_IN_RUN]++;
	return runtime_push(r, code, python_where(w, r, p, code, position, tlbc), cookie, 0);
}

/* Takes the frame at the cursor down and moves to the one that called it. GOES_ON, or ENDED. */
static __always_inline int python_step(struct walk *w, struct runtime_walk *r, const struct sonde_python *p)
{
	__u64 frame = r->cursor, code, position;
	__u32 tlbc = 0;
	__u8 owner = 0;
	__s64 at;

	if (!frame)
		return python_end(r);
	at = runtime_block(w, r, frame, p->frame_bytes & 511);
	if (at < 0)
		return RUNTIME_ENDED;
	r->cursor = python_u64(r->block, at + p->frame_back);
	code = python_u64(r->block, at + p->frame_code) & ~(__u64)p->code_tags;
	position = p->position == SONDE_PYTHON_ADDRESS ? python_u64(r->block, at + p->frame_position) : python_u32(r->block, at + p->frame_position);
	if (p->frame_owner != SONDE_PYTHON_NONE)
		owner = python_u8(r->block, at + p->frame_owner);
	if (p->frame_tlbc != SONDE_PYTHON_NONE)
		tlbc = python_u32(r->block, at + p->frame_tlbc);
	if (p->kind == SONDE_PYTHON_SHIMS && owner >= p->shim_owner) {
		if (!r->state[PYTHON_IN_RUN]) /* it has just been entered, or is about to be left */
			return RUNTIME_GOES_ON;
		r->state[PYTHON_IN_RUN] = 0;
		return runtime_entry_at(w, r, frame);
	}
	if (python_push(w, r, p, code, position, tlbc) != RUNTIME_GOES_ON)
		return RUNTIME_ENDED;
	if (p->kind == SONDE_PYTHON_SHIMS || (p->kind == SONDE_PYTHON_CFRAMES && !owner))
		return RUNTIME_GOES_ON;
	return python_run_ends(w, r, p);
}
