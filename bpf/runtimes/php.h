/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PHP's stack: EG(current_execute_data) and on by prev_execute_data, as debug_backtrace goes (Zend/zend_builtin_functions.c). Both PHP code
 * and functions written in C are frames. A run ends at PHP code that was called from C (ZEND_CALL_TOP): only such a call starts a new
 * execute_ex. Two things are no frames: copies of the caller that represent it while C calls PHP out of turn, and a generator's placeholder
 * (below).
 *
 * A generator that has delegated by `yield from` does not run itself: the innermost one runs. In place of the outer ones the stack has the
 * execute_fake of the outermost, which was resumed. node.parent leads from that one inwards, but the stack goes outwards, so the generators
 * are collected first. They have no native frame.
 *
 * Cost: two reads per frame of PHP code (zend_op_array, the opline's line), one per other frame, and one for several execute_data. The line
 * must be read here: evaluated code may be freed a moment later.
 *
 * What both reads give is kept for functions that have a name. These, and no others, live in the request's arena (CG(arena)), whose memory
 * is given back when the request ends and not before; and a process of the command line (sonde_php.is_one_request) serves one request. So
 * the function at an address, and the line of an opline in it, never change there. Closures, code outside of functions and eval's code are
 * freed, and are read each time. */
#pragma once
#include "../abi/php.h"
#include "runtime.h"

enum php_state {
	PHP_IS_LEAF,     /* no frame was stored yet */
	PHP_RUNNING,     /* execute_data of the last frame */
	PHP_GENERATOR,   /* the outermost generator that has delegated */
	PHP_DELEGATES,   /* how many of them are left, the innermost first */
	PHP_FIRST_KEPT,  /* the least of their numbers, 0 the outermost, whose execute_data is in the buffer */
	PHP_ENDED_PREV,  /* the caller of the code that may have ended in the innermost activation; 0: none may have */
};

/* Words of the buffer: execute_data; delegates; zend_op_array, or a generator. */
#define PHP_EX 0
#define PHP_KEPT 8
#define PHP_NR_KEPT 16
#define PHP_FN 32
#define PHP_MAX_DELEGATES 256
#define PHP_GENERATOR_WORDS 13 /* from execute_data on, node.parent last: the same in all versions */

static __always_inline __u64 php_fn_u64(const struct runtime_walk *r, __u32 off)
{
	return r->buffer[PHP_FN + (off / 8 & 31)];
}

static __always_inline __u32 php_fn_u32(const struct runtime_walk *r, __u32 off)
{
	return (__u32)(php_fn_u64(r, off) >> (off & 4) * 8);
}

/* True if the innermost activation is in code of opcache's JIT. */
static __always_inline int php_in_compiled_code(const struct runtime_walk *r, const struct sonde_php *php)
{
	return r->leaf_pc - php->compiled.start_pc < php->compiled.end_pc - php->compiled.start_pc;
}

/* The opline of a frame of PHP code, whose saved one is given. It is saved before anything that may call, warn or throw; in between it is
 * in a register, which a C function may have reused: its value counts only if it is one of the function's instructions. */
static __always_inline __u64 php_opline(const struct walk *w, const struct runtime_walk *r, const struct sonde_php *php, __u64 opcodes,
					__u32 last, __u64 saved)
{
	if (r->state[PHP_IS_LEAF] && php->opline_reg < WALK_NR_REGS) {
		__u64 reg = w->regs[php->opline_reg & (WALK_NR_REGS - 1)], off = reg - opcodes;

		if (off < (__u64)last * SONDE_PHP_OP_BYTES && off % SONDE_PHP_OP_BYTES == 0)
			return reg;
	}
	return saved ? saved : opcodes; /* it has just begun, as in zend_get_executed_lineno */
}

/* The line of a frame of PHP code; 0: not known. Compiled code keeps neither the register nor the saved opline up to date. */
static __always_inline __u32 php_line(struct walk *w, const struct runtime_walk *r, const struct sonde_php *php, __u64 opline)
{
	__u32 line = 0;

	if (r->state[PHP_IS_LEAF] && php_in_compiled_code(r, php))
		return 0;
	return read_user(w, &line, sizeof(line), opline + SONDE_PHP_OP_LINE) ? 0 : line;
}

static __always_inline __u64 php_frame_reg(const struct walk *w, const struct sonde_php *php)
{
	return php->frame_reg < WALK_NR_REGS ? w->regs[php->frame_reg & (WALK_NR_REGS - 1)] : 0;
}

/* True if the thread is in code of the loop itself. */
static __always_inline int php_is_in_loop(const struct runtime_walk *r)
{
	return r->nr_loops && !r->loops[0];
}

/* True if the leaf, which C called, may be a destructor that has not begun, while the innermost activation belongs to the code that has
 * ended and called it. */
static __always_inline int php_may_be_called_by_ended(const struct walk *w, const struct runtime_walk *r, const struct sonde_php *php)
{
	__u64 opline = r->buffer[SONDE_PHP_EX_OPLINE / 8];

	if (r->state[PHP_RUNNING] == php_frame_reg(w, php) || php_is_in_loop(r))
		return 0;
	return (r->state[PHP_ENDED_PREV] && r->state[PHP_ENDED_PREV] == r->cursor) || opline == php_fn_u64(r, php->op_array_opcodes);
}

/* True if the leaf, in the buffer, is a generator that is being resumed. It is on the stack before it is linked to its resumer, until then
 * with the callers of the last time, and is marked as running afterwards (zend_generator_resume). */
static __always_inline int php_is_being_resumed(struct walk *w, struct runtime_walk *r, const struct sonde_php *php)
{
	__u8 flags;

	if (!((__u32)r->buffer[(SONDE_PHP_EX_THIS + 8) / 8] & SONDE_PHP_CALL_GENERATOR) || php_is_in_loop(r))
		return 0;
	return runtime_read(w, r, &flags, sizeof(flags), r->buffer[SONDE_PHP_EX_RETURN / 8] + php->generator_flags) ||
	       !(flags & SONDE_PHP_GENERATOR_RUNS);
}

/* The key of the cache for a frame at this opline; 0: for the function itself, for where its oplines are. */
static __always_inline __u64 php_key(const struct walk *w, __u64 fn, __u64 opline)
{
	return hash_step(hash_step(w->hash_begin, fn), opline) | 1;
}

/* Keeps what was read of a frame of PHP code, if it is a function that lives as long as the process. */
static __always_inline void php_keep(struct walk *w, struct runtime_walk *r, const struct sonde_php *php, __u64 opline, __u32 line,
				     __u32 cookie)
{
	__u64 fn = r->buffer[SONDE_PHP_EX_FUNC / 8], opcodes = php_fn_u64(r, php->op_array_opcodes), off = opline - opcodes;
	__u32 flags = php_fn_u32(r, SONDE_PHP_FN_FLAGS), last = php_fn_u32(r, php->op_array_last);

	if (!php->is_one_request || !php->fn_closure || flags & (SONDE_PHP_FN_TRAMPOLINE | php->fn_closure) ||
	    (__u8)r->buffer[PHP_FN] != SONDE_PHP_USER || !php_fn_u64(r, SONDE_PHP_FN_NAME))
		return;
	if (!line || off % SONDE_PHP_OP_BYTES || off >= (__u64)last * SONDE_PHP_OP_BYTES)
		return;
	runtime_keep(r, php_key(w, fn, opline), line, cookie);
	if (r->state[PHP_IS_LEAF])
		runtime_keep(r, php_key(w, fn, 0), opcodes, last);
}

/* What is kept of the frame whose execute_data is in the buffer; NULL: nothing. */
static __always_inline const struct runtime_cached *php_kept(const struct walk *w, struct runtime_walk *r, const struct sonde_php *php)
{
	__u64 fn = r->buffer[SONDE_PHP_EX_FUNC / 8], opline = r->buffer[SONDE_PHP_EX_OPLINE / 8], key = php_key(w, fn, 0);
	const struct runtime_cached *cached = runtime_cached(r, key);

	if (r->state[PHP_IS_LEAF]) {
		if (cached->key != key || r->buffer[(SONDE_PHP_EX_THIS + 8) / 8] & SONDE_PHP_CALL_TOP || php_in_compiled_code(r, php))
			return 0;
		opline = php_opline(w, r, php, cached->where, cached->cookie, opline);
	}
	key = php_key(w, fn, opline);
	cached = runtime_cached(r, key);
	return opline && cached->key == key ? cached : 0;
}

/* Stores a frame of PHP code. */
static __always_inline int php_push(struct runtime_walk *r, __u64 line, __u32 cookie, int is_delegate)
{
	__u64 fn = r->buffer[SONDE_PHP_EX_FUNC / 8];
	__u32 info = (__u32)r->buffer[(SONDE_PHP_EX_THIS + 8) / 8];

	if ((info & (SONDE_PHP_CALL_CODE | SONDE_PHP_CALL_TOP)) == SONDE_PHP_CALL_CODE)
		line |= SONDE_PHP_WHERE_INCLUDED;
	r->state[PHP_IS_LEAF] = 0;
	if (runtime_push(r, fn, line, cookie, 0))
		return RUNTIME_ENDED;
	return info & SONDE_PHP_CALL_TOP && !is_delegate ? runtime_entry(r) : RUNTIME_GOES_ON;
}

/* Stores the frame whose execute_data is in the buffer. */
static __always_inline int php_take(struct walk *w, struct runtime_walk *r, const struct sonde_php *php, int is_delegate)
{
	__u64 fn = r->buffer[SONDE_PHP_EX_FUNC / 8], opline, name;
	const struct runtime_cached *kept = php_kept(w, r, php);
	__u32 info = (__u32)r->buffer[(SONDE_PHP_EX_THIS + 8) / 8], line, cookie;
	__u8 type;
	long err;

	if (!r->state[PHP_IS_LEAF] && !r->nr_entries && !is_delegate && r->min_ahead < 0) /* its caller runs */
		r->min_ahead = 0;
	if (kept && !runtime_is_checked(r))
		return php_push(r, kept->where, kept->cookie, is_delegate);
	err = read_user(w, &r->buffer[PHP_FN], SONDE_PHP_OP_ARRAY_BYTES, fn);
	if (err && runtime_read(w, r, &r->buffer[PHP_FN], SONDE_PHP_FN_BYTES, fn))
		return RUNTIME_ENDED;
	type = (__u8)r->buffer[PHP_FN];
	name = php_fn_u64(r, SONDE_PHP_FN_NAME);
	if (type == SONDE_PHP_INTERNAL) {
		if (r->state[PHP_IS_LEAF] && r->state[PHP_RUNNING] == php_frame_reg(w, php) &&
		    php_is_in_loop(r)) /* back in C from what it called */
			r->max_ahead = 1;
		r->state[PHP_IS_LEAF] = 0;
		if (name)
			return runtime_push(r, fn, 0, php_cookie(name, 0, 0), 0);
		runtime_leave_stack(r); /* the bottom of a fiber */
		if (!r->cursor) /* it has not been resumed: PHP's stack and the native one belong to different fibers now */
			r->max_ahead = r->min_ahead - 1;
		return RUNTIME_GOES_ON;
	}
	if (type != SONDE_PHP_USER && type != SONDE_PHP_EVAL)
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	if (err) { /* only a C function is shorter */
		r->record.fault = fn;
		return runtime_stop(r, SONDE_RUNTIME_STOP_READ_FAULT);
	}
	if (r->state[PHP_IS_LEAF] && info & SONDE_PHP_CALL_TOP && php_may_be_called_by_ended(w, r, php))
		r->max_ahead = r->min_ahead;
	opline = php_opline(w, r, php, php_fn_u64(r, php->op_array_opcodes), php_fn_u32(r, php->op_array_last),
			    r->buffer[SONDE_PHP_EX_OPLINE / 8]);
	line = php_line(w, r, php, opline);
	cookie = php_cookie(name, php_fn_u64(r, php->op_array_filename), php_fn_u32(r, php->op_array_line_start));
	php_keep(w, r, php, opline, line, cookie);
	return php_push(r, line, cookie, is_delegate);
}

/* Finds the generators that have delegated, from `generator` inwards up to the running one or `max`. Returns their number, 0 if one cannot
 * be read. The buffer keeps the execute_data of the last PHP_NR_KEPT. */
WALK_FUNCTION __u32 php_find_delegates(WALK_REF ref, __u64 generator, __u32 execute_data_off, __u32 max)
{
	struct walk *w = walk_of(ref);
	struct runtime_walk *r = runtime_walk_of(ref);
	__u32 nr = 0;

	if (!w || !r)
		return 0;
	for (; nr < PHP_MAX_DELEGATES; nr++) {
		if (nr >= max || !generator)
			break;
		if (runtime_read(w, r, &r->buffer[PHP_FN], PHP_GENERATOR_WORDS * 8, generator + execute_data_off))
			return 0;
		if (!r->buffer[PHP_FN] || r->buffer[PHP_FN] == r->state[PHP_RUNNING])
			break;
		r->buffer[PHP_KEPT + (nr & (PHP_NR_KEPT - 1))] = r->buffer[PHP_FN];
		generator = r->buffer[PHP_FN + PHP_GENERATOR_WORDS - 1];
	}
	r->state[PHP_FIRST_KEPT] = nr > PHP_NR_KEPT ? nr - PHP_NR_KEPT : 0;
	return nr;
}

/* A placeholder, at `ex`: not a frame. */
static __always_inline int php_skip(struct walk *w, struct runtime_walk *r, const struct sonde_php *php, __u64 ex)
{
	__u64 object = r->buffer[SONDE_PHP_EX_THIS / 8];
	__u8 type = (__u8)r->buffer[(SONDE_PHP_EX_THIS + 8) / 8];

	if (type != SONDE_PHP_IS_OBJECT || object + php->generator_fake != ex)
		return RUNTIME_GOES_ON;
	r->state[PHP_GENERATOR] = object;
	r->state[PHP_DELEGATES] = php_find_delegates(ref_of(w), object, php->generator_execute_data, PHP_MAX_DELEGATES);
	if (!r->state[PHP_DELEGATES])
		return r->record.fault ? RUNTIME_ENDED : runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	return r->state[PHP_DELEGATES] < PHP_MAX_DELEGATES ? RUNTIME_GOES_ON : runtime_stop(r, SONDE_RUNTIME_STOP_DEPTH);
}

/* The next delegate's execute_data; all ones: it is not found again. */
static __always_inline __u64 php_next_delegate(struct walk *w, struct runtime_walk *r, const struct sonde_php *php)
{
	__u32 number = (__u32)r->state[PHP_DELEGATES] - 1;

	if (number < r->state[PHP_FIRST_KEPT] &&
	    php_find_delegates(ref_of(w), r->state[PHP_GENERATOR], php->generator_execute_data, number + 1) != number + 1)
		return ~0ULL;
	r->state[PHP_DELEGATES] = number;
	return r->buffer[PHP_KEPT + (number & (PHP_NR_KEPT - 1))];
}

/* Ends after the last frame. What C called without PHP around it (a callback written in C, at the end of a request) has no native frame
 * that it could replace. */
static __always_inline int php_end(struct runtime_walk *r)
{
	__u32 last = r->nr_frames - 1;

	if (r->nr_frames > r->first_frame && !(r->frames[last & (SONDE_MAX_RUNTIME_FRAMES - 1)].flags & SONDE_RUNTIME_ENTRY) &&
	    runtime_entry(r))
		return RUNTIME_ENDED;
	return runtime_stop(r, SONDE_RUNTIME_STOP_COMPLETE);
}

/* Sets the limits of how many activations at the leaf have no run. PHP code called by C is on PHP's stack before it runs, and has left it
 * when it frees its variables: then its execute_data, still in its register, leads to the present leaf; the same while it is being built.
 * When the loop has just begun or is left, the register does not hold it. If C uses the register for something else, that cannot be
 * seen. */
static __always_inline void php_look_ahead(struct walk *w, struct runtime_walk *r, const struct sonde_php *php)
{
	__u64 ex = php_frame_reg(w, php);

	r->min_ahead = -1;
	r->max_ahead = ex != r->cursor && php_is_in_loop(r);
	r->state[PHP_ENDED_PREV] = 0;
	if (!ex || ex == r->cursor || ex & 7 || read_user(w, &r->buffer[PHP_EX], SONDE_PHP_EX_BYTES, ex) ||
	    !(r->buffer[(SONDE_PHP_EX_THIS + 8) / 8] & SONDE_PHP_CALL_TOP))
		return;
	r->state[PHP_ENDED_PREV] = r->buffer[SONDE_PHP_EX_PREV / 8];
	if (r->state[PHP_ENDED_PREV] == r->cursor) {
		r->min_ahead = 0;
		r->max_ahead = 1;
	}
}

/* Call before the first step. RUNTIME_ENDED: PHP is not running code, or its stack cannot be read. */
static __always_inline int php_enter(struct walk *w, struct runtime_walk *r, const struct sonde_php *php)
{
	r->state[PHP_IS_LEAF] = 1;
	r->state[PHP_RUNNING] = r->state[PHP_DELEGATES] = 0;
	r->block_bytes = 0;
	if (runtime_read(w, r, &r->cursor, sizeof(r->cursor), php->process.root.pc))
		return RUNTIME_ENDED;
	if (!r->cursor)
		return runtime_stop(r, SONDE_RUNTIME_STOP_COMPLETE);
	php_look_ahead(w, r, php);
	return RUNTIME_GOES_ON;
}

/* Gets an execute_data into the buffer. Most are beside each other, callers below. */
static __always_inline int php_read_frame(struct walk *w, struct runtime_walk *r, __u64 ex)
{
	__s64 at = runtime_block(w, r, ex, SONDE_PHP_EX_BYTES);

	if (at < 0)
		return RUNTIME_ENDED;
	for (__u32 off = 0; off < SONDE_PHP_EX_BYTES; off += 8)
		r->buffer[PHP_EX + off / 8] = runtime_word(r, (__u32)at + off);
	return RUNTIME_GOES_ON;
}

/* Stores one frame, or none at a placeholder, and moves on. */
static __always_inline int php_step(struct walk *w, struct runtime_walk *r, const struct sonde_php *php)
{
	int is_delegate = r->state[PHP_DELEGATES] != 0;
	__u64 ex = is_delegate ? php_next_delegate(w, r, php) : r->cursor;

	if (!ex)
		return php_end(r);
	if (ex & 7)
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	if (php_read_frame(w, r, ex))
		return RUNTIME_ENDED;
	if (!is_delegate)
		r->cursor = r->buffer[SONDE_PHP_EX_PREV / 8];
	if (!r->buffer[SONDE_PHP_EX_FUNC / 8])
		return is_delegate ? runtime_stop(r, SONDE_RUNTIME_STOP_TORN) : php_skip(w, r, php, ex);
	r->state[PHP_RUNNING] = is_delegate ? r->state[PHP_RUNNING] : ex;
	if (r->state[PHP_IS_LEAF] && php_is_being_resumed(w, r, php))
		return r->record.fault ? RUNTIME_ENDED : runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	return php_take(w, r, php, is_delegate);
}
