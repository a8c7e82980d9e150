/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk_rule: from a frame to its caller by a row. */
#pragma once
#include "walk_arch.h"

static __always_inline int walk_cfa(struct walk *w, const struct sonde_rule *rule, __u64 *ret_cfa)
{
	__u64 off = (__u64)(__s64)rule->cfa_off, word;

	if (is_sp_lost(w) &&
	    (rule->cfa_kind == SONDE_CFA_SP || rule->cfa_kind == SONDE_CFA_DEREF_SP || rule->cfa_kind == SONDE_CFA_DEREF_TWICE))
		return walk_stop(w, SONDE_STOP_BAD_RULE);
	switch (rule->cfa_kind) {
	case SONDE_CFA_SP:
		*ret_cfa = w->sp + off;
		return WALK_GOES_ON;
	case SONDE_CFA_BP:
		*ret_cfa = w->bp + off;
		return WALK_GOES_ON;
	case SONDE_CFA_PLT:
		*ret_cfa = w->sp + off + ((w->pc & 15) >= rule->cfa_reg ? 8 : 0);
		return WALK_GOES_ON;
	case SONDE_CFA_REG:
		if (w->exact != WALK_EXACT && !(w->follows_bx == WALK_BX_KNOWN && rule->cfa_reg == WALK_REG_BX))
			return walk_stop(w, SONDE_STOP_BAD_RULE);
		walk_note_reg(w, rule->cfa_reg);
		*ret_cfa = w->regs[rule->cfa_reg & (WALK_NR_REGS - 1)] + off;
		return WALK_GOES_ON;
	case SONDE_CFA_DEREF_SP:
	case SONDE_CFA_DEREF_BP:
		if (walk_word(w, (rule->cfa_kind == SONDE_CFA_DEREF_SP ? w->sp : w->bp) + off, &word))
			return walk_stop(w, SONDE_STOP_READ_FAULT);
		*ret_cfa = word + (__u64)(__s64)rule->cfa_add;
		return WALK_GOES_ON;
	case SONDE_CFA_DEREF_TWICE:
		if (walk_word(w, w->sp + off, &word) || walk_word(w, word + rule->cfa_reg, &word))
			return walk_stop(w, SONDE_STOP_READ_FAULT);
		*ret_cfa = word + (__u64)(__s64)rule->cfa_add;
		return WALK_GOES_ON;
	}
	return walk_stop(w, SONDE_STOP_TABLE);
}

/* 0, or -1: cannot be read. */
static __always_inline int walk_restore_bx(struct walk *w, __u64 cfa, const struct sonde_rule *rule)
{
	w->follows_bx = WALK_BX_LOST;
	if (rule->rbx_off == SONDE_RBX_LOST)
		return 0;
	if (walk_word(w, cfa + (__u64)(__s64)rule->rbx_off, &w->regs[WALK_REG_BX]))
		return -1;
	w->follows_bx = WALK_BX_KNOWN;
	return 0;
}

static __always_inline int walk_needs_bx(const struct walk *w, const struct sonde_rule *rule)
{
#ifdef SONDE_ARM64
	return 0;
#else
	return rule->cfa_kind == SONDE_CFA_REG && rule->cfa_reg == WALK_REG_BX && w->exact != WALK_EXACT;
#endif
}

/* The return address of a frame. */
static __always_inline int walk_return_address(struct walk *w, const struct sonde_rule *rule, __u64 cfa, __u64 *ret_pc)
{
	if (rule->ra_kind == SONDE_RA_REG) {
		if (w->exact != WALK_EXACT)
			return walk_stop(w, SONDE_STOP_BAD_RULE);
		walk_note_reg(w, rule->ra_off);
		*ret_pc = w->regs[rule->ra_off & (WALK_NR_REGS - 1)];
	} else if (walk_word(w, cfa + (__u64)(__s64)rule->ra_off, ret_pc)) {
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	}
	*ret_pc = code_pc(*ret_pc);
	return WALK_GOES_ON;
}

/* OCaml's functions call C on another stack, which may be above theirs. The C side marks its frame as a signal frame; the OCaml side keeps
 * its stack in rbx. */
static __always_inline int walk_may_leave_stack(const struct sonde_rule *rule)
{
	return rule->is_signal || rule->cfa_kind == SONDE_CFA_REG;
}

static __always_inline int walk_rule(struct walk *w, const struct sonde_rule *rule)
{
	__u64 cfa, pc, bp = w->bp;

	if (walk_needs_bx(w, rule) && !walk_again_with_bx(ref_of(w)))
		return WALK_GOES_ON;
	if (walk_cfa(w, rule, &cfa))
		return WALK_ENDED;
	if (cfa <= w->sp && !walk_may_leave_stack(rule) &&
	    !(cfa == w->sp && rule->ra_kind == SONDE_RA_REG)) /* a leaf may have no frame at all */
		return walk_stop(w, SONDE_STOP_NO_PROGRESS);
	if (rule->bp_kind == SONDE_BP_CFA || rule->bp_kind == SONDE_BP_BP) {
		if (walk_word(w, (rule->bp_kind == SONDE_BP_CFA ? cfa : w->bp) + (__u64)(__s64)rule->bp_off, &bp))
			return walk_stop(w, SONDE_STOP_READ_FAULT);
	} else if (rule->bp_kind == SONDE_BP_UNDEFINED) {
		bp = 0;
	}
	if (walk_return_address(w, rule, cfa, &pc))
		return WALK_ENDED;
	if (w->follows_bx && rule->rbx_off && walk_restore_bx(w, cfa, rule))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	if (!pc)
		return walk_stop(w, is_stack_top(w, cfa) ? SONDE_STOP_COMPLETE : SONDE_STOP_NO_CALL);
	w->pc = pc;
	w->sp = cfa;
	w->bp = bp;
	w->exact = rule->is_signal && !walk_after_call(ref_of(w), pc) ? WALK_EXACT_PC : WALK_RETURN;
	return WALK_GOES_ON;
}
