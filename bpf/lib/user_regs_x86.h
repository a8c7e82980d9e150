/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The x86-64 part of user_regs.h. The saved registers have the layout of the user-visible struct pt_regs (asm/ptrace.h). */
#pragma once
#include <stddef.h>

typedef struct pt_regs user_regs_t;

static __always_inline bool is_user(const user_regs_t *regs)
{
	return regs->cs & 3;
}

/* True if the thread with these registers returns to user code. Kernel workers (io_uring's, vhost's) are copies of a user thread that never
 * return there: copy_thread() in arch/x86/kernel/process.c writes 0 to both, or to all (Linux 5.12). */
static __always_inline bool has_user_stack(const user_regs_t *regs)
{
	return is_user(regs) && regs->rip | regs->rsp;
}

/* A processor with FRED stores the type of the event in the upper bits of ss, which are 0 elsewhere: struct fred_ss in
 * arch/x86/include/asm/ptrace.h, EVENT_TYPE_EXTINT in asm/trapnr.h (Linux 6.9). */
#define FRED_INTERRUPT 0

static __always_inline bool is_fred(__u64 ss)
{
	return ss >> 16;
}

static __always_inline __u32 fred_event(__u64 ss)
{
	return ss >> 48 & 15;
}

static __always_inline bool is_64_bit(const user_regs_t *regs)
{
	return (__u16)regs->cs == USER_CS_64;
}

/* Puts registers, and where the stack begins, into a deferred record. */
static __always_inline void deferred_take_regs(struct sonde_deferred_record *raw, const user_regs_t *regs)
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
	raw->compat = !is_64_bit(regs);
}

/* The registers of the current thread that the entry code saved: at the far end of the kernel stack. For kernels without bpf_task_pt_regs
 * (Linux 5.15). arch/x86/include/asm/page_64_types.h of 5.10 makes the stack twice as large for KASAN; a KASAN kernel is known by a field
 * of its own. TOP_OF_KERNEL_STACK_PADDING is 0 (asm/thread_info.h). */
static __always_inline const void *regs_at_stack_end(struct task_struct *task)
{
	return BPF_CORE_READ(task, stack) + (bpf_core_field_exists(task->kasan_depth) ? 2 * KERNEL_STACK_BYTES : KERNEL_STACK_BYTES) -
	       sizeof(user_regs_t);
}

static __always_inline const void *saved_regs(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return regs_at_stack_end(task);
}

/* The same for any thread, where the verifier knows the type of `task`. */
static __always_inline const void *saved_regs_of(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (const void *)bpf_task_pt_regs(task);
	return regs_at_stack_end(task);
}

/* bpf_task_pt_regs gives registers that can be read without a call, where the verifier knows the type of the task. */
#define HAS_KNOWN_REGS bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)
#define USER_PC(regs) ((regs)->rip)
#define USER_SP(regs) ((regs)->rsp)
#define USER_BP(regs) ((regs)->rbp)

/* `number`: a DWARF register number, a constant. */
static __always_inline __u64 user_reg(const user_regs_t *regs, int number)
{
	switch (number) {
	case 0: return regs->rax;
	case 1: return regs->rdx;
	case 2: return regs->rcx;
	case 3: return regs->rbx;
	case 4: return regs->rsi;
	case 5: return regs->rdi;
	case 6: return regs->rbp;
	case 7: return regs->rsp;
	case 8: return regs->r8;
	case 9: return regs->r9;
	case 10: return regs->r10;
	case 11: return regs->r11;
	case 12: return regs->r12;
	case 13: return regs->r13;
	case 14: return regs->r14;
	default: return regs->r15;
	}
}

/* The system call that the thread is in. Interrupts and faults leave -1 there. */
static __always_inline __u64 saved_syscall(const void *at, const user_regs_t *saved)
{
	return saved->orig_rax;
}

static __always_inline __u64 known_syscall(const user_regs_t *regs)
{
	return regs->orig_rax;
}
