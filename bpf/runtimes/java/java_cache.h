/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* java_cache: which blob of the code cache a pc is in, and its row. The blob's header, which is read for each frame anyway, proves an
 * entry: the block is in use, has the same number of segments, the same name and the same compile id, and the pc is in its code. */
#pragma once
#include "../runtime.h"

/* Words of the walk's state. */
#define JAVA_STATE_FIRST 6
#define JAVA_STATE_GAP 6    /* the frame above a gap: the walk's number and the frame's */
#define JAVA_STATE_ANCHOR 7 /* of the Java frames above the native ones that called the last Java frame, or 0 */

#define JAVA_CACHE_SHIFT 10
#define JAVA_CACHE_ENTRIES (1u << JAVA_CACHE_SHIFT)

struct java_cached {
	__u64 pc;     /* bit 63: a return address */
	__u64 block;  /* address of its header */
	__u64 name;
	__u64 row;    /* at the pc, as java_row_at */
	__u32 length; /* in segments */
	__u32 serial; /* of the process's struct sonde_java */
	__u32 id;     /* compile id, or 0 */
	__u8 kind;    /* enum java_blob_kind */
	__u8 pad[3];
};

#ifdef __bpf__
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, JAVA_CACHE_ENTRIES);
	__type(key, __u32);
	__type(value, struct java_cached);
} java_cache MAP("sonde_java_code");

static __always_inline struct java_cached *java_cached(struct runtime_walk *r, __u64 pc)
{
	__u32 slot = (pc * 0x9e3779b97f4a7c15ULL) >> (64 - JAVA_CACHE_SHIFT);

	return bpf_map_lookup_elem(&java_cache, &slot);
}
#else
/* A walk in user space keeps the last frame's: one stack is walked there at a time. */
static inline struct java_cached *java_cached(struct runtime_walk *r, __u64 pc)
{
	_Static_assert(sizeof(struct java_cached) <= 8 * JAVA_STATE_FIRST, "no room");
	return (struct java_cached *)r->state;
}
#endif
