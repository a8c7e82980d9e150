/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of a thread that waits: TASK_*; 0: it runs or is runnable. */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../compat/kernel.h"

static __always_inline __u16 task_state(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state & ~TASK_FREEZABLE;
	return ((struct task_struct___state *)task)->state;
}
