/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the instructions, the signal frame and the registers of a machine have to tell:
 *
 *   walk_after_call(ref, pc)      does a call instruction end at pc?
 *   walk_frameless(ref)           in code without rows, at an interrupted instruction: 0: the function has its frame; WALK_FRAMELESS: it
 *                                 has none, moved to the
 *                                 caller; WALK_UNSURE
 *   walk_returns_at_once(ref)     has the function at pc, behind its call, no frame pointer, and nothing to do but to return? 1: moved to
 *                                 the caller
 *   walk_emulate(w)                 follows the code from pc on until the function returns: EMULATE_MOVED to the caller by what it does to
 *                                   the stack; EMULATE_LINKED: its frame
 *                                 pointer leads there; EMULATE_WRONG: it would go to what is no return address, or cannot be read;
 *                                 EMULATE_UNKNOWN
 *   walk_is_outermost(ref)        may a function in code without rows, behind its call, be the outermost one, which says so by a zero for
 *                                 its frame pointer?
 *   walk_signal(ref)              from the code behind a handler to what was interrupted
 *   walk_is_sigreturn(ref)        is pc that code? Told by its instructions, where no row tells
 *   walk_ends_process(ref)        is the last thing that the code at pc does a call that does not return?
 *   walk_link_of(ref, ret)        what the call before `ret` leads to: the low word of the address of a function that keeps a frame
 *                                 pointer, in more than 32 bits;
 *                                 WALK_LINK_NONE: one that does not; WALK_LINK_ANY: not to be told
 *   is_stack_top(cfa)             may a return address of 0 stand below?
 *   code_pc(word)                 the address in what was saved as a return address
 */
#pragma once
#include "walk_table.h"

#define WALK_LINK_ANY 0
#define WALK_LINK_NONE (-1ULL)
#define WALK_FRAMELESS 1
#define WALK_UNSURE 2
#define EMULATE_UNKNOWN 0
#define EMULATE_MOVED 1
#define EMULATE_LINKED 2
#define EMULATE_WRONG 3
#define EMULATE_FOUND (1u << 0)
#define EMULATE_BY_BP (1u << 1)    /* counted from rbp, else from sp */
#define EMULATE_RET_SHIFT 2        /* where the return address is, in words */
#define EMULATE_SLOT_SHIFT 16      /* how many words below it the caller's rbp is; 0: in rbp */
#define EMULATE_OFF_MASK 0x3fffu
#define EMULATE_JUMPED (1u << 30)  /* by a way that jumps behind a call */
#define EMULATE_NO_CODE (1u << 31) /* without EMULATE_FOUND: the code at pc could not be read */
#define EMULATE_IF_LINKED (1u << 31) /* with EMULATE_FOUND: so it is if rbp points to where the caller's is found, else that is not known */

WALK_FUNCTION int walk_after_call(WALK_REF ref, __u64 pc);

/* Does a call lead there? */
WALK_FUNCTION int walk_is_return(WALK_REF ref, __u64 pc)
{
	struct walk *w = walk_of(ref);

	return w && walk_find(ref_of(w), pc - 1) != WALK_NO_MAPPING && walk_after_call(ref_of(w), pc);
}
