/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The user registers of the current thread: from the event's context or, when it struck in the kernel, from where the entry code
 * saved them. x86-64. The saved registers have the layout of the user-visible struct pt_regs (asm/ptrace.h). */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../compat/kernel.h"
#include "unwind.h"

static __always_inline bool user_mode(const struct bpf_perf_event_data *ctx)
{
	return ctx->regs.cs & 3;
}

static __always_inline void walk_enter_regs(struct walk *w, const struct pt_regs *regs)
{
	w->pc = regs->rip;
	w->sp = regs->rsp;
	w->bp = regs->rbp;
	w->regs[0] = regs->rax;
	w->regs[1] = regs->rdx;
	w->regs[2] = regs->rcx;
	w->regs[3] = regs->rbx;
	w->regs[4] = regs->rsi;
	w->regs[5] = regs->rdi;
	w->regs[8] = regs->r8;
	w->regs[9] = regs->r9;
	w->regs[10] = regs->r10;
	w->regs[11] = regs->r11;
	w->regs[12] = regs->r12;
	w->regs[13] = regs->r13;
	w->regs[14] = regs->r14;
	w->regs[15] = regs->r15;
	w->compat = (__u16)regs->cs != USER_CS_64;
}

/* Registers into a raw record, and where its stack begins. */
static __always_inline void raw_take_regs(struct sonde_raw_record *raw, const struct pt_regs *regs)
{
	const __u64 by_number[SONDE_NR_REGS] = { regs->rax, regs->rdx, regs->rcx, regs->rbx, regs->rsi, regs->rdi, regs->rbp, regs->rsp, regs->r8,
						 regs->r9,  regs->r10, regs->r11, regs->r12, regs->r13, regs->r14, regs->r15, regs->rip };

	for (int i = 0; i < SONDE_NR_REGS; i++)
		raw->regs[i] = by_number[i];
	raw->stack_start = regs->rsp - SONDE_RED_ZONE_BYTES;
	raw->compat = (__u16)regs->cs != USER_CS_64;
}

/* What the entry code saved: at the far end of the kernel stack. Where to the bpf_task_pt_regs (Linux 5.15) is not there: arch/x86/include/asm/page_64_types.h of 5.10 makes
 * the stack twice as large for KASAN, whose kernels are known by a field of theirs; TOP_OF_KERNEL_STACK_PADDING is 0 (asm/thread_info.h). */
static __always_inline const void *saved_regs(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return BPF_CORE_READ(task, stack) + (bpf_core_field_exists(task->kasan_depth) ? 2 * KERNEL_STACK_BYTES : KERNEL_STACK_BYTES) - sizeof(struct pt_regs);
}

/* Puts the user registers into the walk. False: this thread has no user side now. */
static __always_inline bool user_regs(struct bpf_perf_event_data *ctx, struct task_struct *task, struct walk *w)
{
	struct pt_regs saved;

	if (user_mode(ctx)) {
		walk_enter_regs(w, &ctx->regs);
		return true;
	}
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD || !BPF_CORE_READ(task, mm)) /* no mm: it is exiting */
		return false;
	if (bpf_probe_read_kernel(&saved, sizeof(saved), saved_regs(task)))
		return false;
	if (!(saved.cs & 3)) /* an io_uring worker: has the memory, but was never in user code */
		return false;
	walk_enter_regs(w, &saved);
	return true;
}

/* The number of the system call that the thread is in. */
static __always_inline __u64 user_syscall(struct task_struct *task)
{
	__u64 number;

	if (bpf_probe_read_kernel(&number, sizeof(number), saved_regs(task) + offsetof(struct pt_regs, orig_rax)))
		return ~0ULL;
	return number;
}
