/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The system call of the current thread at `sys_enter` and `sys_exit` (tp_btf): its number, its arguments, whether it is one of 32 bits.
 * At the exit the arguments are still in the saved registers. */
#pragma once
#include <stdbool.h>

#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../compat/files.h"
#include "../compat/kernel.h"

#ifdef SONDE_ARM64

struct pt_regs___call {
	__u64 regs[31];
	__u64 pstate;
	__u64 orig_x0; /* the first argument: regs[0] has the result at the exit */
	__s32 syscallno;
} __attribute__((preserve_access_index));

static __always_inline bool is_compat_call(const void *regs)
{
	return ((const struct pt_regs___call *)regs)->pstate & 0x10; /* PSR_MODE32_BIT */
}

/* The same, where the verifier knows the type of the task. */
static __always_inline bool is_compat_task_call(struct task_struct *task, const void *regs)
{
	return is_compat_call(regs);
}

static __always_inline __u64 call_number(const void *regs)
{
	return (__u64)(__s64)((const struct pt_regs___call *)regs)->syscallno;
}

/* `number`: a constant. */
static __always_inline __u64 call_argument(const void *regs, bool compat, int number)
{
	const struct pt_regs___call *call = regs;

	return number ? call->regs[number] : call->orig_x0;
}

/* A copy of the registers, and what is in it. */
struct call_regs {
	__u64 regs[34]; /* asm/ptrace.h: regs[31], sp, pc, pstate */
	__u64 orig_x0;
	__s32 syscallno;
	__u32 unused;
};

static __always_inline __u64 call_regs_number(const struct call_regs *regs)
{
	return (__u64)(__s64)regs->syscallno;
}

/* `number`: a constant. */
static __always_inline __u64 call_regs_argument(const struct call_regs *regs, bool compat, int number)
{
	return number ? regs->regs[number] : regs->orig_x0;
}

#else

/* A 64-bit program may make 32-bit system calls, too (int $0x80), so the code segment does not decide. */
static __always_inline bool is_compat_call(const void *regs)
{
	struct task_struct___files *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
}

/* The same, where the verifier knows the type of the task. */
static __always_inline bool is_compat_task_call(struct task_struct *task, const void *regs)
{
	return ((struct task_struct___files *)task)->thread_info.status & TS_COMPAT;
}

static __always_inline __u64 call_number(const void *regs)
{
	return ((const struct pt_regs *)regs)->orig_rax;
}

static __always_inline __u64 call_argument_64(const struct pt_regs *regs, int number)
{
	switch (number) {
	case 0:
		return regs->rdi;
	case 1:
		return regs->rsi;
	case 2:
		return regs->rdx;
	case 3:
		return regs->r10;
	case 4:
		return regs->r8;
	default:
		return regs->r9;
	}
}

static __always_inline __u64 call_argument_32(const struct pt_regs *regs, int number)
{
	switch (number) {
	case 0:
		return (__u32)regs->rbx;
	case 1:
		return (__u32)regs->rcx;
	case 2:
		return (__u32)regs->rdx;
	case 3:
		return (__u32)regs->rsi;
	case 4:
		return (__u32)regs->rdi;
	default:
		return (__u32)regs->rbp;
	}
}

/* `number`: a constant. */
static __always_inline __u64 call_argument(const void *regs, bool compat, int number)
{
	return compat ? call_argument_32(regs, number) : call_argument_64(regs, number);
}

/* A copy of the registers, and what is in it. */
struct call_regs {
	struct pt_regs regs;
};

static __always_inline __u64 call_regs_number(const struct call_regs *regs)
{
	return regs->regs.orig_rax;
}

/* `number`: a constant. */
static __always_inline __u64 call_regs_argument(const struct call_regs *regs, bool compat, int number)
{
	return call_argument(&regs->regs, compat, number);
}

#endif
