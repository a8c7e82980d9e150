/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* user_regs.h's part that knows arm64: the kernel's struct pt_regs begins with the user-visible struct user_pt_regs (asm/ptrace.h). */
#pragma once
#include <stddef.h>

typedef struct user_pt_regs user_regs_t;

#define PSTATE_MODE 0xf     /* exception level and stack pointer: 0 is user code (PSR_MODE_MASK, PSR_MODE_EL0t) */
#define PSTATE_32_BIT 0x10  /* PSR_MODE32_BIT */

static __always_inline bool is_user(const user_regs_t *regs)
{
	return !(regs->pstate & PSTATE_MODE);
}

static __always_inline void walk_enter_regs(struct walk *w, const user_regs_t *regs)
{
	w->pc = regs->pc;
	w->sp = regs->sp;
	w->bp = regs->regs[WALK_REG_BP];
	for (int i = 0; i < WALK_REG_SP; i++)
		w->regs[i] = regs->regs[i];
	w->regs[WALK_REG_SP] = regs->sp;
	w->compat = (regs->pstate & PSTATE_32_BIT) != 0;
}

/* Registers into a raw record, and where its stack begins. */
static __always_inline void raw_take_regs(struct sonde_raw_record *raw, const user_regs_t *regs)
{
	for (int i = 0; i < WALK_REG_SP; i++)
		raw->regs[i] = regs->regs[i];
	raw->regs[WALK_REG_SP] = regs->sp;
	raw->regs[SONDE_REG_PC] = regs->pc;
	raw->stack_start = regs->sp - SONDE_RED_ZONE_BYTES;
	raw->compat = (regs->pstate & PSTATE_32_BIT) != 0;
}

static __always_inline const void *saved_regs(struct task_struct *task)
{
	return (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

typedef __s32 user_syscall_t;
#define USER_SYSCALL_OFF (sizeof(user_regs_t) + 8) /* behind orig_x0: arch/arm64/include/asm/ptrace.h */
