/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps that bpf/runq.bpf.c and bpf/runqslower.bpf.c share. */
#pragma once
#include "../abi/runq.h"
#include "map.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_runq_counters);
} runq_counters MAP("sonde_runq_stat");

struct { /* with `stacks`: the wait that is passed to bpf/runqslower.bpf.c */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_runqslower_record);
} slow MAP("sonde_slow_wait");
