/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The user registers of the current thread: from the event's context or, if the event struck in the kernel, from where the entry code saved
 * them. */
#pragma once
#include <stdbool.h>

#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../compat/kernel.h"
#include "../walk/unwind.h"

#define NO_SYSCALL (~0ULL)

#ifdef SONDE_ARM64
#include "user_regs_arm64.h"
#else
#include "user_regs_x86.h"
#endif

static __always_inline bool user_mode(const struct bpf_perf_event_data *ctx)
{
	return is_user(&ctx->regs);
}

static __always_inline void enter_regs(struct walk *w, struct sonde_deferred_record *raw, const user_regs_t *regs)
{
	deferred_take_regs(raw, regs);
	for (int i = 0; i < WALK_NR_REGS; i++)
		w->regs[i] = raw->regs[i];
	w->pc = raw->regs[SONDE_REG_PC];
	w->sp = raw->regs[WALK_REG_SP];
	w->bp = raw->regs[WALK_REG_BP];
	w->compat = raw->compat;
}

/* Puts the user registers that the kernel saved at `at` on entry into the walk, and into the header of a deferred record. False: they are
 * not those of user code. */
static __always_inline bool saved_user_regs(const void *at, struct walk *w, struct sonde_deferred_record *raw)
{
	user_regs_t saved;

	w->in_syscall = 1;
	if (bpf_probe_read_kernel(&saved, sizeof(saved), at))
		return false;
	if (!has_user_stack(&saved))
		return false;
	enter_regs(w, raw, &saved);
	w->syscall = saved_syscall(at, &saved);
	return true;
}

/* The same for a thread that may be a kernel thread, or exiting and without memory. False: it has no user side now. */
static __always_inline bool user_regs(struct task_struct *task, const void *at, struct walk *w, struct sonde_deferred_record *raw)
{
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD || !BPF_CORE_READ(task, mm))
		return false;
	return saved_user_regs(at, w, raw);
}

/* The same at a tick, which may have struck in user code. */
static __always_inline bool tick_regs(struct bpf_perf_event_data *ctx, struct task_struct *task, struct walk *w,
				      struct sonde_deferred_record *raw)
{
	if (!user_mode(ctx))
		return user_regs(task, saved_regs(task), w, raw);
	w->in_syscall = 0;
	w->syscall = NO_SYSCALL;
	enter_regs(w, raw, &ctx->regs);
	return true;
}
