/* SPDX-License-Identifier: Apache-2.0 */
/* code_state: what is known of registers and stack before one instruction of a function, and what an instruction makes of it. Private to
 * code_frames. */
#pragma once
#include "cfi/cfi.h"
#include "cfi/x86_code.h"

#define CODE_NR_SLOTS 8

enum code_value_kind {
	CODE_ANY,
	CODE_CFA,     /* the CFA + off */
	CODE_ALIGNED, /* where sp was when it was aligned last, + off */
	CODE_BP,      /* what was in rbp at the begin */
	CODE_BX,      /* likewise */
	CODE_PLACE,   /* code, off from the function's begin */
	CODE_ZERO,
	CODE_CLONE,  /* the number of the system call that makes a thread */
	CODE_CLONED, /* what it gave: */
	CODE_TESTED, /* whether that is zero was asked just now */
	CODE_CHILD,  /* it was: this is the new thread */
};

struct code_value {
	int32_t kind, off;
};

struct code_slot {
	struct code_value at, value; /* at: CODE_CFA or CODE_ALIGNED. value: CODE_BP, CODE_BX or CODE_CFA; CODE_ANY: an empty slot */
};

struct code_state {
	struct code_value regs[16]; /* as instructions number them */
	struct code_slot slots[CODE_NR_SLOTS];
	int32_t is_outermost; /* nobody called: nothing else is known, nor needed */
};

struct code_state code_state_at_begin(bool is_outermost);
/* False: the instruction contradicts what a function does. *ret_is_changed: the state is another now. */
MUST_CHECK bool code_state_step(struct code_state *state, const struct x86_code *code, int64_t next, uint64_t vaddr, bool *ret_is_changed);
/* After a call that came back, `is_known`: and took nothing else off the stack than its return address. */
void code_state_call(struct code_state *state, bool is_known);
/* After a conditional jump. True: which way was gone told something. */
bool code_state_branch(struct code_state *state, const struct x86_code *code, bool is_taken);
/* Is sp set to what it does not depend on (leave)? A return behind it says nothing of sp before. */
bool code_state_resets_sp(const struct x86_code *code);
/* Leaves in `state` what both know. False: they contradict each other. */
MUST_CHECK bool code_state_meet(struct code_state *state, const struct code_state *other);
/* Where the function returns to is where it was at the begin, with the caller's rbp and rbx. */
bool code_state_is_at_begin(const struct code_state *state);
/* Is it known where a jump or call through a register leads? */
bool code_state_code(const struct code_state *state, const struct x86_code *code, int64_t *ret_off);
struct sonde_rule code_state_rule(const struct code_state *state, bool by_frame);
