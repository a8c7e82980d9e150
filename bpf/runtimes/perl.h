/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Perl's stack: the context stack of PL_curstackinfo from its top down, then that of the previous one (si_prev), to the main program's, as
 * pp_caller goes. Contexts of subs, formats, string evals and required files are frames; `eval {}` is a block like any other. PL_curcop is
 * the position of the leaf; a context's blk_oldcop, that of its caller.
 *
 * Runs: a context that C calls (call_sv, sort, a MULTICALL of List::Util) has no op to return to (retop is NULL), and an activation of
 * runops of its own. So has the main program, whose OP_ENTER pushed the very first context. Three cases need more:
 *
 * - A block of sort is no sub: its context has no type. It has an activation, but no frame, as for caller().
 * - sort and MULTICALL push the context once and run it many times. Between two runs PL_op is NULL: there is no activation, and the sub
 *   does not run.
 * - The first `eval` in code that C called without catching errors itself starts runops again (S_docatch), to have a place to jump to. This
 *   activation then runs all that follows, also behind the eval's end. Its JMPENV, in the chain from PL_top_env on, is in S_docatch's
 *   native frame: between two activations of runops, where otherwise only call_sv with G_EVAL has one (and that pushed a context of its own
 *   to catch errors). The run then has two activations: the inner one gets all frames, the outer one none.
 *
 * Cost: four reads per frame (CV, its body, COP, file name; one more for an anonymous sub), and one per four contexts. They are made here
 * because in a string eval or a closure all of it may be freed a moment later.
 *
 * What a COP says (line, file) is kept. PL_cop_seqmax grows with each block that is compiled; while it is what it was, no code was made,
 * so a COP at that address is the same one. Only PL_compiling, a COP in the interpreter itself, changes its line meanwhile. */
#pragma once
#include "../abi/perl.h"
#include "runtime.h"

/* state[] of a walk */
#define PERL_COP 0     /* the position of the next frame */
#define PERL_CX 1      /* contexts left in this stackinfo | number of the first one in the buffer << 32 */
#define PERL_CXSTACK 2
#define PERL_PREV 3    /* si_prev */
#define PERL_ENV 4     /* address of a pointer to a JMPENV, whose first word points to the previous one; 0: not known */
#define PERL_FLAGS 5
#define PERL_KEY 6     /* hash of the process, its interpreter and PL_cop_seqmax; 0: not known */
#define PERL_SELF 7    /* the interpreter; not set without PERL_KEY */

#define PERL_TYPE_MASK 255    /* of PERL_FLAGS: si_type */
#define PERL_IS_TOP 256       /* the next context is the innermost one */
#define PERL_OP_IS_NULL 512
#define PERL_RUN_ENDED 1024   /* an entry was pushed; the run may have a second activation of runops */
#define PERL_NOT_BEGUN 2048   /* the first entry has no activation yet */

/* Words of the buffer: contexts; what is read for a frame. */
#define PERL_BLOCK_CONTEXTS 4
#define PERL_CX_WORDS (SONDE_PERL_CX_BYTES / 8)
#define PERL_NO_BLOCK 0xffffffffu
#define PERL_SCRATCH 52
#define PERL_MAX_CONTEXTS (1u << 24)
#define PERL_MAX_ENVS 8 /* JMPENVs between two activations of runops */

/* Moves to the stackinfo at `si`. */
static __always_inline int perl_stackinfo(struct walk *w, struct runtime_walk *r, __u64 si)
{
	__s32 cxix;

	r->cursor = si;
	if (runtime_read(w, r, &r->buffer[PERL_SCRATCH], SONDE_PERL_SI_BYTES, si))
		return RUNTIME_ENDED;
	cxix = (__s32)r->buffer[PERL_SCRATCH + SONDE_PERL_SI_CXIX / 8];
	if (cxix < -1 || cxix >= (__s32)PERL_MAX_CONTEXTS)
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	r->state[PERL_CXSTACK] = r->buffer[PERL_SCRATCH + SONDE_PERL_SI_CXSTACK / 8];
	r->state[PERL_PREV] = r->buffer[PERL_SCRATCH + SONDE_PERL_SI_PREV / 8];
	r->state[PERL_CX] = (__u64)PERL_NO_BLOCK << 32 | (__u32)(cxix + 1);
	r->state[PERL_FLAGS] &= ~(__u64)PERL_TYPE_MASK;
	r->state[PERL_FLAGS] |= r->buffer[PERL_SCRATCH + SONDE_PERL_SI_TYPE / 8] >> 32 & PERL_TYPE_MASK;
	return RUNTIME_GOES_ON;
}

/* Reads how much code this interpreter has compiled. */
static __always_inline void perl_look_at_seqmax(struct walk *w, struct runtime_walk *r, const struct sonde_perl *p, __u64 perl)
{
	__u32 seqmax = 0;

	if (!p->interpreter_cop_seqmax || read_user(w, &seqmax, sizeof(seqmax), perl + p->interpreter_cop_seqmax))
		return;
	r->state[PERL_KEY] = hash_step(hash_step(w->hash_begin, perl), seqmax) | 1;
	r->state[PERL_SELF] = perl;
}

/* Starts with what the thread runs. Returns RUNTIME_GOES_ON; RUNTIME_ENDED: no Perl runs in this thread, or it could not be read. */
static __always_inline int perl_enter(struct walk *w, struct runtime_walk *r, const struct sonde_perl *p)
{
	__u64 perl = 0, op = 0, cop = 0, si = 0;

	r->state[PERL_KEY] = 0;
	if (p->process.root.kind != SONDE_TLS_NONE) {
		perl = runtime_root(w, r, &p->process.root);
		if (!perl)
			return RUNTIME_ENDED;
		if (runtime_read(w, r, r->buffer, SONDE_PERL_INTERPRETER_BYTES, perl))
			return RUNTIME_ENDED;
		op = r->buffer[p->interpreter_op / 8 & 31];
		cop = r->buffer[p->interpreter_curcop / 8 & 31];
		si = r->buffer[p->interpreter_curstackinfo / 8 & 31];
		r->state[PERL_ENV] = p->interpreter_top_env ? perl + p->interpreter_top_env : 0;
		perl_look_at_seqmax(w, r, p, perl);
	} else {
		if (runtime_read(w, r, &op, sizeof(op), p->op_pc) || runtime_read(w, r, &cop, sizeof(cop), p->curcop_pc) ||
		    runtime_read(w, r, &si, sizeof(si), p->curstackinfo_pc))
			return RUNTIME_ENDED;
		r->state[PERL_ENV] = p->top_env_pc;
	}
	if (!si)
		return RUNTIME_ENDED;
	r->state[PERL_COP] = cop;
	r->state[PERL_FLAGS] = PERL_IS_TOP | (op ? 0 : PERL_OP_IS_NULL);
	return perl_stackinfo(w, r, si);
}

/* Reads the position: `where` and `cookie` of abi/perl.h without the start line. Reads into the buffer behind the contexts. Returns 0; -1:
 * not all could be read. */
static __always_inline int perl_read_position(struct walk *w, struct runtime_walk *r, const struct sonde_perl *p, __u64 *where,
					      __u32 *cookie)
{
	__u64 *cop = &r->buffer[PERL_SCRATCH], file = SONDE_PERL_FILE_UNKNOWN, text = 0, ends;
	__u32 line = 0, check = 0;
	int err = read_user(w, cop, 24, r->state[PERL_COP] + SONDE_PERL_COP_LINE - 4);

	if (!err) {
		line = (__u32)(cop[0] >> 32);
		file = cop[2] & SONDE_PERL_FILE_MASK;
	}
	if (file && p->process.root.kind != SONDE_TLS_NONE && !(err = read_user(w, &text, sizeof(text), file))) {
		ends = (text - 0x0101010101010101ULL) & ~text & 0x8080808080808080ULL;
		if (ends)
			text &= (ends & -ends) - 1;
		check = SONDE_PERL_CHECK(text);
		if ((text & 0xffffffffffffULL) == 0x206c61766528ULL) { /* "(eval " */
			file = SONDE_PERL_FILE_EVAL;
			check = 0;
		}
	}
	if (line > SONDE_PERL_MAX_LINE)
		line = 0;
	*where = file | (__u64)line << 48;
	*cookie = line >> 16 | check << 24;
	return err;
}

/* Stores a frame and its position; `start_line` becomes a part of the cookie. */
static __always_inline int perl_push(struct walk *w, struct runtime_walk *r, const struct sonde_perl *p, __u64 code, __u32 start_line)
{
	__u64 cop = r->state[PERL_COP], key = hash_step(r->state[PERL_KEY], cop) | 1, where;
	const struct runtime_cached *cached = runtime_cached(r, key);
	int can_cache = r->state[PERL_KEY] && cop - r->state[PERL_SELF] >= p->interpreter_bytes, err;
	__u32 cookie;

	if (start_line > SONDE_PERL_MAX_LINE)
		start_line = 0;
	if (can_cache && cached->key == key && !runtime_is_checked(r))
		return runtime_push(r, code, cached->where, cached->cookie | start_line << 4, 0);
	err = perl_read_position(w, r, p, &where, &cookie);
	if (can_cache && !err)
		runtime_keep(r, key, where, cookie);
	return runtime_push(r, code, where, cookie | start_line << 4, 0);
}

/* Stores the frame of a sub or format. -1: this context has none (it is being entered or left). */
static __always_inline int perl_push_sub(struct walk *w, struct runtime_walk *r, const struct sonde_perl *p, __u64 cv)
{
	__u64 *words = &r->buffer[PERL_SCRATCH], body, name, start;
	__u32 type, flags, start_line = 0;

	if (!cv || read_user(w, words, 16, cv))
		return -1;
	type = (__u32)(words[1] >> 32) & SONDE_PERL_SV_TYPE_MASK;
	body = words[0];
	if ((type != SONDE_PERL_SVT_CV && type != SONDE_PERL_SVT_FM) || read_user(w, words, 64, body + SONDE_PERL_XPVCV_STASH))
		return -1;
	start = words[(SONDE_PERL_XPVCV_START - SONDE_PERL_XPVCV_STASH) / 8];
	name = words[(SONDE_PERL_XPVCV_GV - SONDE_PERL_XPVCV_STASH) / 8];
	flags = (__u32)(words[(SONDE_PERL_XPVCV_FLAGS - SONDE_PERL_XPVCV_STASH) / 8] >> 32);
	if (flags & SONDE_PERL_CV_NAMED)
		name = cv | SONDE_PERL_CODE_CV;
	if (flags & SONDE_PERL_CV_ANON && p->op_nextstate && !read_user(w, words, 8, start + SONDE_PERL_OP_TYPE) &&
	    (words[0] & SONDE_PERL_OP_TYPE_MASK) - p->op_nextstate <= 1)
		start_line = (__u32)(words[0] >> 32);
	return perl_push(w, r, p, name, start_line);
}

/* True if the run that has ended, with one entry pushed, has two activations. A run that has not begun has no activation among the native
 * frames. Called when the next context, if there is one, is in the buffer. The large part, once for each run. */
WALK_FUNCTION int perl_is_run_twice(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct runtime_walk *r = runtime_walk_of(ref);
	__u64 env = 0, inner, outer;
	__u32 nr;

	if (!w || !r)
		return 0;
	nr = r->nr_entries - (r->state[PERL_FLAGS] & PERL_NOT_BEGUN ? 1 : 0);
	if (!nr || nr >= r->nr_loops || nr >= RUNTIME_MAX_LOOPS)
		return 0;
	inner = w->sps[r->loops[(nr - 1) & (RUNTIME_MAX_LOOPS - 1)] & (SONDE_MAX_USER_FRAMES - 1)];
	outer = w->sps[r->loops[nr & (RUNTIME_MAX_LOOPS - 1)] & (SONDE_MAX_USER_FRAMES - 1)];
	WALK_ROLLED
	for (int i = 0; i < PERL_MAX_ENVS; i++) {
		if (read_user(w, &env, sizeof(env), r->state[PERL_ENV]) || env > inner)
			break;
		r->state[PERL_ENV] = env;
	}
	return env > inner && env < outer;
}

/* The index in the buffer of the next context; reads the buffer again if needed. -1: it cannot be read. */
static __always_inline int perl_context(struct walk *w, struct runtime_walk *r)
{
	__u32 left = (__u32)r->state[PERL_CX], first = (__u32)(r->state[PERL_CX] >> 32), i = left - 1;

	if (first == PERL_NO_BLOCK || i < first) {
		first = left > PERL_BLOCK_CONTEXTS ? left - PERL_BLOCK_CONTEXTS : 0;
		if (runtime_read(w, r, r->buffer, PERL_BLOCK_CONTEXTS * SONDE_PERL_CX_BYTES,
				 r->state[PERL_CXSTACK] + (__u64)first * SONDE_PERL_CX_BYTES))
			return -1;
		r->state[PERL_CX] = (__u64)first << 32 | left;
	}
	return (int)(i - first) & (PERL_BLOCK_CONTEXTS - 1);
}

static __always_inline __u64 perl_cx_u64(const struct runtime_walk *r, __u32 i, __u32 off)
{
	return r->buffer[(i * PERL_CX_WORDS + off / 8) & 63];
}

/* Stores the frame of a context, if it has one, and moves the position to its caller. */
static __always_inline int perl_take(struct walk *w, struct runtime_walk *r, const struct sonde_perl *p, __u32 i, __u8 type, int is_top)
{
	__u64 oldcop = perl_cx_u64(r, i, SONDE_PERL_CX_OLDCOP), cv = perl_cx_u64(r, i, SONDE_PERL_CX_CV);
	__u8 kind = type & SONDE_PERL_CX_TYPE_MASK;
	int err = RUNTIME_GOES_ON;

	if (kind == SONDE_PERL_CX_SUB || kind == SONDE_PERL_CX_FORMAT) {
		if (kind == SONDE_PERL_CX_SUB && type & SONDE_PERL_CX_SUB_FAKE)
			return RUNTIME_GOES_ON;
		err = perl_push_sub(w, r, p, cv);
		if (err < 0)
			return is_top ? err : runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	} else if (kind == SONDE_PERL_CX_EVAL && !(type & SONDE_PERL_CX_EVAL_BLOCK)) {
		err = perl_push(w, r, p, type & SONDE_PERL_CX_EVAL_TEXT ? SONDE_PERL_CODE_EVAL : SONDE_PERL_CODE_FILE, 0);
	} else {
		return RUNTIME_GOES_ON;
	}
	r->state[PERL_COP] = oldcop;
	return err;
}

/* No context is left in this stackinfo: moves to the previous one. */
static __always_inline int perl_next_stackinfo(struct walk *w, struct runtime_walk *r)
{
	__u64 prev = r->state[PERL_PREV];

	if ((r->state[PERL_FLAGS] & PERL_TYPE_MASK) == SONDE_PERL_SI_IS_MAIN)
		return RUNTIME_ENDED;
	if (!prev || prev == r->cursor)
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	return perl_stackinfo(w, r, prev);
}

/* True if the next context is the first one pushed by a block that runops runs by itself, of sort or of a regular expression. It has no op
 * to return to either, but what it calls runs in the block's own activation. */
static __always_inline int perl_is_in_block(struct walk *w, const struct runtime_walk *r, __u32 left)
{
	__u8 si_type = r->state[PERL_FLAGS] & PERL_TYPE_MASK, type;

	if (left != 2 || (si_type != SONDE_PERL_SI_IS_SORT && si_type != SONDE_PERL_SI_IS_MULTICALL) ||
	    read_user(w, &type, 1, r->state[PERL_CXSTACK]))
		return 0;
	return si_type == SONDE_PERL_SI_IS_SORT ? (type & SONDE_PERL_CX_TYPE_MASK) == SONDE_PERL_CX_NULL : type & SONDE_PERL_CX_SUB_RE;
}

/* True if the context has an activation of runops of its own, and so ends a run. `left`: contexts left, with this one. */
static __always_inline int perl_ends_run(struct walk *w, const struct runtime_walk *r, __u8 type, __u64 retop, __u32 left)
{
	__u8 kind = type & SONDE_PERL_CX_TYPE_MASK, si_type = r->state[PERL_FLAGS] & PERL_TYPE_MASK;

	if (kind == SONDE_PERL_CX_NULL)
		return si_type == SONDE_PERL_SI_IS_SORT && left == 1;
	if (retop || (kind != SONDE_PERL_CX_SUB && (kind != SONDE_PERL_CX_EVAL || type & SONDE_PERL_CX_EVAL_BLOCK)))
		return 0;
	return !perl_is_in_block(w, r, left);
}

/* Handles the next context. Returns RUNTIME_GOES_ON or RUNTIME_ENDED. */
static __always_inline int perl_step(struct walk *w, struct runtime_walk *r, const struct sonde_perl *p)
{
	__u64 flags = r->state[PERL_FLAGS], retop;
	__u32 left = (__u32)r->state[PERL_CX], si_type = flags & PERL_TYPE_MASK;
	int i = left ? perl_context(w, r) : 0, is_new, err;
	__u8 type;

	if (i < 0)
		return RUNTIME_ENDED;
	type = left ? (__u8)perl_cx_u64(r, i, 0) : 0;
	retop = left ? perl_cx_u64(r, i, SONDE_PERL_CX_RETOP) : 1;
	if (flags & PERL_RUN_ENDED) {
		r->state[PERL_FLAGS] = flags & ~(__u64)PERL_RUN_ENDED;
		if (!(type & SONDE_PERL_CX_EVAL_BLOCK && (type & SONDE_PERL_CX_TYPE_MASK) == SONDE_PERL_CX_EVAL && !retop) &&
		    perl_is_run_twice(ref_of(w)))
			return runtime_entry(r);
	}
	if (!left)
		return perl_next_stackinfo(w, r);
	r->state[PERL_CX]--;
	r->state[PERL_FLAGS] &= ~(__u64)PERL_IS_TOP;
	if (flags & PERL_IS_TOP && flags & PERL_OP_IS_NULL && left == 1 &&
	    (si_type == SONDE_PERL_SI_IS_SORT || si_type == SONDE_PERL_SI_IS_MULTICALL)) {
		r->state[PERL_COP] = perl_cx_u64(r, i, SONDE_PERL_CX_OLDCOP);
		return RUNTIME_GOES_ON;
	}
	/* C has pushed this context, and no statement has run since */
	is_new = flags & PERL_IS_TOP && r->state[PERL_COP] == perl_cx_u64(r, i, SONDE_PERL_CX_OLDCOP);
	err = perl_take(w, r, p, i, type, flags & PERL_IS_TOP ? 1 : 0);
	if (err)
		return err < 0 ? RUNTIME_GOES_ON : RUNTIME_ENDED;
	if (si_type == SONDE_PERL_SI_IS_MAIN && left == 1 && (type & SONDE_PERL_CX_TYPE_MASK) == SONDE_PERL_CX_BLOCK) {
		if (perl_push(w, r, p, SONDE_PERL_CODE_MAIN, 0))
			return RUNTIME_ENDED;
		return runtime_entry(r);
	}
	if (!perl_ends_run(w, r, type, retop, left))
		return RUNTIME_GOES_ON;
	if (is_new)
		r->state[PERL_FLAGS] |= PERL_NOT_BEGUN;
	if ((type & SONDE_PERL_CX_TYPE_MASK) != SONDE_PERL_CX_EVAL) /* eval_sv catches errors itself */
		r->state[PERL_FLAGS] |= PERL_RUN_ENDED;
	return runtime_entry(r);
}
