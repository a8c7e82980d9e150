/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The user registers of the current thread at an event of the scheduler. */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../compat/kernel.h"
#include "scratch.h"
#include "user_regs.h"

/* Puts them into the walk; 0: it has no user side. */
WALK_FUNCTION int take_regs(__u32 cpu)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *s = scratch_of(cpu);

	if (!s || task->flags & PF_KTHREAD || !task->mm) /* as user_regs, but by the verifier's knowledge of what a task is */
		return 0;
	return saved_user_regs(saved_regs((void *)task), &s->walk, &s->raw);
}
