/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* config: options of the kernel side. They are constant from load on, so the verifier removes dead branches. */
#pragma once
#include "record.h"
#include "types.h"

struct sonde_config {
	__u32 version;                      /* SONDE_ABI_VERSION, checked by the loader */
	__u32 ring_wake_bytes;              /* wake the reader when this much is unread */
	__u8 filter_tgid, filter_tid;       /* only the keys of the map `targets` */
	__u8 filter_comm;                   /* only `comm`, the thread's name or its group leader's */
	__u8 user_stacks, kernel_stacks;    /* collect this side */
	__u8 include_idle;
	__u8 filter_cgroup;                 /* only threads in the cgroup `cgroup_id` or below it */
	__u8 more_levels;                   /* of working memory per CPU: how many programs may run there on top of one */
	__u32 audit_every;                  /* send one in this many walked stacks to be checked; 0: none */
	char comm[SONDE_COMM_BYTES];
	__u32 cgroup_level;                 /* of that cgroup: 0 is the root */
	__u64 cgroup_id;                    /* of cgroup v2: its inode number */
	__u64 hash_seed;                    /* start value of hashes: secret, so no program can make a stack with another's hash */
	/* for the scheduler's programs */
	__u64 min_off_ns, max_off_ns;       /* shorter and longer waits are left out; max 0: no limit */
	__s32 state;                        /* -1: any; 0: preempted ones; else one of these bits */
	__u8 user_threads_only, kernel_threads_only;
	__u8 wake;                          /* also who ended the wait */
	__u8 histograms;
	__u8 wall;                          /* also sums of the time on CPUs */
	__u8 events;                        /* send each switch and wake-up */
	__u8 has_prev_state;                /* this kernel's sched_switch has the argument prev_state (Linux 5.18) */
	__u8 wait_pad;
	/* A target from its exec on, with its children. Before the exec it is a part of sonde that waits to become the command. 0: none. */
	__u32 command_tgid;
};
_Static_assert(sizeof(struct sonde_config) == 88, "layout changed: bump SONDE_ABI_VERSION");
