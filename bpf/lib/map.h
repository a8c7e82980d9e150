/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps: a map's name in the kernel, and the entry of a map that has one. */
#pragma once
#include <bpf/bpf_helpers.h>

/* `bpftool map` shows it, and skeletons call the map so. The kernel keeps 15 characters. */
#define MAP(name) __asm__(name) SEC(".maps")

static __always_inline void *zeroth(void *map)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(map, &zero);
}
