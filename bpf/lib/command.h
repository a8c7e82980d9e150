/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Targets of `-- command` in programs without the sampler: the command from its exec on, and its children from their first instruction on,
 * as long as they live. Loaded only with a command. */
#pragma once
#include <bpf/bpf_tracing.h>

#include "filter.h"

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sonde_cmd_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = parent->tgid, child_tgid = child->tgid;
	__u8 yes = 1;

	if (parent_tgid != child_tgid && bpf_map_lookup_elem(&targets, &parent_tgid))
		bpf_map_update_elem(&targets, &child_tgid, &yes, BPF_ANY); /* the map has room for more children than live at once */
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sonde_cmd_exec, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	__u8 yes = 1;

	if (cfg.command_tgid == tgid)
		bpf_map_update_elem(&targets, &tgid, &yes, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sonde_cmd_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (!task->signal->live.counter) /* the last thread */
		bpf_map_delete_elem(&targets, &tgid);
	return 0;
}
