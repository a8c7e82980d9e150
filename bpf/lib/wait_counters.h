/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters of the scheduler's programs. */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../abi/wait.h"
#include "map.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SONDE_WAIT_COUNTERS);
	__type(key, __u32);
	__type(value, struct sonde_wait_counters);
} wait_counters MAP("sonde_wait_stat");

static __always_inline struct sonde_wait_counters *wait_count(void)
{
	return zeroth(&wait_counters);
}

/* The counters of the iterators, as a switch may interrupt them. */
static __always_inline struct sonde_wait_counters *iterator_count(void)
{
	__u32 one = 1;

	return bpf_map_lookup_elem(&wait_counters, &one);
}
