/* SPDX-License-Identifier: Apache-2.0 */
/* code_state: what is known of registers and stack before one instruction of a function, and how an instruction changes it. Private to
 * code_frames. */
#pragma once
#include "cfi/cfi.h"
#include "cfi/x86_code.h"

#define CODE_NR_SLOTS 8

enum code_value_kind {
	CODE_ANY,
	CODE_CFA,     /* the CFA + off */
	CODE_ALIGNED, /* the last aligned sp + off */
	CODE_BP,      /* the initial value of rbp */
	CODE_BX,      /* likewise, of rbx */
	CODE_PLACE,   /* an address of code, off from the function's start */
	CODE_ZERO,
	CODE_CLONE,  /* the number of a system call that creates a thread */
	CODE_CLONED, /* its result */
	CODE_TESTED, /* its result, just compared with zero */
	CODE_CHILD,  /* the result was zero: this is the new thread */
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
	int32_t is_outermost; /* no caller: nothing else is known or needed */
	int32_t is_managed;   /* calls keep no register; the same in all states of a function */
};

struct code_state code_state_at_begin(bool is_outermost);
/* False: the instruction contradicts what a function does. *ret_is_changed: the state has changed. */
MUST_CHECK bool code_state_step(struct code_state *state, const struct x86_code *code, int64_t next, uint64_t vaddr, bool *ret_is_changed);
/* After a call that returned. `is_known`: it removed only its return address from the stack. */
void code_state_call(struct code_state *state, bool is_known);
/* After a conditional jump. True: the path that was taken revealed something. */
bool code_state_branch(struct code_state *state, const struct x86_code *code, bool is_taken);
/* Does the instruction set sp independently of its old value (leave)? Then a later return says nothing about sp before. */
bool code_state_resets_sp(const struct x86_code *code);
/* Leaves in `state` what both have in common. False: they contradict each other. */
MUST_CHECK bool code_state_meet(struct code_state *state, const struct code_state *other);
/* Is the return address where it was at the start, with the caller's rbp and rbx? Managed code need not keep those. */
bool code_state_is_at_begin(const struct code_state *state);
/* Is the target of a jump or call through a register known? */
bool code_state_code(const struct code_state *state, const struct x86_code *code, int64_t *ret_off);
struct sonde_rule code_state_rule(const struct code_state *state, bool by_frame);
