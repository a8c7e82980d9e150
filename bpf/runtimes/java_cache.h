/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* java_cache: which blob of the code cache a pc is in. The blob's header, which is read for each frame anyway, proves an entry: the block is
 * in use, has the same number of segments, the same name and the same compile id, and the pc is in its code. */
#pragma once
#include "../abi/types.h"

#define JAVA_CACHE_SHIFT 10
#define JAVA_CACHE_ENTRIES (1u << JAVA_CACHE_SHIFT)

struct java_cached {
	__u64 pc;
	__u64 block;  /* address of its header */
	__u64 length, name;
	__u32 serial; /* of the process's struct sonde_java */
	__u32 id;     /* compile id, or 0 */
	__u8 kind;    /* enum java_blob_kind */
	__u8 pad[7];
};

static __always_inline __u32 java_cache_slot(__u64 pc)
{
	return (pc * 0x9e3779b97f4a7c15ULL) >> (64 - JAVA_CACHE_SHIFT);
}

#ifdef __bpf__
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, JAVA_CACHE_ENTRIES);
	__type(key, __u32);
	__type(value, struct java_cached);
} java_cache SEC(".maps");

static __always_inline struct java_cached *java_cached(__u64 pc)
{
	__u32 slot = java_cache_slot(pc);

	return bpf_map_lookup_elem(&java_cache, &slot);
}
#else
static struct java_cached java_cache[JAVA_CACHE_ENTRIES];

static inline struct java_cached *java_cached(__u64 pc)
{
	return &java_cache[java_cache_slot(pc)];
}
#endif
