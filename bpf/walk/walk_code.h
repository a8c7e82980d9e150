/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk_code: what the instructions, the signal frame and the registers of a machine provide:
 *
 *   walk_after_call(ref, pc)   does a call instruction end at pc?
 *   walk_frameless(ref)
 *       at an interrupted instruction in code without rows. 0: the function has its frame; WALK_FRAMELESS: it has none, moved to the
 *       caller; WALK_UNSURE
 *   walk_returns_at_once(ref)
 *       does the function at pc, after a call, have no frame pointer and only return? 1: moved to the caller
 *   walk_emulate(w)
 *       emulates the code from pc on until the function returns. EMULATE_MOVED: to the caller, by what the code does to the stack;
 *       EMULATE_LINKED: its frame pointer leads there; EMULATE_WRONG: the code leads to a word that is no return address, or cannot be
 *       read; EMULATE_UNKNOWN
 *   walk_uses_bp(w)
 *       after walk_emulate: does the code from pc on address memory by rbp, as it was at pc?
 *   walk_is_outermost(ref)
 *       may a function in code without rows, after a call, be the outermost one, with a frame pointer of zero?
 *   walk_signal(ref)           from the code behind a handler to what was interrupted
 *   walk_is_sigreturn(ref)     is pc at that code? By its instructions, where there is no row
 *   walk_ends_process(ref)     does the code at pc end with a call that does not return?
 *   walk_link_of(ref, ret)
 *       the function that the call before `ret` leads to. If it keeps a frame pointer: the low word of its address, with bit 32 set;
 *       WALK_LINK_NONE: it keeps none; WALK_LINK_ANY: not known
 *   is_stack_top(w, cfa)       may a return address of 0 be below this?
 *   code_pc(word)              the address in a saved return address */
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
#define EMULATE_BY_BP (1u << 1)    /* relative to rbp, else to sp */
#define EMULATE_RET_SHIFT 2        /* offset of the return address, in words */
#define EMULATE_SLOT_SHIFT 16      /* how many words below it the caller's rbp is; 0: in rbp */
#define EMULATE_OFF_MASK 0x3fffu
#define EMULATE_JUMPED (1u << 30)  /* the path jumped after a call */
#define EMULATE_NO_CODE (1u << 31) /* without EMULATE_FOUND: the code at pc could not be read */
/* With EMULATE_FOUND: valid only if rbp points to the slot where the caller's rbp is found; else nothing is known. */
#define EMULATE_IF_LINKED (1u << 31)

WALK_FUNCTION int walk_after_call(WALK_REF ref, __u64 pc);

/* Does a call lead to pc? In a runtime's own code that is for its program to say. */
WALK_FUNCTION int walk_is_return(WALK_REF ref, __u64 pc)
{
	struct walk *w = walk_of(ref);
	__u32 rule = w ? walk_find(ref_of(w), pc - 1) : WALK_NO_MAPPING;

	return rule != WALK_NO_MAPPING && (rule >= WALK_OWNED || walk_after_call(ref_of(w), pc));
}
