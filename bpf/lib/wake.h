/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When the reader of a ring buffer is woken: when much has come, and not again for a millisecond. While it is behind, each record would
 * wake it, which takes longer than the record. */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "knobs.h"
#include "map.h"

#define WAKE_AGAIN_NS 1000000u

struct { /* when this CPU has last woken it */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} woken MAP("sonde_ring_wake");

static __always_inline __u64 wake_flag(void *ring, __u64 now_ns)
{
	__u64 *last_ns;

	if (bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) <= cfg.ring_wake_bytes)
		return BPF_RB_NO_WAKEUP;
	last_ns = zeroth(&woken);
	if (!last_ns || now_ns - *last_ns < WAKE_AGAIN_NS)
		return BPF_RB_NO_WAKEUP;
	*last_ns = now_ns;
	return BPF_RB_FORCE_WAKEUP;
}
