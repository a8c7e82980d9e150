/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The cgroup (v2) that a thread is in. */
#pragma once
#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../compat/kernel.h"

static __always_inline __u64 cgroup_id(struct task_struct *task)
{
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

/* True if the thread is in the cgroup with this id and level, or below it. Each cgroup lists its ancestors by level, itself last. */
static __always_inline bool in_cgroup(struct task_struct *task, __u32 level, __u64 id)
{
	struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp), *above = 0;

	if (BPF_CORE_READ(cgroup, level) < (int)level)
		return false;
	if (bpf_core_field_exists(cgroup->ancestors)) {
		const void *list = __builtin_preserve_access_index(&cgroup->ancestors);

		bpf_probe_read_kernel(&above, sizeof(above), list + level * sizeof(above));
		return BPF_CORE_READ(above, kn, id) == id;
	} else {
		const void *list = __builtin_preserve_access_index(&((struct cgroup___ids *)cgroup)->ancestor_ids);
		__u64 above_id = 0;

		bpf_probe_read_kernel(&above_id, sizeof(above_id), list + level * sizeof(above_id));
		return above_id == id;
	}
}
