/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* beam: from a frame of Erlang code to its caller, x86-64. In BeamAsm's code rsp is the top of the Erlang process's own stack. A frame is a
 * number of slots and the return address above them. Slots of a function that has called are terms, whose two lowest bits are never 0
 * (erl_term.h), so the first word with such bits is the return address: the runtime itself finds frames this way. With frame pointers
 * (+JPfp) rbp links the frames. The outermost one returns to `normal_exit`; behind it the walk goes on at process_main, on the thread's
 * stack. C code that Erlang code calls is on the thread's stack from a fixed place on: the scheduler's registers.
 *
 * Cost: about 15 reads for each function's name, none of them of the stack. */
#pragma once
#include "beam/beam_leaf.h"

#define BEAM_SCAN_FEW 16
#define BEAM_RETURN_MASK 3 /* of return addresses that the runtime recognises; those of calls of shared code that does not look at the stack
			    * may be any (safe_fragment_call), and the caller's slots may be empty */
#define BEAM_MAX_SCANS 66 /* 1,024 slots of a frame */
#define BEAM_ALIGNMENT 64 /* of the registers: a cache line */
#define BEAM_MAX_MAIN_OFF 128
#define BEAM_MAX_C_BYTES (64 << 10)

/* In a walk's `state`, while it is on an Erlang stack: where the thread's stack goes on, the frame that this was said for, and the walk. */
#define BEAM_STATE_THREAD 0
#define BEAM_STATE_SP 1
#define BEAM_STATE_WALK 2

static __always_inline int beam_push(struct walk *w, struct runtime_walk *r, const struct beam_function *f, __u64 header, __u32 kind)
{
	__u64 where = (w->pc & SONDE_BEAM_PC_MASK) | (w->exact ? SONDE_BEAM_EXACT : 0) | (__u64)kind << SONDE_BEAM_CODE_SHIFT;
	__u64 code = 0;
	__u32 cookie = 0;

	if (kind == SONDE_BEAM_FUNCTION) {
		code = (f->module & 0xffffffff) | f->function << 32;
		where |= (f->arity & 0xff) << SONDE_BEAM_ARITY_SHIFT;
		cookie = sonde_beam_cookie(header, f->info, f->next);
	}
	if (runtime_push_placed(w, r, code, where, cookie) != RUNTIME_GOES_ON)
		return walk_stop(w, SONDE_STOP_DEPTH);
	return WALK_GOES_ON;
}

/* Is `pc` behind the call that runs process_main's code: of process_main, which jumps there, or in it, through a register? What an earlier
 * call left there is neither. */
WALK_FUNCTION int is_beam_main_return(WALK_REF ref, __u64 pc, __u64 main_function)
{
	struct walk *w = walk_of(ref);
	__u8 code[8] = {};

	if (!w || read_user(w, code, sizeof(code), pc - sizeof(code)))
		return 0;
	if (pc - main_function < BEAM_MAX_MAIN_OFF)
		return code[6] == 0xff && (code[7] & 0xf8) == 0xd0;
	return code[3] == 0xe8 &&
	       pc + (__u64)(__s64)(__s32)(code[4] | code[5] << 8 | code[6] << 16 | (__u32)code[7] << 24) == main_function;
}

/* From process_main to its caller. It aligns the stack, so the return address is at one of four places. It never returns, and keeps no
 * register for its caller. */
static __always_inline int beam_leave_main(struct walk *w, struct runtime_walk *r, const struct sonde_beam *b, __u64 thread_sp)
{
	__u64 at = thread_sp + b->main_bytes + 8, pc;

	if (thread_sp & (BEAM_ALIGNMENT - 1))
		return runtime_owner_torn(w, r);
	WALK_ROLLED
	for (int i = 0; i < BEAM_ALIGNMENT / 16; i++, at += 16) {
		if (walk_peek(w, at, &pc))
			return runtime_owner_fault(w, r, at);
		if (!is_beam_main_return(ref_of(w), pc, b->main_function))
			continue;
		walk_return_to(w, pc, at + 8, b->caller_frame ? at + 8 + b->caller_frame : 0);
		return WALK_GOES_ON;
	}
	return runtime_owner_torn(w, r);
}

/* Moves to the caller on the Erlang stack, whose return address is at `at`. */
static __always_inline int beam_return(struct walk *w, struct runtime_walk *r, const struct sonde_beam *b, __u64 at, __u64 bp,
				       __u64 thread_sp)
{
	__u64 pc;

	if (at & 7 || walk_peek(w, at, &pc))
		return runtime_owner_fault(w, r, at);
	if (pc == b->normal_exit) {
		walk_return_to(w, b->main.start_pc + 1, thread_sp, 0);
		return WALK_GOES_ON;
	}
	if (walk_find(ref_of(w), pc - 1) < WALK_OWNED || !walk_after_call(ref_of(w), pc))
		return runtime_owner_torn(w, r);
	walk_return_to(w, pc, at + 8, bp);
	r->state[BEAM_STATE_THREAD] = thread_sp;
	r->state[BEAM_STATE_SP] = w->sp;
	r->state[BEAM_STATE_WALK] = w->nr_walks;
	return WALK_GOES_ON;
}

/* The first of a few words that is no term; 0: none; 1: not readable. */
WALK_FUNCTION __u64 beam_scan_few(WALK_REF ref, __u64 at)
{
	struct walk *w = walk_of(ref);
	__u64 word;

	if (!w)
		return 1;
	w->nr_looks++;
	WALK_ROLLED
	for (int i = 0; i < BEAM_SCAN_FEW; i++, at += 8) {
		if (walk_peek(w, at, &word))
			return 1;
		if (!(word & 3))
			return at;
	}
	return 0;
}

/* Where the first word is that is no term, from `at` on; 0: not found. */
WALK_FUNCTION __u64 beam_scan(WALK_REF ref, __u64 at)
{
	WALK_ROLLED
	for (int i = 0; i < BEAM_MAX_SCANS; i++) {
		__u64 found = beam_scan_few(ref, at + i * BEAM_SCAN_FEW * 8);

		if (found)
			return found == 1 ? 0 : found;
	}
	return 0;
}

/* A frame whose function has called, on the Erlang stack. */
static __always_inline int beam_linked(struct walk *w, struct runtime_walk *r, const struct sonde_beam *b, __u64 thread_sp)
{
	__u64 at, bp = 0;

	if (b->has_frames) {
		if (w->bp & 7 || w->bp < w->sp || w->bp - w->sp > WALK_MAX_FP_FRAME_BYTES || walk_peek(w, w->bp, &bp))
			return runtime_owner_torn(w, r);
		return beam_return(w, r, b, w->bp + 8, bp, thread_sp);
	}
	at = beam_scan(ref_of(w), w->sp);
	return at ? beam_return(w, r, b, at, 0, thread_sp) : runtime_owner_torn(w, r);
}

/* Where sp of the Erlang stack is, for a frame that is on the thread's stack; 0: not known. */
static __always_inline __u64 beam_stack(struct walk *w, struct runtime_walk *r, const struct sonde_beam *b, __u64 thread_sp, __u32 base)
{
	__u64 scheduler, registers, process = 0, stop = 0;

	if (base == BEAM_BASE_BP)
		return w->bp;
	scheduler = runtime_root(w, r, &b->process.root);
	if (!scheduler || read_user(w, &registers, sizeof(registers), scheduler) || registers != thread_sp ||
	    read_user(w, &process, sizeof(process), scheduler + b->current_process) || !process ||
	    read_user(w, &stop, sizeof(stop), process + b->stop))
		return 0;
	return stop;
}

/* A frame whose return address only its instructions tell: interrupted, or on the thread's stack, where it has called C code. */
static __always_inline int beam_by_code(struct walk *w, struct runtime_walk *r, const struct sonde_beam *b, __u64 header, __u64 thread_sp,
					int on_thread)
{
	const struct walk_emulate *a = &w->emulation;
	__u64 sp, at, bp = w->bp;
	int is_unsure;

	if (!beam_follow(w, b, header, on_thread)) {
		/* C that has the stack's top may look at the stack, so its slots are filled in */
		if (b->has_frames || !on_thread || w->emulation.deepest != BEAM_BASE_STOP)
			return runtime_owner_torn(w, r);
		sp = beam_stack(w, r, b, thread_sp, BEAM_BASE_STOP);
		at = sp ? beam_scan(ref_of(w), sp) : 0;
		return at ? beam_return(w, r, b, at, bp, thread_sp) : runtime_owner_torn(w, r);
	}
	is_unsure = a->now.is_unsure;
	sp = a->now.held != BEAM_BASE_SP && !a->now.has_left ? beam_stack(w, r, b, thread_sp, a->now.held) : w->sp;
	if (!sp)
		return runtime_owner_torn(w, r);
	at = sp + a->now.sp;
	if (b->has_frames) {
		if (a->now.has_left && walk_peek(w, w->bp, &bp))
			return runtime_owner_fault(w, r, w->bp);
		at = a->now.has_left ? w->bp + 8 : at;
		is_unsure &= !a->now.has_left;
	}
	if (is_unsure && beam_scan(ref_of(w), sp) != at)
		return runtime_owner_torn(w, r);
	return beam_return(w, r, b, at, bp, thread_sp);
}

static __always_inline int beam_frame(struct walk *w, struct runtime_walk *r, const struct sonde_beam *b)
{
	__u64 pc = w->pc - !w->exact, thread_sp = w->exact ? w->regs[BEAM_BX] - b->registers : w->sp, header = 0;
	int is_erlang = !w->exact && r->state[BEAM_STATE_SP] == w->sp && r->state[BEAM_STATE_WALK] == w->nr_walks, found;
	struct beam_function *f = (struct beam_function *)&r->buffer[0];

	walk_note_lost(w);
	if (w->exact == WALK_EXACT_PC)
		return runtime_owner_torn(w, r);
	if (pc - b->main.start_pc < b->main.end_pc - b->main.start_pc) {
		if (beam_push(w, r, f, 0, SONDE_BEAM_MAIN))
			return WALK_ENDED;
		return beam_leave_main(w, r, b, thread_sp);
	}
	found = beam_find(w, b, pc, &header, f);
	if (found < 0)
		return runtime_owner_torn(w, r);
	if (found && w->exact && is_beam_veneer(ref_of(w), header, b->functions, f->next))
		found = 0;
	if (beam_push(w, r, f, header, found ? SONDE_BEAM_FUNCTION : SONDE_BEAM_SHARED))
		return WALK_ENDED;
	if (is_erlang && !(w->pc & BEAM_RETURN_MASK))
		return beam_linked(w, r, b, r->state[BEAM_STATE_THREAD]);
	if (is_erlang)
		return beam_by_code(w, r, b, header, r->state[BEAM_STATE_THREAD], 0);
	return beam_by_code(w, r, b, header, thread_sp, !w->exact || thread_sp - w->sp < BEAM_MAX_C_BYTES);
}
