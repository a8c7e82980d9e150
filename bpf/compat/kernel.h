/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's types that our programs touch, each with only the fields that they touch. CO-RE finds the real offsets in the running
 * kernel's BTF when a program is loaded, so the build needs no kernel headers and no vmlinux.h. Field names: linux/sched.h. */
#pragma once
#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct;

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
};

struct thread_struct { /* of a thread in user code: its thread pointer */
#ifdef SONDE_ARM64
	struct {
		unsigned long tp_value; /* as the thread was last switched from */
	} uw;
#else
	unsigned long fsbase;
#endif
};

struct task_struct {
	void *stack; /* its low end */
	unsigned int flags; /* PF_* */
	int tgid;
	__u64 start_time; /* CLOCK_MONOTONIC, ns */
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	char comm[16];
	struct thread_struct thread;
	unsigned int kasan_depth; /* with CONFIG_KASAN alone */
};

#pragma clang attribute pop

#define KERNEL_STACK_BYTES 16384 /* THREAD_SIZE of x86-64 without KASAN */
#define PF_KTHREAD 0x00200000 /* linux/sched.h: a kernel thread, there is no user side */
#define USER_CS_64 0x33       /* __USER_CS, arch/x86/include/asm/segment.h; 32-bit code runs with 0x23 */
