/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The user registers of the current thread at an event of the scheduler. */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../compat/kernel.h"
#include "scratch.h"
#include "user_regs.h"

/* The registers where the kernel saved them, without a copy. NULL: the thread has no user side, or this kernel does not give them. */
static __always_inline const user_regs_t *user_regs_of(struct task_struct *task)
{
	const user_regs_t *regs;

	if (!HAS_KNOWN_REGS || task->flags & PF_KTHREAD || !task->mm)
		return 0;
	regs = (const void *)bpf_task_pt_regs(task);
	return has_user_stack(regs) ? regs : 0;
}

/* One register at a time, so that the compiler does not collect them on the stack. */
static __always_inline void enter_known_regs(struct walk *w, struct sonde_deferred_record *deferred, const user_regs_t *regs)
{
	w->in_syscall = 1;
#pragma clang loop unroll(full)
	for (int i = 0; i < WALK_NR_REGS; i++) {
		deferred->regs[i] = w->regs[i] = user_reg(regs, i);
		barrier();
	}
	deferred->regs[SONDE_REG_PC] = w->pc = USER_PC(regs);
	w->sp = USER_SP(regs);
	w->bp = USER_BP(regs);
	deferred->stack_start = w->sp - SONDE_RED_ZONE_BYTES;
	deferred->compat = w->compat = !is_64_bit(regs);
}

/* Where the registers have to be copied: into memory that is free before a stack is taken. */
WALK_FUNCTION int copy_regs(__u32 slot)
{
	struct scratch *s = scratch_of(slot);
	const user_regs_t *copy;
	const void *at;

	if (!s)
		return 0;
	at = saved_regs((void *)bpf_get_current_task_btf());
	copy = (const void *)s->stack.frames;
	if (bpf_probe_read_kernel(s->stack.frames, sizeof(*copy), at) || !has_user_stack(copy))
		return 0;
	enter_known_regs(&s->walk, &s->deferred, copy);
	s->walk.syscall = saved_syscall(at, copy);
	return 1;
}

/* Puts the user registers into the walk; 0: the thread has no user side. */
WALK_FUNCTION int take_regs(__u32 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *s = scratch_of(slot);
	const user_regs_t *regs;

	if (!s || task->flags & PF_KTHREAD || !task->mm) /* as user_regs, but with a typed task */
		return 0;
	if (!HAS_KNOWN_REGS)
		return copy_regs(slot);
	regs = user_regs_of(task);
	if (!regs)
		return 0;
	enter_known_regs(&s->walk, &s->deferred, regs);
	s->walk.syscall = known_syscall(regs);
	return 1;
}
