/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* v8: from a frame of V8's code to its caller, x86-64. All of that code that calls keeps rbp as its frame pointer: builtins (in the file,
 * without rows, or in a copy), code of the heap, WebAssembly. At a frame pointer are the saved one, the return address above it, and below
 * it a context or, in frames that are no JavaScript function's, a marker; then the function. At an interrupted instruction rbp may still or
 * again be the caller's: there the instructions tell (walk_emulate).
 *
 * Cost: three reads for each function, two or three more for its code where it is compiled. */
#pragma once
#include "v8_code.h"

#define V8_SLOT_CONTEXT 8 /* bytes below rbp */
#define V8_SLOT_FUNCTION 16
#define V8_SLOT_BYTECODES 32
#define V8_SLOT_OFFSET 40
#define V8_SMI_SHIFT 32
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

/* What names the function of a JSFunction, and its identity. 0, or -1. */
static __always_inline int v8_function(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u64 function,
				       __u64 *ret_shared, struct sonde_v8_identity *ret_identity)
{
	*ret_identity = (struct sonde_v8_identity){ 0 };
	if (v8_read_object(w, r, &function, 40))
		return -1;
	*ret_shared = v8_u64(r->buffer, v->function_shared);
	if (v8_read_object(w, r, ret_shared, v->shared_flags + 8))
		return -1;
	ret_identity->map = r->buffer[0];
	ret_identity->name = v8_u64(r->buffer, v->shared_name);
	ret_identity->script = v8_u64(r->buffer, v->shared_script);
	ret_identity->number = v8_u64(r->buffer, v->shared_flags) >> 32;
	if (!v8_is_pointer(ret_identity->script))
		return -1;
	return read_user(w, &ret_identity->script_id, 8, ret_identity->script - SONDE_V8_TAG + v->script_id);
}

static __always_inline int v8_push_interpreted(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u64 function)
{
	struct sonde_v8_identity *of = v8_identity_of(r);
	__u64 shared, offset;

	if (walk_peek(w, w->bp - V8_SLOT_OFFSET, &offset))
		return runtime_owner_fault(w, r, w->bp);
	if (v8_function(w, r, v, function, &shared, of))
		return v8_push(w, r, 0, SONDE_V8_UNKNOWN, 0, 0);
	offset = (offset >> V8_SMI_SHIFT) - (v->bytecode_data - SONDE_V8_TAG);
	return v8_push(w, r, shared, SONDE_V8_BYTECODE, (__u32)offset, sonde_v8_cookie(of));
}

/* A frame of code of the heap, with the function in its slot; `function` 0: it has none. */
static __always_inline int v8_push_code(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, const struct v8_code *code,
					__u64 function, __u64 pc)
{
	struct sonde_v8_identity *of = v8_identity_of(r);
	__u64 shared;

	if (code->kind < v->kind_baseline || code->kind > v->kind_last)
		return v8_push(w, r, 0, SONDE_V8_OTHER, code->kind, 0);
	if (!function || v8_function(w, r, v, function, &shared, of))
		return v8_push(w, r, 0, SONDE_V8_UNKNOWN, 0, 0);
	of->code = code->code;
	of->data = code->data;
	of->compilation = code->compilation;
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

/* Is the interrupted code of the heap behind the place where it makes its frame? (The end is told by emulation.) */
static __always_inline int v8_has_frame(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, const struct v8_code *code,
					__u64 pc)
{
	__u32 off = pc - code->start;

	if (code->kind == v->kind_baseline) /* it calls a builtin that makes it */
		return off >= V8_BASELINE_PROLOGUE;
	if (code->kind < v->kind_baseline || code->kind > v->kind_last || off < 4 || read_user(w, r->buffer, V8_MAX_PROLOGUE, code->start))
		return 0;
	WALK_ROLLED
	for (__u32 i = 0; i < V8_MAX_PROLOGUE - 4; i++) {
		__u64 word = r->buffer[i / 8 & 7] >> i % 8 * 8 | (i % 8 > 4 ? r->buffer[(i / 8 + 1) & 7] << (64 - i % 8 * 8) : 0);

		if ((__u32)word == V8_PUSH_BP)
			return off >= i + 4;
	}
	return 0;
}

/* Where the interrupted code's frame is. */
enum v8_leaf {
	V8_LEAF_LINKED, /* at rbp */
	V8_LEAF_MOVED,  /* it has none, and the walk is at its caller */
	V8_LEAF_UNKNOWN,
};

static __always_inline enum v8_leaf v8_find_leaf(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u32 off, int has_code,
						 const struct v8_code *code)
{
	__u64 pc = w->pc, bp = w->bp, sp = w->sp;
	int emulated, exact = w->exact;

	if (off != ~0u && off >= v->handlers)
		return v8_is_handler_linked(w, v, pc - off) ? V8_LEAF_LINKED : v8_to_loop(w, v, pc - off) ? V8_LEAF_UNKNOWN : V8_LEAF_MOVED;
	emulated = walk_emulate(w);
	if (emulated == EMULATE_LINKED)
		return V8_LEAF_LINKED;
	if (emulated == EMULATE_MOVED) {
		if (w->sp != bp + 16 || w->bp == bp)
			return V8_LEAF_MOVED;
		w->pc = pc;
		w->bp = bp;
		w->sp = sp;
		w->exact = exact;
		return V8_LEAF_LINKED;
	}
	if (off != ~0u)
		return v8_to_loop(w, v, pc - off) ? V8_LEAF_UNKNOWN : V8_LEAF_MOVED;
	return has_code && v8_has_frame(w, r, v, code, pc) ? V8_LEAF_LINKED : V8_LEAF_UNKNOWN;
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
