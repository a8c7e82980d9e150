/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The arm64 part of user_regs.h. The kernel's struct pt_regs begins with the user-visible struct user_pt_regs (asm/ptrace.h). */
#pragma once
#include <stddef.h>

typedef struct user_pt_regs user_regs_t;

#define PSTATE_MODE 0xf     /* exception level and stack pointer: 0 is user code (PSR_MODE_MASK, PSR_MODE_EL0t) */
#define PSTATE_32_BIT 0x10  /* PSR_MODE32_BIT */

static __always_inline bool is_user(const user_regs_t *regs)
{
	return !(regs->pstate & PSTATE_MODE);
}

/* True if the thread with these registers returns to user code. Those of kernel workers have the kernel's mode: copy_thread() in
 * arch/arm64/kernel/process.c. */
static __always_inline bool has_user_stack(const user_regs_t *regs)
{
	return is_user(regs);
}

static __always_inline bool is_64_bit(const user_regs_t *regs)
{
	return !(regs->pstate & PSTATE_32_BIT);
}

/* Puts registers, and where the stack begins, into a deferred record. */
static __always_inline void deferred_take_regs(struct sonde_deferred_record *raw, const user_regs_t *regs)
{
	for (int i = 0; i < WALK_REG_SP; i++)
		raw->regs[i] = regs->regs[i];
	raw->regs[WALK_REG_SP] = regs->sp;
	raw->regs[SONDE_REG_PC] = regs->pc;
	raw->stack_start = regs->sp - SONDE_RED_ZONE_BYTES;
	raw->compat = !is_64_bit(regs);
}

static __always_inline const void *saved_regs(struct task_struct *task)
{
	return (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

static __always_inline const void *saved_regs_of(struct task_struct *task)
{
	return (const void *)bpf_task_pt_regs(task);
}

/* bpf_task_pt_regs gives registers that can be read without a call. */
#define HAS_KNOWN_REGS 1
#define USER_PC(regs) ((regs)->pc)
#define USER_SP(regs) ((regs)->sp)
#define USER_BP(regs) ((regs)->regs[WALK_REG_BP])

/* `number`: a DWARF register number, a constant. */
static __always_inline __u64 user_reg(const user_regs_t *regs, int number)
{
	return number < WALK_REG_SP ? regs->regs[number] : regs->sp;
}

/* The system call that the thread is in; -1 outside of one. It is stored behind orig_x0: arch/arm64/include/asm/ptrace.h. */
static __always_inline __u64 saved_syscall(const void *at, const user_regs_t *saved)
{
	__s32 number;

	if (bpf_probe_read_kernel(&number, sizeof(number), at + sizeof(*saved) + 8))
		return NO_SYSCALL;
	return (__u64)(__s64)number;
}

struct pt_regs___syscall {
	__s32 syscallno;
} __attribute__((preserve_access_index));

static __always_inline __u64 known_syscall(const user_regs_t *regs)
{
	return (__u64)(__s64)((const struct pt_regs___syscall *)regs)->syscallno;
}
