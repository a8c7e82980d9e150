/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk of CPython's frames, 3.6 and newer, as abi/python.h describes them. Facts: Include/internal/pycore_frame.h, Python/ceval.c.
 *
 * A run ends with the frame with which its activation of the loop was entered. What the activation keeps on the native stack shows where
 * that is. Up to 3.9 it keeps nothing: each frame has an activation of its own, so they are paired by counting. 3.10 keeps a CFrame for
 * each frame, 3.11 a _PyCFrame for each run, 3.12 and newer the shim frame below the run.
 *
 * Cost: one read of user memory for several frames, since those of 3.11 and newer are adjacent (callers at lower addresses); one for each
 * cframe of the chain; and one per frame for its code, unless the cookie is in the cache.
 *
 * The cache is exact. An interpreter numbers its code objects (co_version, 3.12 and newer), and the counter grows whenever it makes one. If
 * the counter is what it was when a cookie was read, no code was made since, so code that runs at that address now is the same object.
 * Where the counter is not known, nothing is cached. */
#pragma once
#include "../abi/python.h"
#include "runtime.h"

/* state[] of a walk */
#define PYTHON_CFRAME 0  /* the cframe of the next run; 0: none */
#define PYTHON_IN_RUN 1  /* frames since the last entry */
#define PYTHON_TSTATE 2
#define PYTHON_MADE 3    /* the counter: the number of the next code object; 0: not known */
#define PYTHON_KEY 4     /* hash of the process, its interpreter and the counter */

#define PYTHON_TSTATE_INTERPRETER 16 /* prev, next, interp, ... since 3.8 */
#define PYTHON_TSTATE_BYTES 4096 /* more than its size: 280 in 3.10, 360 in 3.11 */

#define PYTHON_CO_OPTIMIZED 1
#define PYTHON_CO_NEWLOCALS 2

/* The value at an offset in the walk's buffer, or in a copy. */
static __always_inline __u64 python_u64(const __u64 *words, __u32 off)
{
	return words[off / 8 & 63];
}

static __always_inline __u32 python_u32(const __u64 *words, __u32 off)
{
	return ((const __u32 *)words)[off / 4 & 127];
}

/* Likewise, in the block. */
static __always_inline __u32 python_block_u32(const struct runtime_walk *r, __u32 off)
{
	return (__u32)(runtime_word(r, off) >> (off & 4) * 8);
}

static __always_inline __u8 python_block_u8(const struct runtime_walk *r, __u32 off)
{
	return (__u8)(runtime_word(r, off) >> (off & 7) * 8);
}

/* Reads the cframe of the next run, and the frame it points to, if it has one. */
static __always_inline int python_cframe(struct walk *w, struct runtime_walk *r, const struct sonde_python *p, __u64 cframe,
					 __u64 *ret_previous, __u64 *ret_frame)
{
	if (runtime_read(w, r, r->buffer, 24, cframe))
		return -1;
	*ret_previous = python_u64(r->buffer, p->cframe_previous);
	if (p->cframe_frame != SONDE_PYTHON_NONE)
		*ret_frame = python_u64(r->buffer, p->cframe_frame);
	return 0;
}

/* The variable `current` in a library: four reads find it, so it is remembered how far below the thread pointer it is. */
static __always_inline int python_read_module(struct walk *w, struct runtime_walk *r, const struct sonde_python *p, __u64 *ret_tstate)
{
	__u64 base = user_tls_base(w), key = hash_step(w->hash_begin, p->process.serial) | 1, at;
	struct runtime_place *place = &r->places[key >> (64 - RUNTIME_PLACES_SHIFT)];

	if (!base)
		return -1;
	if (place->key != key) {
		if (tls_find_module(w, &p->current, base, p->current.pc, &at))
			return -1;
		if (base - at > TLS_STATIC_BYTES)
			return tls_word(w, at, ret_tstate);
		place->key = key;
		place->below = base - at;
	}
	return tls_word(w, base - place->below, ret_tstate);
}

static __always_inline int python_read_current(struct walk *w, struct runtime_walk *r, const struct sonde_python *p, __u64 *ret_tstate)
{
	return p->current.kind == SONDE_TLS_MODULE ? python_read_module(w, r, p, ret_tstate) : tls_read(w, &p->current, ret_tstate);
}

/* The thread's PyThreadState, whose start is in the buffer. 0: there is none, or it could not be read. */
static __always_inline __u64 python_tstate(struct walk *w, struct runtime_walk *r, const struct sonde_python *p)
{
	__u64 tstate = 0;

	if (p->current.kind != SONDE_TLS_NONE && !python_read_current(w, r, p, &tstate) && tstate) {
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

/* Reads the counter of the interpreter whose PyThreadState is in the buffer. */
static __always_inline void python_look_at_counter(struct walk *w, struct runtime_walk *r, const struct sonde_python *p)
{
	__u64 interpreter = python_u64(r->buffer, PYTHON_TSTATE_INTERPRETER);
	__u32 made = 0;

	r->state[PYTHON_MADE] = 0;
	if (!p->interpreter_made || read_user(w, &made, sizeof(made), interpreter + p->interpreter_made))
		return;
	r->state[PYTHON_MADE] = made;
	r->state[PYTHON_KEY] = hash_step(hash_step(w->hash_begin, interpreter), made);
}

/* Starts with what the thread runs. Returns RUNTIME_GOES_ON; RUNTIME_ENDED: no interpreter runs in this thread, or it could not be read. */
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
	python_look_at_counter(w, r, p);
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

/* True if no loop holds this cframe: root_cframe is in the PyThreadState; a greenlet's, which replaces it, is in the outermost frame of its
 * native stack. */
static __always_inline int python_is_root(const struct walk *w, const struct runtime_walk *r, __u64 cframe)
{
	if (cframe - r->state[PYTHON_TSTATE] < PYTHON_TSTATE_BYTES)
		return 1;
	return w->stop == SONDE_STOP_COMPLETE && w->nr_frames <= SONDE_LEAF_FRAMES && cframe >= runtime_sp(w, w->nr_frames - 1);
}

/* Ends after the last frame. If cframes other than the root's are left, or a run has not ended, the walk met the interpreter between two
 * frames. */
static __always_inline int python_end(const struct walk *w, struct runtime_walk *r)
{
	__u64 cframe = r->state[PYTHON_CFRAME];

	if ((cframe && !python_is_root(w, r, cframe)) || r->state[PYTHON_IN_RUN])
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

/* The byte offset of a frame's instruction from the first one of its code; 0 if the frame has not run an instruction yet. */
static __always_inline __u64 python_where(struct walk *w, struct runtime_walk *r, const struct sonde_python *p, __u64 code, __u64 position,
					  __u32 tlbc)
{
	__u64 start = code + p->code_code;

	if (p->position != SONDE_PYTHON_ADDRESS) {
		__s32 lasti = (__s32)position;

		return lasti < 0 ? 0 : (__u64)lasti << (p->position == SONDE_PYTHON_UNITS);
	}
	if (tlbc &&
	    (read_user(w, &start, sizeof(start), code + p->code_tlbc) || read_user(w, &start, sizeof(start), start + 8 + 8 * (__u64)tlbc)))
		return 0;
	return position - start < (1u << 30) ? position - start : 0;
}

/* Is it the frame of a class call with __init__ (_Py_InitCleanup)? That is the interpreter's own, and is left out. */
static __always_inline int python_is_cleanup(const struct sonde_python *p, const struct sonde_python_code *code)
{
	return p->kind == SONDE_PYTHON_SHIMS && !code->firstlineno &&
	       (code->flags & (PYTHON_CO_OPTIMIZED | PYTHON_CO_NEWLOCALS)) == PYTHON_CO_OPTIMIZED;
}

/* In all versions before 3.12 it follows co_filename; `code_name` may be that of co_qualname, whose hash nobody has computed. */
static __always_inline __u64 python_co_name(const __u64 *code, const struct sonde_python *p)
{
	return python_u64(code, p->code_filename + 8);
}

static __always_inline __u64 python_hash_at(const struct sonde_python *p, __u64 name)
{
	return name + p->code_type_off + SONDE_PYTHON_HASH_OFF;
}

/* Reads the head of a code object. Returns 0; -1: the walk ends there, marked. */
static __always_inline int python_read_code(struct walk *w, struct runtime_walk *r, const struct sonde_python *p, __u64 code,
					    struct sonde_python_code *ret)
{
	if (runtime_read(w, r, r->buffer, p->code_bytes & 511, code))
		return -1;
	if (p->code_type && python_u64(r->buffer, p->code_type_off) != p->code_type) {
		runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
		return -1;
	}
	ret->flags = python_u32(r->buffer, p->code_flags);
	ret->firstlineno = python_u32(r->buffer, p->code_firstlineno);
	ret->argcount = python_u32(r->buffer, p->code_argcount);
	ret->kwonlyargcount = python_u32(r->buffer, p->code_kwonlyargcount);
	ret->version = p->code_version == SONDE_PYTHON_NONE ? 0 : python_u32(r->buffer, p->code_version);
	ret->linetable = python_u64(r->buffer, p->code_linetable);
	ret->name = python_u64(r->buffer, p->code_name);
	ret->filename = python_u64(r->buffer, p->code_filename);
	ret->name_hash = 0;
	if (p->code_version != SONDE_PYTHON_NONE)
		return 0;
	return runtime_read(w, r, &ret->name_hash, sizeof(ret->name_hash), python_hash_at(p, python_co_name(r->buffer, p)));
}

/* Stores the frame of a code object, if it is one of the program's. */
static __always_inline int python_push(struct walk *w, struct runtime_walk *r, const struct sonde_python *p, __u64 code, __u64 position,
				       __u32 tlbc)
{
	__u64 key = hash_step(r->state[PYTHON_KEY], code) | 1, where = python_where(w, r, p, code, position, tlbc);
	struct runtime_cached *cached = runtime_cached(r, key);
	int is_cached = r->state[PYTHON_MADE] && cached->key == key;
	struct sonde_python_code read;
	__u32 cookie;

	if (is_cached && !runtime_is_checked(r)) {
		r->state[PYTHON_IN_RUN]++;
		return runtime_push(r, code, where, cached->cookie, 0);
	}
	if (python_read_code(w, r, p, code, &read))
		return RUNTIME_ENDED;
	if (python_is_cleanup(p, &read))
		return RUNTIME_GOES_ON;
	cookie = sonde_python_cookie(&read);
	if (is_cached && cookie != cached->cookie)
		r->nr_wrong++;
	if (read.version && read.version < r->state[PYTHON_MADE]) {
		cached->key = key;
		cached->cookie = cookie;
	}
	r->state[PYTHON_IN_RUN]++;
	return runtime_push(r, code, where, cookie, 0);
}

/* The pieces of a copy: the code object, its name, its file's name, its line table, the hash of its name. The sizes are enough for nearly
 * all. */
#define PYTHON_COPY_CODE 192
#define PYTHON_COPY_NAME 128
#define PYTHON_COPY_FILE 248
#define PYTHON_COPY_LINES 512
#define PYTHON_COPY_HASH 8
_Static_assert(PYTHON_COPY_CODE + PYTHON_COPY_NAME + PYTHON_COPY_FILE + PYTHON_COPY_LINES + PYTHON_COPY_HASH == SONDE_CODE_BYTES,
	       "room for all pieces");

static __always_inline void python_copy_piece(struct walk *w, struct sonde_code_record *copy, __u32 piece, __u32 off, __u32 size,
					      __u64 from)
{
	copy->from[piece] = from;
	copy->offs[piece] = off;
	copy->sizes[piece] = read_user(w, copy->bytes + off, size, from) ? 0 : size;
}

/* Copies what names the code. Returns 0; -1: it cannot be read. */
static __always_inline int python_copy(struct walk *w, struct sonde_code_record *copy, const struct sonde_python *p, __u64 code)
{
	const __u64 *words = (const __u64 *)copy->bytes;
	__u64 name, file, lines;

	python_copy_piece(w, copy, 0, 0, PYTHON_COPY_CODE, code);
	if (!copy->sizes[0] || p->code_bytes > PYTHON_COPY_CODE)
		return -1;
	name = python_u64(words, p->code_name);
	file = python_u64(words, p->code_filename);
	lines = python_u64(words, p->code_linetable);
	python_copy_piece(w, copy, 1, PYTHON_COPY_CODE, PYTHON_COPY_NAME, name);
	python_copy_piece(w, copy, 2, PYTHON_COPY_CODE + PYTHON_COPY_NAME, PYTHON_COPY_FILE, file);
	python_copy_piece(w, copy, 3, PYTHON_COPY_CODE + PYTHON_COPY_NAME + PYTHON_COPY_FILE, PYTHON_COPY_LINES, lines);
	python_copy_piece(w, copy, 4, SONDE_CODE_BYTES - PYTHON_COPY_HASH, PYTHON_COPY_HASH, python_hash_at(p, python_co_name(words, p)));
	return 0;
}

/* Stores the frame at the cursor and moves to its caller. Returns RUNTIME_GOES_ON or RUNTIME_ENDED. */
static __always_inline int python_step(struct walk *w, struct runtime_walk *r, const struct sonde_python *p)
{
	__u64 frame = r->cursor, code, position;
	__u32 tlbc = 0;
	__u8 owner = 0;
	__s64 at;

	if (!frame)
		return python_end(w, r);
	at = runtime_block(w, r, frame, p->frame_bytes & 511);
	if (at < 0)
		return RUNTIME_ENDED;
	r->cursor = runtime_word(r, at + p->frame_back);
	code = runtime_word(r, at + p->frame_code) & ~(__u64)p->code_tags;
	position = p->position == SONDE_PYTHON_ADDRESS ? runtime_word(r, at + p->frame_position)
						       : python_block_u32(r, at + p->frame_position);
	if (p->frame_owner != SONDE_PYTHON_NONE)
		owner = python_block_u8(r, at + p->frame_owner);
	if (p->frame_tlbc != SONDE_PYTHON_NONE)
		tlbc = python_block_u32(r, at + p->frame_tlbc);
	if (p->kind == SONDE_PYTHON_SHIMS && owner >= p->shim_owner) {
		if (!r->state[PYTHON_IN_RUN]) /* it was just entered, or is about to be left */
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
