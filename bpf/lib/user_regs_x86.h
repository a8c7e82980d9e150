/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* user_regs.h's part that knows x86-64. The saved registers have the layout of the user-visible struct pt_regs (asm/ptrace.h). */
#pragma once
#include <stddef.h>

typedef struct pt_regs user_regs_t;

static __always_inline bool is_user(const user_regs_t *regs)
{
	return regs->cs & 3;
}

/* Registers into a raw record, and where its stack begins. */
static __always_inline void raw_take_regs(struct sonde_raw_record *raw, const user_regs_t *regs)
{
	raw->regs[0] = regs->rax;
	raw->regs[1] = regs->rdx;
	raw->regs[2] = regs->rcx;
	raw->regs[3] = regs->rbx;
	raw->regs[4] = regs->rsi;
	raw->regs[5] = regs->rdi;
	raw->regs[6] = regs->rbp;
	raw->regs[7] = regs->rsp;
	raw->regs[8] = regs->r8;
	raw->regs[9] = regs->r9;
	raw->regs[10] = regs->r10;
	raw->regs[11] = regs->r11;
	raw->regs[12] = regs->r12;
	raw->regs[13] = regs->r13;
	raw->regs[14] = regs->r14;
	raw->regs[15] = regs->r15;
	raw->regs[SONDE_REG_PC] = regs->rip;
	raw->stack_start = regs->rsp - SONDE_RED_ZONE_BYTES;
	raw->compat = (__u16)regs->cs != USER_CS_64;
}

/* What the entry code saved of the current thread: at the far end of the kernel stack. Where to the bpf_task_pt_regs (Linux 5.15) is not there: arch/x86/include/asm/page_64_types.h of 5.10 makes
 * the stack twice as large for KASAN, whose kernels are known by a field of theirs; TOP_OF_KERNEL_STACK_PADDING is 0 (asm/thread_info.h). */
static __always_inline const void *regs_at_stack_end(struct task_struct *task)
{
	return BPF_CORE_READ(task, stack) + (bpf_core_field_exists(task->kasan_depth) ? 2 * KERNEL_STACK_BYTES : KERNEL_STACK_BYTES) - sizeof(user_regs_t);
}

static __always_inline const void *saved_regs(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return regs_at_stack_end(task);
}

/* The same of any thread, where the verifier knows what `task` is. */
static __always_inline const void *saved_regs_of(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (const void *)bpf_task_pt_regs(task);
	return regs_at_stack_end(task);
}

/* The number of the system call that the thread is in. Interrupts and faults leave -1 there. */
static __always_inline __u64 saved_syscall(const void *at, const user_regs_t *saved)
{
	return saved->orig_rax;
}
