/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* user_regs.h's part that knows x86-64. The saved registers have the layout of the user-visible struct pt_regs (asm/ptrace.h). */
#pragma once
#include <stddef.h>

typedef struct pt_regs user_regs_t;

static __always_inline bool is_user(const user_regs_t *regs)
{
	return regs->cs & 3;
}

static __always_inline void walk_enter_regs(struct walk *w, const user_regs_t *regs)
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
static __always_inline void raw_take_regs(struct sonde_raw_record *raw, const user_regs_t *regs)
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
	return BPF_CORE_READ(task, stack) + (bpf_core_field_exists(task->kasan_depth) ? 2 * KERNEL_STACK_BYTES : KERNEL_STACK_BYTES) - sizeof(user_regs_t);
}

typedef __u64 user_syscall_t;
#define USER_SYSCALL_OFF offsetof(user_regs_t, orig_rax)
