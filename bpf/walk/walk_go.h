/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk_go: the walk where a Go program changes stacks: from the thread's own (g0) to a goroutine's and, where C called Go, back. Facts:
 * Go's src/runtime/asm_amd64.s and src/runtime/runtime2.go (struct g, struct m), 1.16 to 1.27. Offsets that differ between these versions
 * are in the rule: user space takes them from the program's code. A broken chain of pointers (a word that cannot be read, or that leads to
 * no code behind a call) ends the stack with a mark. */
#pragma once
#include "walk_rule.h"

/* struct runtime.g: stack.hi, m, sched.sp, sched.pc; struct runtime.m: g0. */
#define GO_G_STACK_HI 8
#define GO_G_M 48
#define GO_G_SCHED_SP 56
#define GO_G_SCHED_PC 64
#define GO_M_G0 0

#ifdef SONDE_ARM64
#define GO_TLS_BASE(w) 0ULL /* g is in a register there */
#else
#define GO_TLS_BASE(w) user_tls_base(w)
#endif

static __always_inline int go_word(struct walk *w, __u64 at, __u64 *ret_word)
{
	if (read_user(w, ret_word, sizeof(*ret_word), at))
		return -1;
	walk_note_word(w, at, *ret_word);
	return 0;
}

/* The thread's struct m. The current g may be a goroutine or g0: both lead to it. */
static __always_inline int go_m(struct walk *w, const struct sonde_rule *rule, __u64 *ret_m)
{
	__u64 tls = GO_TLS_BASE(w), g;

	walk_note_tls(w, tls);
	if (!tls || go_word(w, tls + (__u64)(__s64)rule->tls_off, &g) || !g)
		return -1;
	return go_word(w, g + GO_G_M, ret_m);
}

/* Where the goroutine's stack was left. 0; 1: no goroutine runs on this thread; -1. */
static __always_inline int go_curg(struct walk *w, const struct sonde_rule *rule, __u64 *ret_g, __u64 *ret_sp)
{
	__u64 m;

	if (go_m(w, rule, &m) || go_word(w, m + (__u64)(__s64)rule->curg_off, ret_g))
		return -1;
	if (!*ret_g)
		return 1;
	return go_word(w, *ret_g + GO_G_SCHED_SP, ret_sp);
}

/* What runtime.morestack and runtime.mcall call on g0 does not return: the goroutine continues at g.sched. It is the caller until the
 * scheduler has taken it from the thread. After that m.curg is none, or the goroutine that the scheduler has chosen. */
static __always_inline int walk_left_goroutine(struct walk *w, const struct sonde_rule *rule)
{
	__u64 g, sp, pc, bp, caller;
	int err = go_curg(w, rule, &g, &sp);

	if (err == 1 || w->go_in_scheduler)
		return walk_stop(w, SONDE_STOP_COMPLETE);
	if (!err && rule->cfa_kind == SONDE_SWITCH_MCALL) {
		if (go_word(w, w->sp + (__u64)(__s64)rule->g_slot, &caller))
			return walk_stop(w, SONDE_STOP_READ_FAULT);
		if (caller != g)
			return walk_stop(w, SONDE_STOP_COMPLETE);
	}
	if (err || go_word(w, g + GO_G_SCHED_PC, &pc) || go_word(w, g + (__u64)(__s64)rule->sched_bp, &bp))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	if (!pc)
		return walk_stop(w, SONDE_STOP_BAD_RULE);
	walk_return_to(w, pc, sp, bp);
	return WALK_GOES_ON;
}

/* The goroutine's sp under runtime.asmcgocall. Its stack may have moved since C was called: only the depth is still valid. */
static __always_inline int go_under_asmcgocall(struct walk *w, const struct sonde_rule *rule, __u64 *ret_sp)
{
	__u64 g, depth, hi = 0;

	if (go_word(w, w->sp + (__u64)(__s64)rule->g_slot, &g) || go_word(w, w->sp + (__u64)(__s64)rule->depth_slot, &depth))
		return -1;
	if (!g) { /* it was already on such a stack */
		*ret_sp = depth;
		return 0;
	}
	if (go_word(w, g + GO_G_STACK_HI, &hi))
		return -1;
	*ret_sp = hi - depth;
	return 0;
}

/* The sp of runtime.cgocallback on g0. g0.sched has the innermost one; each has saved the one before it at its own sp. */
static __always_inline int go_under_cgocallback(struct walk *w, const struct sonde_rule *rule, __u64 *ret_sp)
{
	__u64 m, g0;

	if (w->go_g0_sp) {
		if (go_word(w, w->go_g0_sp, ret_sp))
			return -1;
	} else if (go_m(w, rule, &m) || go_word(w, m + GO_M_G0, &g0) || go_word(w, g0 + GO_G_SCHED_SP, ret_sp)) {
		return -1;
	}
	w->go_g0_sp = *ret_sp;
	return 0;
}

/* The sp that the frame's CFA is relative to. 0 or -1. */
static __always_inline int go_frame_sp(struct walk *w, const struct sonde_rule *rule, __u64 *ret_sp)
{
	__u64 g;

	switch (rule->cfa_kind) {
	case SONDE_SWITCH_BY_BP:
		*ret_sp = w->bp;
		return 0;
	case SONDE_SWITCH_INJECTED:
	case SONDE_SWITCH_SCHEDULER:
		*ret_sp = w->sp;
		return 0;
	case SONDE_SWITCH_TO_CURG:
		return go_curg(w, rule, &g, ret_sp) ? -1 : 0;
	case SONDE_SWITCH_ASMCGOCALL:
		return go_under_asmcgocall(w, rule, ret_sp);
	case SONDE_SWITCH_CGOCALLBACK:
		return go_under_cgocallback(w, rule, ret_sp);
	}
	return -1;
}

/* Leaves a frame by a rule of kind SONDE_RULE_KIND_SWITCH. */
WALK_FUNCTION int walk_switch(WALK_REF ref, __u32 number)
{
	struct walk *w = walk_of(ref);
	__u64 sp = 0, cfa, pc, bp;
	const struct sonde_rule *rule;

	if (!w)
		return WALK_ENDED;
	rule = rule_at(w, number);
	if (!rule)
		return walk_stop(w, SONDE_STOP_TABLE);
	if (++w->nr_switches > WALK_MAX_SWITCHES)
		return walk_stop(w, SONDE_STOP_DEPTH);
	if (rule->cfa_kind == SONDE_SWITCH_MORESTACK || rule->cfa_kind == SONDE_SWITCH_MCALL)
		return walk_left_goroutine(w, rule);
	if (rule->cfa_kind == SONDE_SWITCH_SCHEDULER)
		w->go_in_scheduler = 1;
	if (go_frame_sp(w, rule, &sp))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	cfa = sp + (__u64)(__s64)rule->cfa_off;
	bp = w->bp;
	if ((rule->bp_kind == SONDE_BP_CFA && walk_word(w, cfa - 16, &bp)) || walk_word(w, cfa - 8, &pc))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	if (!pc)
		return walk_stop(w, SONDE_STOP_BAD_RULE);
	walk_return_to(w, pc, cfa, bp);
	if (rule->cfa_kind == SONDE_SWITCH_INJECTED)
		w->exact = WALK_EXACT_PC;
	return WALK_GOES_ON;
}
