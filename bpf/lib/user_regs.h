/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The user registers of the current thread: from the event's context or, when it struck in the kernel, from where the entry code
 * saved them. */
#pragma once
#include <stdbool.h>

#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../compat/kernel.h"
#include "unwind.h"

#ifdef SONDE_ARM64
#include "user_regs_arm64.h"
#else
#include "user_regs_x86.h"
#endif

static __always_inline bool user_mode(const struct bpf_perf_event_data *ctx)
{
	return is_user(&ctx->regs);
}

/* Puts the user registers into the walk. False: this thread has no user side now. */
static __always_inline bool user_regs(struct bpf_perf_event_data *ctx, struct task_struct *task, struct walk *w)
{
	user_regs_t saved;

	w->in_syscall = !user_mode(ctx);
	if (user_mode(ctx)) {
		walk_enter_regs(w, &ctx->regs);
		return true;
	}
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD || !BPF_CORE_READ(task, mm)) /* no mm: it is exiting */
		return false;
	if (bpf_probe_read_kernel(&saved, sizeof(saved), saved_regs(task)))
		return false;
	if (!is_user(&saved)) /* an io_uring worker: has the memory, but was never in user code */
		return false;
	walk_enter_regs(w, &saved);
	return true;
}

/* The number of the system call that the thread is in. */
static __always_inline __u64 user_syscall(struct task_struct *task)
{
	user_syscall_t number;

	if (bpf_probe_read_kernel(&number, sizeof(number), saved_regs(task) + USER_SYSCALL_OFF))
		return ~0ULL;
	return number;
}
