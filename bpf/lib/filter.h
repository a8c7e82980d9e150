/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The targets filter: is a thread, the current one or another, among the requested ones? Where the verifier knows the type of a
 * task (tasks_are_typed), nothing is read by a helper call. */
#pragma once
#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../compat/kernel.h"
#include "cgroup.h"
#include "comm.h"
#include "knobs.h"
#include "map.h"

static const bool tasks_are_typed; /* in programs of tp_btf */

struct { /* the tgids or tids requested */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC); /* few, but room for many children of a command */
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u8);
} targets MAP("sonde_targets");

static __always_inline bool is_target(__u32 tgid, __u32 tid)
{
	__u32 id = cfg.filter_tgid ? tgid : tid;

	return bpf_map_lookup_elem(&targets, &id);
}

/* `comm` is padded with zeros. */
static __always_inline bool same_comm(const void *comm)
{
	const __u32 *words = comm;
	__u32 differs = 0;

	for (int i = 0; i < SONDE_COMM_BYTES / 4; i++)
		differs |= words[i] ^ *(const volatile __u32 *)(cfg.comm + 4 * i);
	return !differs;
}

static __always_inline bool is_comm(struct task_struct *task, const void *comm)
{
	__u64 of_leader[SONDE_COMM_BYTES / 8] = {};
	struct task_struct *leader;

	if (same_comm(comm))
		return true;
	leader = tasks_are_typed ? task->group_leader : BPF_CORE_READ(task, group_leader);
	if (leader == task)
		return false;
	if (tasks_are_typed)
		read_comm(leader, of_leader);
	else
		BPF_CORE_READ_STR_INTO(&of_leader, leader, comm); /* on failure "", which matches no filter */
	return same_comm(of_leader);
}

/* Tests what a thread may change: its cgroup and its name, `comm`. Filters that are not set cost nothing: cfg is constant. */
static __always_inline bool is_wanted_now(struct task_struct *task, const void *comm)
{
	if (cfg.filter_cgroup && !in_cgroup(task, cfg.cgroup_level, cfg.cgroup_id))
		return false;
	return !cfg.filter_comm || is_comm(task, comm);
}

/* For a thread other than the idle one. */
static __always_inline bool is_wanted(struct task_struct *task, __u32 tgid, __u32 tid, const void *comm)
{
	if ((cfg.filter_tgid || cfg.filter_tid) && !is_target(tgid, tid))
		return false;
	return is_wanted_now(task, comm);
}
