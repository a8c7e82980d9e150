/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's types that the programs use, each with only the fields that they use. CO-RE finds the real offsets in the running kernel's
 * BTF when a program is loaded, so the build needs no kernel headers and no vmlinux.h. Field names: linux/sched.h. */
#pragma once
#include "../abi/types.h"

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct;

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
};

struct thread_struct { /* the thread pointer of a thread in user code */
#ifdef SONDE_ARM64
	struct {
		unsigned long tp_value; /* as of the thread's last switch away */
	} uw;
#else
	unsigned long fsbase;
#endif
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
	int level;                  /* 0: the root */
	struct cgroup *ancestors[]; /* by level, itself the last; Linux 6.1 */
};

struct cgroup___ids { /* before Linux 6.1 */
	int level;
	__u64 ancestor_ids[];
};

struct css_set {
	struct cgroup *dfl_cgrp; /* of cgroup v2 */
};

struct sched_info { /* the scheduler's own account, by the clock of struct rq; empty without CONFIG_SCHED_INFO */
	unsigned long pcount;             /* how often the thread was given a CPU */
	unsigned long long run_delay;     /* ns on queues, in all */
	unsigned long long last_arrival;  /* when the thread came onto the CPU */
	unsigned long long last_queued;   /* when it began to wait; 0: it does not; set anew when it moves to another CPU's queue */
};

struct rq;

struct cfs_rq {
	unsigned int h_nr_running;
	struct rq *rq; /* with CONFIG_FAIR_GROUP_SCHED */
};

struct cfs_rq___queued { /* Linux 6.13: some queued threads sleep already, and are only dequeued later */
	unsigned int h_nr_queued;
	unsigned int h_nr_runnable;
};

struct rq {
	unsigned int nr_running;
	struct cfs_rq cfs;
	__u64 clock;
};

struct sched_entity {
	__u64 sum_exec_runtime; /* ns on CPUs, up to the last switch or tick */
	struct cfs_rq *cfs_rq;  /* with CONFIG_FAIR_GROUP_SCHED: the queue of the thread's CPU, whatever its class */
};

struct percpu_counter {
	__s64 count; /* without what CPUs have added and not passed on yet */
};

struct mm_struct {
	unsigned long start_stack; /* where argc is on the stack of the process's first thread */
	struct task_struct *owner; /* with CONFIG_MEMCG */
	struct percpu_counter rss_stat[4]; /* file, anonymous, swap, shared; in pages */
};

struct mm_rss_stat { /* before Linux 6.2 */
	__s64 count[4];
};

struct mm_struct___counts {
	struct mm_rss_stat rss_stat;
};

struct return_instance {
	unsigned long stack;          /* user address: the stack pointer at the function's entry */
	unsigned long orig_ret_vaddr; /* the function's return address */
	struct return_instance *next; /* the thread's next outer one */
};

struct uprobe_task {
	struct return_instance *return_instances; /* the innermost */
};

struct task_struct {
	void *stack; /* its low end */
	unsigned int flags; /* PF_* */
	unsigned int __state; /* Linux 5.14 */
	int on_cpu;
	int exit_state;
	int static_prio; /* 120 is nice 0 */
	unsigned int rt_priority, policy; /* SCHED_* */
	int pid, tgid;
	struct task_struct *real_parent;
	struct sched_info sched_info;
	struct sched_entity se;
	unsigned long nvcsw, nivcsw; /* context switches so far: it waited; it lost its CPU */
	__u64 self_exec_id; /* incremented by each exec */
	__u64 start_time; /* CLOCK_MONOTONIC, ns */
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct css_set *cgroups;
	char comm[16];
	struct thread_struct thread;
	struct uprobe_task *utask; /* with CONFIG_UPROBES */
	unsigned int kasan_depth; /* only with CONFIG_KASAN */
};

struct task_struct___state { /* before 5.14 */
	long state;
};

struct seq_file {
	__u64 size, count; /* size of the buffer, and bytes in it */
};

struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#define KERNEL_STACK_BYTES 16384 /* THREAD_SIZE of x86-64 without KASAN */
#define TASK_DEAD 0x80            /* linux/sched.h: it will never run again */
#define TASK_FREEZABLE 0x2000     /* linux/sched.h: not a state but a modifier of one; Linux 6.1 */
#define PF_KTHREAD 0x00200000 /* linux/sched.h: a kernel thread, without a user side */
#define USER_CS_64 0x33       /* __USER_CS, arch/x86/include/asm/segment.h; 32-bit code runs with 0x23 */
