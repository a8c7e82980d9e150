/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* v8: from a frame of V8's code to its caller, x86-64. All of that code that calls keeps rbp as its frame pointer: builtins (in the file,
 * without rows, or in a copy), code of the heap, WebAssembly. At a frame pointer are the saved one, the return address above it, and below
 * it a context or, in frames that are no JavaScript function's, a marker; then the function. At an interrupted instruction rbp may still or
 * again be the caller's: there the instructions tell (walk_emulate).
 *
 * Cost: three reads for each function; for one that is compiled two or three for its code and, if it was there before, one. */
#pragma once
#include "v8/v8_code.h"

#define V8_SLOT_CONTEXT 8 /* bytes below rbp */
#define V8_SLOT_FUNCTION 16
#define V8_SLOT_BYTECODES 32
#define V8_SLOT_OFFSET 40
#define V8_SMI_SHIFT 32
#define V8_REG_AX 0
#define V8_REG_CX 2
#define V8_REG_R11 11
#define V8_REG_DI 5 /* DWARF number: the function at a function's first instruction */
#define V8_MAX_PROLOGUE 64
#define V8_MARKERS_END 128 /* of kinds of frames, times two: 26 has 42 of them (execution/frames.h) */
#define V8_BASELINE_PROLOGUE 40 /* bytes at least up to the instruction behind the call that makes the frame */

/* Stores what the current frame runs in place of its native frame. */
static __always_inline int v8_push(struct walk *w, struct runtime_walk *r, __u64 code, __u32 kind, __u64 where, __u32 cookie)
{
	if (runtime_push_placed(w, r, code, where | (__u64)kind << SONDE_V8_CODE_SHIFT, cookie) != RUNTIME_GOES_ON)
		return walk_stop(w, SONDE_STOP_DEPTH);
	return WALK_GOES_ON;
}

/* The start of the copy of the builtins that pc is in, by its mapping; 0: none. */
WALK_FUNCTION __u64 v8_mapped_builtins(WALK_REF ref, __u64 pc)
{
	struct walk *w = walk_of(ref);

	return w && !walk_find_mapping(w, pc) && w->mapping.block_shift == SONDE_OWNED && !w->mapping.nr_blocks ? w->mapping.base_pc : 0;
}

#define V8_STATE_START 4 /* in a walk's `state`: the last copy that was found by its mapping, and the process's serial */
#define V8_STATE_SERIAL 5

/* The offset of pc in the builtins; all ones: it is in none. */
static __always_inline __u32 v8_builtin(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u64 pc)
{
	__u64 bytes = v->builtins[0].end_pc - v->builtins[0].start_pc, start;
	struct v8_cached *cached;

	for (int i = 0; i < SONDE_V8_COPIES; i++) {
		if (pc - v->builtins[i].start_pc < v->builtins[i].end_pc - v->builtins[i].start_pc)
			return pc - v->builtins[i].start_pc;
	}
	if (r->state[V8_STATE_SERIAL] == v->process.serial && pc - r->state[V8_STATE_START] < bytes)
		return pc - r->state[V8_STATE_START];
	cached = v8_cached(r, pc + !w->exact);
	if (cached && cached->pc == pc + !w->exact && cached->serial == v->process.serial)
		return ~0u; /* in code of the heap */
	start = v8_mapped_builtins(ref_of(w), pc);
	if (!start || pc - start >= bytes)
		return ~0u;
	r->state[V8_STATE_START] = start;
	r->state[V8_STATE_SERIAL] = v->process.serial;
	return pc - start;
}

/* Is an offset in a builtin whose frame is an interpreted function's? A return address may be the first byte of one: deoptimized frames
 * return there. */
static __always_inline int v8_is_entry(const struct sonde_v8 *v, __u32 off)
{
	for (int i = 0; i < SONDE_V8_ENTRIES; i++) {
		if (off - v->entries[i].start < v->entries[i].end - v->entries[i].start)
			return 1;
	}
	return 0;
}

/* An object may just be moved: its first word then leads to where it is now. */
static __always_inline int v8_read_object(struct walk *w, struct runtime_walk *r, __u64 *object, __u32 bytes)
{
	if (!v8_is_pointer(*object) || read_user(w, r->buffer, bytes & 127, *object - SONDE_V8_TAG))
		return -1;
	if (r->buffer[0] & SONDE_V8_TAG)
		return 0;
	*object = r->buffer[0] | SONDE_V8_TAG;
	if (!v8_is_pointer(*object) || read_user(w, r->buffer, bytes & 127, *object - SONDE_V8_TAG))
		return -1;
	return r->buffer[0] & SONDE_V8_TAG ? 0 : -1;
}

/* What names the function of a JSFunction. 0: not known. */
static __always_inline __u64 v8_shared_of(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u64 function)
{
	return function && !v8_read_object(w, r, &function, 40) ? v8_u64(r->buffer, v->function_shared) : 0;
}

/* The same of optimized code, by its deoptimization data: at an interrupted instruction there may be no frame. */
static __always_inline __u64 v8_shared_of_code(struct walk *w, const struct sonde_v8 *v, const struct v8_code *code)
{
	__u64 shared;

	if (code->kind <= v->kind_baseline)
		return 0;
	shared = code->shared;
	if (v->has_wrapper && (!v8_is_pointer(shared) || read_user(w, &shared, sizeof(shared), shared - SONDE_V8_TAG + 8)))
		return 0;
	return shared;
}

/* The identity of the function that *ret_shared names, but for its script's id. 0, or -1. */
static __always_inline int v8_function_words(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u64 *ret_shared,
					     struct sonde_v8_identity *ret_identity)
{
	*ret_identity = (struct sonde_v8_identity){ 0 };
	if (v8_read_object(w, r, ret_shared, v->shared_flags + 8))
		return -1;
	ret_identity->map = r->buffer[0];
	ret_identity->name = v8_u64(r->buffer, v->shared_name);
	ret_identity->script = v8_u64(r->buffer, v->shared_script);
	ret_identity->number = v8_u64(r->buffer, v->shared_flags) >> 32;
	return v8_is_pointer(ret_identity->script) ? 0 : -1;
}

static __always_inline int v8_script_id(struct walk *w, const struct sonde_v8 *v, struct sonde_v8_identity *of)
{
	return read_user(w, &of->script_id, 8, of->script - SONDE_V8_TAG + v->script_id);
}

/* The same with its script's id. */
static __always_inline int v8_function(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u64 *ret_shared,
				       struct sonde_v8_identity *ret_identity)
{
	return v8_function_words(w, r, v, ret_shared, ret_identity) ?: v8_script_id(w, v, ret_identity);
}

static __always_inline int v8_is_same(const struct sonde_v8_identity *a, const struct sonde_v8_identity *b)
{
	return !((a->compilation ^ b->compilation) | (a->code ^ b->code) | (a->data ^ b->data) | (a->map ^ b->map) | (a->name ^ b->name) |
		 (a->script ^ b->script) | (a->number ^ b->number)); /* one branch: the verifier follows each by itself */
}

/* Of a function's code. A compilation's number is never used twice in an isolate: if all else is as it was when the same code was here, so
 * is the script. */
static __always_inline int v8_function_of_code(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, const struct v8_code *code,
					       __u64 *ret_shared, struct sonde_v8_identity *of)
{
	struct v8_cached *cached = v8_cached(r, code->pc);

	if (v8_function_words(w, r, v, ret_shared, of))
		return -1;
	of->code = code->code;
	of->data = code->data;
	of->compilation = code->compilation;
	if (!cached || cached->pc != code->pc || !of->compilation)
		return v8_script_id(w, v, of);
	of->script_id = cached->of.script_id;
	if (cached->serial == v->process.serial && v8_is_same(&cached->of, of))
		return 0;
	if (v8_script_id(w, v, of))
		return -1;
	cached->of = *of;
	return 0;
}

static __always_inline int v8_push_interpreted(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u64 function)
{
	struct sonde_v8_identity *of = v8_identity_of(r);
	__u64 shared = v8_shared_of(w, r, v, function), offset;

	if (walk_peek(w, w->bp - V8_SLOT_OFFSET, &offset))
		return runtime_owner_fault(w, r, w->bp);
	if (v8_function(w, r, v, &shared, of))
		return v8_push(w, r, 0, SONDE_V8_UNKNOWN, 0, 0);
	if (offset << V8_SMI_SHIFT) /* a frame of baseline code: its feedback is there */
		offset = ~0ULL;
	else
		offset = (offset >> V8_SMI_SHIFT) - (v->bytecode_data - SONDE_V8_TAG);
	return v8_push(w, r, shared, SONDE_V8_BYTECODE, (__u32)offset, sonde_v8_cookie(of));
}

/* A frame of code of the heap, with the function in its slot; `function` 0: it has none. */
static __always_inline int v8_push_code(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, const struct v8_code *code,
					__u64 function, __u64 pc)
{
	struct sonde_v8_identity *of = v8_identity_of(r);
	__u64 shared = v8_shared_of_code(w, v, code);

	if (code->kind < v->kind_baseline || code->kind > v->kind_last)
		return v8_push(w, r, 0, SONDE_V8_OTHER, code->kind, 0);
	if (!shared)
		shared = v8_shared_of(w, r, v, function);
	if (v8_function_of_code(w, r, v, code, &shared, of))
		return v8_push(w, r, 0, SONDE_V8_UNKNOWN, 0, 0);
	return v8_push(w, r, shared, code->kind == v->kind_baseline ? SONDE_V8_BASELINE : SONDE_V8_OPTIMIZED, pc, sonde_v8_cookie(of));
}

/* Is the frame at rbp an interpreted function's? */
static __always_inline int v8_is_interpreted(struct walk *w, const struct sonde_v8 *v)
{
	__u64 context, bytecodes, offset, map;

	return !walk_peek(w, w->bp - V8_SLOT_CONTEXT, &context) && context & SONDE_V8_TAG &&
	       !walk_peek(w, w->bp - V8_SLOT_OFFSET, &offset) && !(offset << V8_SMI_SHIFT) &&
	       !walk_peek(w, w->bp - V8_SLOT_BYTECODES, &bytecodes) && v8_is_pointer(bytecodes) &&
	       !read_user(w, &map, sizeof(map), bytecodes - SONDE_V8_TAG) &&
	       v8_is_map(ref_of(w), map, v->bytecodes_type | (__u32)v->map_type << 16);
}

/* The frame that rbp points to: what it runs, in place of the native frame. */
static __always_inline int v8_push_frame(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u32 off, int has_code,
					 const struct v8_code *code, __u64 pc)
{
	__u64 context, function = 0;

	if (walk_peek(w, w->bp - V8_SLOT_CONTEXT, &context) || walk_peek(w, w->bp - V8_SLOT_FUNCTION, &function))
		return runtime_owner_fault(w, r, w->bp);
	if (!(context & SONDE_V8_TAG))
		function = 0; /* a marker */
	if (off != ~0u) {
		if (function && (v8_is_entry(v, off - !w->exact) || v8_is_entry(v, off)))
			return v8_push_interpreted(w, r, v, function);
		return v8_push(w, r, 0, SONDE_V8_BUILTIN, off | (w->exact ? SONDE_V8_EXACT : 0), 0);
	}
	if (!function && context == v->wasm_marker)
		return v8_push(w, r, 0, SONDE_V8_WASM, 0, 0);
	if (!has_code && (context & SONDE_V8_TAG ? !v8_is_pointer(context) : context >= V8_MARKERS_END))
		return runtime_owner_torn(w, r); /* another compiler's code, which may keep anything in rbp */
	if (!has_code)
		return WALK_GOES_ON; /* the native frame says as much */
	/* a copy of the interpreter's entry for each function (--interpreted-frames-native-stack) */
	if (function && (code->kind < v->kind_baseline || code->kind > v->kind_last) && v8_is_interpreted(w, v))
		return v8_push_interpreted(w, r, v, function);
	return v8_push_code(w, r, v, code, function, pc);
}

/* Moves to the caller by the frame pointer. */
static __always_inline int v8_linked(struct walk *w, struct runtime_walk *r)
{
	__u64 pc, bp;

	if (walk_peek(w, w->bp, &bp) || walk_peek(w, w->bp + 8, &pc))
		return runtime_owner_fault(w, r, w->bp);
	if (!walk_is_return(ref_of(w), pc))
		return runtime_owner_torn(w, r);
	walk_return_to(w, pc, w->bp + 16, bp);
	w->linked_frame = w->nr_frames;
	return WALK_GOES_ON;
}

/* The interrupted code has no frame of its own. Its caller is known, `pc` was in it. */
static __always_inline int v8_push_bare(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u32 off, int has_code,
					const struct v8_code *code, __u64 pc, int has_regs)
{
	if (off != ~0u)
		return v8_push(w, r, 0, SONDE_V8_BUILTIN, off | SONDE_V8_EXACT, 0);
	if (!has_code)
		return WALK_GOES_ON;
	return v8_push_code(w, r, v, code, has_regs && pc - code->start < V8_MAX_PROLOGUE ? w->regs[V8_REG_DI] : 0, pc | SONDE_V8_EXACT);
}

#define V8_LOOP_WORDS 16

/* Is the word a return address to the interpreter's loop? */
static __always_inline int v8_is_loop(struct walk *w, const struct sonde_v8 *v, __u64 word, __u64 start)
{
	__u32 off = word - 1 - start, bytes = v->builtins[0].end_pc - v->builtins[0].start_pc;

	if (word - 1 - start >= bytes)
		off = word - 1 - v->builtins[0].start_pc;
	*(volatile __u32 *)&w->emulation.op = off; /* else the verifier follows both ways by themselves */
	return v8_is_entry(v, *(volatile __u32 *)&w->emulation.op) && walk_after_call(ref_of(w), word);
}

/* Interrupted code that an interpreted function's loop runs without a frame of its own: a bytecode's handler, or what it has jumped to. It
 * returns to the loop, by the first such word from sp on, and rbp is the interpreted function's. 0: moved there; -1. */
static __always_inline int v8_to_loop(struct walk *w, const struct sonde_v8 *v, __u64 start)
{
	__u64 word;

	if (!v8_is_interpreted(w, v))
		return -1;
	WALK_ROLLED
	for (int i = 0; i < V8_LOOP_WORDS; i++) {
		__u64 at = w->sp + 8 * i;

		if (at >= w->bp - V8_SLOT_OFFSET || walk_peek(w, at, &word))
			return -1;
		if (!v8_is_loop(w, v, word, start))
			continue;
		w->pc = word;
		w->sp = at + 8;
		w->exact = WALK_RETURN;
		return 0;
	}
	return -1;
}

/* Has the interrupted handler made its own frame? That one returns to the loop, and has a marker once there is room for it. */
static __always_inline int v8_is_handler_linked(struct walk *w, const struct sonde_v8 *v, __u64 start)
{
	__u64 marker = 0, ret;

	if (w->bp < w->sp || w->bp & 7 || walk_peek(w, w->bp + 8, &ret) || !v8_is_loop(w, v, ret, start))
		return 0;
	return w->sp > w->bp - V8_SLOT_CONTEXT || (!walk_peek(w, w->bp - V8_SLOT_CONTEXT, &marker) && !(marker & SONDE_V8_TAG));
}

#define V8_PUSH_BP 0xe5894855 /* push rbp; mov rbp, rsp */

/* Offset in optimized code of the instructions that make its frame; V8_MAX_PROLOGUE: not found. What is before them leaves the stack
 * alone. */
static __always_inline __u32 v8_frame_start(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, const struct v8_code *code)
{
	if (code->kind <= v->kind_baseline || code->kind > v->kind_last || read_user(w, r->buffer, V8_MAX_PROLOGUE, code->start))
		return V8_MAX_PROLOGUE;
	WALK_ROLLED
	for (__u32 i = 0; i < V8_MAX_PROLOGUE - 4; i++) {
		__u64 word = r->buffer[i / 8 & 7] >> i % 8 * 8 | (i % 8 > 4 ? r->buffer[(i / 8 + 1) & 7] << (64 - i % 8 * 8) : 0);

		if ((__u32)word == V8_PUSH_BP)
			return i;
	}
	return V8_MAX_PROLOGUE;
}

/* Interrupted before optimized code has made its frame: its return address is the last that was pushed, or the one before. 0: moved to the
 * caller; -1. */
static __always_inline int v8_to_caller(struct walk *w, __u32 off, __u32 frame_start)
{
	__u64 at = w->sp + (off > frame_start ? 8 : 0), ret;

	if (off > frame_start + 1 || frame_start >= V8_MAX_PROLOGUE || walk_peek(w, at, &ret) || !walk_is_return(ref_of(w), ret))
		return -1;
	walk_return_to(w, ret, at + 8, w->bp);
	return 0;
}

/* Interrupted code whose return address is at sp: a call has put it there, and nothing else is code. 0: moved to the caller; -1. */
static __always_inline int v8_to_caller_at_sp(struct walk *w)
{
	__u64 ret;

	if (walk_peek(w, w->sp, &ret) || !walk_is_return(ref_of(w), ret) || !walk_after_call(ref_of(w), ret))
		return -1;
	walk_return_to(w, ret, w->sp + 8, w->bp);
	return 0;
}

/* Is the interrupted code of the heap behind the place where it makes its frame? (The end is told by emulation.) */
static __always_inline int v8_has_frame(struct walk *w, const struct sonde_v8 *v, const struct v8_code *code, __u32 off, __u32 frame_start)
{
	__u64 bytecodes;

	if (code->kind == v->kind_baseline) /* it calls a builtin that makes it */
		return off >= V8_BASELINE_PROLOGUE || (!walk_peek(w, w->bp - V8_SLOT_BYTECODES, &bytecodes) && bytecodes == code->data);
	return frame_start < V8_MAX_PROLOGUE && off >= frame_start + 4;
}

#define V8_MAX_TOP_WORDS 4

/* lea rsp, [...], with a displacement of at most a byte */
static __always_inline int v8_is_lea_sp(const __u8 *code)
{
	return (code[0] & 0xf8) == 0x48 && code[1] == 0x8d && (code[2] & 0x38) == 0x20 && code[2] < 0x80;
}

/* jg over a ret with a number: 26 has it in its long form. */
static __always_inline int v8_is_jump_over_ret(const __u8 *code)
{
	return (code[0] == 0x7f && code[1] == 3 && code[2] == 0xc2) ||
	       (code[0] == 0x0f && code[1] == 0x8f && code[2] == 3 && !code[3] && !code[4] && !code[5] && code[6] == 0xc2);
}

/* Recognises V8's way to return, once the frame is gone, from any of its instructions on:
 *   [cmp reg, n; jg +3 (of either size); ret m;] pop reg; lea rsp, [reg + ...]; push reg; ret
 * Returns -1: it is something else; 0: the return address is at sp; else the number of the register that has it, plus one. */
WALK_FUNCTION int v8_end(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u8 *code = w ? w->emulation.code : 0;
	__u32 reg;

	if (!w || read_user(w, code, 16, w->pc))
		return -1;
	if (code[0] == 0xc3 || code[0] == 0xc2)
		return 0;
	reg = code[0] == 0x41; /* a prefix */
	if ((code[reg] & 0xf8) == 0x58 && code[0] != 0x5d && v8_is_lea_sp(&code[reg + 1]))
		return 0;
	if (v8_is_jump_over_ret(code) ||
	    ((code[0] & 0xfe) == 0x48 && code[1] == 0x83 && (code[2] & 0xf8) == 0xf8 && v8_is_jump_over_ret(&code[4])))
		return 0;
	/* lea rsp, ...: its length is by its operand; the push of the register is behind it */
	if (v8_is_lea_sp(code))
		reg = 3 + ((code[2] & 7) == 4) + (code[2] >> 6);
	else
		reg = 0;
	if (code[reg & 7] == 0x41 && (code[(reg + 1) & 7] & 0xf8) == 0x50 && code[(reg + 2) & 7] == 0xc3)
		return 1 + 8 + (code[(reg + 1) & 7] & 7);
	if (code[reg & 7] == 0x51 && code[(reg + 1) & 7] == 0xc3)
		return 1 + V8_REG_CX;
	return -1;
}

/* Moves to the caller of interrupted code whose frame is gone, whose rbp is the caller's. 0, or -1. */
static __always_inline int v8_to_caller_at_end(struct walk *w)
{
	int end = v8_end(ref_of(w));
	__u64 ret;

	if (end < 0 || (end > 0 && w->exact != WALK_EXACT) || (!end && walk_peek(w, w->sp, &ret)))
		return -1;
	if (end > 0)
		ret = w->regs[(end - 1) & (WALK_NR_REGS - 1)];
	if (!walk_is_return(ref_of(w), ret))
		return -1;
	walk_return_to(w, ret, w->sp, w->bp);
	return 0;
}

/* Is the frame at rbp that of a function with a script? Then it is not the frame of a builtin that does not run for one. The function's
 * SharedFunctionInfo; 0: no. */
static __always_inline __u64 v8_scripted(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v)
{
	struct sonde_v8_identity *of = v8_identity_of(r);
	__u64 context, function, shared, map;

	if (walk_peek(w, w->bp - V8_SLOT_CONTEXT, &context) || !v8_is_pointer(context) ||
	    walk_peek(w, w->bp - V8_SLOT_FUNCTION, &function) || !v8_is_pointer(function))
		return 0;
	shared = v8_shared_of(w, r, v, function);
	if (v8_function(w, r, v, &shared, of) || read_user(w, &map, sizeof(map), of->script - SONDE_V8_TAG) ||
	    !v8_is_map(ref_of(w), map, v->script_type | (__u32)v->map_type << 16))
		return 0;
	return shared;
}

/* Is `word` a return address in the code of the function whose frame is at rbp? */
static __always_inline int v8_is_of_function(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u64 shared, __u64 word)
{
	struct v8_code *code = v8_code_of(r);
	__u64 bytecodes;

	if (!walk_is_return(ref_of(w), word) || !walk_after_call(ref_of(w), word) || v8_find_code(w, r, v, word, code))
		return 0;
	if (code->kind == v->kind_baseline)
		return !walk_peek(w, w->bp - V8_SLOT_BYTECODES, &bytecodes) && bytecodes == code->data;
	return v8_shared_of_code(w, v, code) == shared;
}

/* A builtin without a frame: it returns to the function whose frame is at rbp, by one of the words at sp. 0: moved there; -1. */
static __always_inline int v8_to_function(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u64 shared)
{
	WALK_ROLLED
	for (int i = 0; i < V8_MAX_TOP_WORDS; i++) {
		__u64 at = w->sp + 8 * i, word;

		if (at >= w->bp - V8_SLOT_FUNCTION || walk_peek(w, at, &word))
			return -1;
		if (!v8_is_of_function(w, r, v, shared, word))
			continue;
		walk_return_to(w, word, at + 8, w->bp);
		return 0;
	}
	return -1;
}

static __always_inline int v8_is_bare(const struct sonde_v8 *v, __u32 off)
{
	WALK_ROLLED
	for (int i = 0; i < SONDE_V8_BARE; i++) {
		if (off - v->bare[i].start < v->bare[i].end - v->bare[i].start)
			return 1;
	}
	return 0;
}

/* From one of these to its caller: the return address is at sp, or in a register while arguments are put below it. Where they have a frame
 * after all, to convert a receiver, only values are there. 0, or -1. */
static __always_inline int v8_to_caller_of_bare(struct walk *w)
{
	__u64 ret;

	if (!v8_to_caller_at_sp(w))
		return 0;
	if (w->exact != WALK_EXACT)
		return -1;
	ret = w->regs[V8_REG_AX];
	if (!walk_is_return(ref_of(w), ret) || !walk_after_call(ref_of(w), ret))
		ret = w->regs[V8_REG_R11];
	if (!walk_is_return(ref_of(w), ret) || !walk_after_call(ref_of(w), ret))
		return -1;
	walk_return_to(w, ret, w->sp, w->bp);
	return 0;
}

/* Where the interrupted code's frame is. */
enum v8_leaf {
	V8_LEAF_LINKED, /* at rbp */
	V8_LEAF_MOVED,  /* it has none, and the walk is at its caller */
	V8_LEAF_UNKNOWN,
};

#define V8_TABLE_TURNS 13 /* halves up to 8,192 builtins */

/* The start of the builtin that an offset is in, by V8's table of them, which is in their order; all ones: not known. `shape`: the number
 * of entries and, in the high half, the size of one. */
WALK_FUNCTION __u32 v8_builtin_start(WALK_REF ref, __u32 off, __u64 table, __u64 shape)
{
	__u32 low = 0, high = shape, place[2] = {};
	struct walk *w = walk_of(ref);

	WALK_ROLLED
	for (int turn = 0; w && turn < V8_TABLE_TURNS && low < high; turn++) {
		__u32 middle = low + (high - low) / 2;

		if (read_user(w, place, sizeof(place), table + middle * (shape >> 32)))
			return ~0u;
		if (off - place[0] < place[1])
			return place[0];
		if (place[0] > off)
			high = middle;
		else
			low = middle + 1;
	}
	return ~0u;
}

#define V8_MAX_AHEAD 128

/* Where the return address is, from sp on, if the interrupted builtin is about to make its frame; -1: it is not seen to. */
WALK_FUNCTION int v8_ahead_of_frame(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u8 *code = w ? (__u8 *)w->emulation.seen[0] : 0;

	if (!w || read_user(w, code, V8_MAX_AHEAD + 4, w->pc - 1))
		return -1;
	WALK_ROLLED
	for (__u32 i = 0; i < V8_MAX_AHEAD; i++) {
		if (code[i] == 0x55 && code[i + 1] == 0x48 && code[i + 2] == 0x89 && code[i + 3] == 0xe5) /* V8_PUSH_BP */
			return i ? 0 : 8;
	}
	return -1;
}

/* Is the word a return address behind a direct call of the builtin whose code up to pc has this many bytes? */
static __always_inline int v8_is_call_of(struct walk *w, __u64 word, __u32 bytes)
{
	return walk_is_return(ref_of(w), word) && walk_called_distance(ref_of(w), word, w->pc) == bytes;
}

/* A builtin that was called directly: its return address is at sp until it makes its frame, then above rbp. Where both words could be it,
 * one is its caller's, or left over. */
static __always_inline enum v8_leaf v8_find_called(struct walk *w, const struct sonde_v8 *v, __u32 off)
{
	__u32 start = v8_builtin_start(ref_of(w), off, v->table, v->nr_builtins | (__u64)v->table_stride << 32), bytes = off - start;
	int ahead = v8_ahead_of_frame(ref_of(w));
	__u64 ret, top;

	if (start == ~0u || w->bp & 7 || w->bp < w->sp || walk_peek(w, w->sp + (ahead == 8 ? 8 : 0), &top) ||
	    walk_peek(w, w->bp + 8, &ret))
		return V8_LEAF_UNKNOWN;
	if (v8_is_call_of(w, ret, bytes))
		return walk_is_return(ref_of(w), top) && walk_after_call(ref_of(w), top) ? V8_LEAF_UNKNOWN : V8_LEAF_LINKED;
	if (ahead < 0 || !v8_is_call_of(w, top, bytes))
		return V8_LEAF_UNKNOWN;
	walk_return_to(w, top, w->sp + (ahead == 8 ? 16 : 8), w->bp);
	return V8_LEAF_MOVED;
}

/* By what the instructions do. */
static __always_inline enum v8_leaf v8_emulate_leaf(struct walk *w)
{
	__u64 pc = w->pc, bp = w->bp, sp = w->sp;
	int exact = w->exact, emulated = walk_emulate(w);

	if (emulated == EMULATE_LINKED)
		return V8_LEAF_LINKED;
	if (emulated != EMULATE_MOVED)
		return V8_LEAF_UNKNOWN;
	if (w->sp != bp + 16 || w->bp == bp)
		return V8_LEAF_MOVED;
	w->pc = pc;
	w->bp = bp;
	w->sp = sp;
	w->exact = exact;
	return V8_LEAF_LINKED;
}

/* In code of the heap: its first instructions make the frame, the last ones remove it. */
static __always_inline enum v8_leaf v8_find_leaf_of_code(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v,
							 const struct v8_code *code)
{
	__u32 frame_start = v8_frame_start(w, r, v, code), off = w->pc - code->start;
	enum v8_leaf leaf;

	if (code->kind < v->kind_baseline || code->kind > v->kind_last) { /* a regular expression's */
		leaf = v8_emulate_leaf(w);
		return leaf == V8_LEAF_UNKNOWN && walk_uses_bp(w) ? V8_LEAF_LINKED : leaf;
	}
	if (!v8_to_caller_at_end(w) || !v8_to_caller(w, off, frame_start))
		return V8_LEAF_MOVED;
	if (code->kind == v->kind_baseline && off < V8_BASELINE_PROLOGUE && !v8_to_caller_at_sp(w)) /* it has not made its frame */
		return V8_LEAF_MOVED;
	return v8_has_frame(w, v, code, off, frame_start) ? V8_LEAF_LINKED : V8_LEAF_UNKNOWN;
}

static __always_inline enum v8_leaf v8_find_leaf_of_builtin(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u32 off)
{
	__u64 start = w->pc - off, bp = w->bp, shared = 0;
	enum v8_leaf leaf;

	if (off >= v->handlers)
		return v8_is_handler_linked(w, v, start) ? V8_LEAF_LINKED : v8_to_loop(w, v, start) ? V8_LEAF_UNKNOWN : V8_LEAF_MOVED;
	if (!v8_to_caller_at_end(w) || (v8_is_bare(v, off) && !v8_to_caller_of_bare(w)))
		return V8_LEAF_MOVED;
	if (off - v->entries[SONDE_V8_LEAVES].start < v->entries[SONDE_V8_LEAVES].end - v->entries[SONDE_V8_LEAVES].start)
		return v8_to_caller_at_sp(w) ? V8_LEAF_LINKED : V8_LEAF_MOVED;
	if (!v8_is_entry(v, off))
		shared = v8_scripted(w, r, v);
	if (shared && !v8_to_function(w, r, v, shared))
		return V8_LEAF_MOVED;
	leaf = v8_emulate_leaf(w);
	if (leaf == V8_LEAF_MOVED && (!shared || w->bp == bp))
		return leaf;
	if (!shared && (leaf == V8_LEAF_LINKED || walk_uses_bp(w)))
		return V8_LEAF_LINKED;
	if (!v8_to_loop(w, v, start))
		return V8_LEAF_MOVED;
	return shared ? V8_LEAF_UNKNOWN : v8_find_called(w, v, off);
}

static __always_inline enum v8_leaf v8_find_leaf(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u32 off, int has_code,
						 const struct v8_code *code)
{
	if (off != ~0u)
		return v8_find_leaf_of_builtin(w, r, v, off);
	return has_code ? v8_find_leaf_of_code(w, r, v, code) : v8_emulate_leaf(w);
}

/* At an interrupted instruction. */
static __always_inline int v8_leaf(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u32 off)
{
	int has_regs = w->exact == WALK_EXACT, has_code;
	struct v8_code *code = v8_code_of(r);
	__u64 pc = w->pc;
	enum v8_leaf leaf;

	has_code = off == ~0u && !v8_find_code(w, r, v, pc, code);
	walk_note_lost(w);
	leaf = v8_find_leaf(w, r, v, off, has_code, code);
	if (leaf == V8_LEAF_LINKED) {
		if (w->bp & 7 || w->bp < w->sp || w->bp - w->sp > WALK_MAX_FP_FRAME_BYTES)
			return runtime_owner_torn(w, r);
		if (v8_push_frame(w, r, v, off, has_code, code, pc | SONDE_V8_EXACT))
			return WALK_ENDED;
		return v8_linked(w, r);
	}
	if (v8_push_bare(w, r, v, off, has_code, code, pc, has_regs))
		return WALK_ENDED;
	return leaf == V8_LEAF_MOVED ? WALK_GOES_ON : runtime_owner_torn(w, r);
}

static __always_inline int v8_frame(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v)
{
	struct v8_code *code = v8_code_of(r);
	__u32 off = v8_builtin(w, r, v, w->pc - !w->exact);
	int has_code;

	if (off != ~0u && !w->exact)
		off++;
	if (w->exact)
		return v8_leaf(w, r, v, off);
	if (w->bp & 7 || w->bp < w->sp || w->bp - w->sp > WALK_MAX_FP_FRAME_BYTES)
		return runtime_owner_torn(w, r);
	has_code = off == ~0u && !v8_find_code(w, r, v, w->pc, code);
	if (v8_push_frame(w, r, v, off, has_code, code, w->pc))
		return WALK_ENDED;
	return v8_linked(w, r);
}
