/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sums of waits. A key has a thread in it, and only the CPU that switches that thread adds to it: nothing here is atomic. */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../abi/wait.h"
#include "knobs.h"
#include "wait_counters.h"
#include "log2.h"

/* Two of each: while user space takes the one away, the programs add to the other, as limits.turn says. */
struct sum_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, struct sonde_wait_key);
	__type(value, struct sonde_wait_sum);
} sums SEC(".maps"), odd_sums SEC(".maps");

struct slot_map { /* with --hist */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, struct sonde_wait_slot);
	__type(value, __u64);
} slots SEC(".maps"), odd_slots SEC(".maps");

struct { /* where keys are put together, one per CPU */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_wait_slot);
} made_keys SEC(".maps");

/* Time counts from start_ns to end_ns, CLOCK_MONOTONIC; before they are set none does. User space sets them, and the minimum. */
volatile struct {
	__u64 start_ns, end_ns;
	__u64 min_off_ns;
	__u64 turn;       /* odd: of the odd maps */
	__u64 is_thrifty; /* the minimum was raised to save time: the stacks of threads whose waits are shorter need not be taken */
} limits = { ~0ULL, ~0ULL, 0, 0, 0 };

/* How much of the time from `from_ns` to `to_ns` counts. */
static __always_inline __u64 counted_ns(__u64 from_ns, __u64 to_ns)
{
	__u64 start = limits.start_ns, end = limits.end_ns;

	if (from_ns < start)
		from_ns = start;
	if (to_ns > end)
		to_ns = end;
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static __always_inline bool is_odd(void)
{
	return limits.turn & 1;
}

static __always_inline void add_slot(const struct sonde_wait_key *key, __u64 off_ns, struct sonde_wait_counters *count)
{
	__u32 zero = 0;
	struct sonde_wait_slot *slot = bpf_map_lookup_elem(&made_keys, &zero);
	__u64 one = 1, *nr;

	if (!slot)
		return; /* there is always one */
	slot->key = *key;
	slot->slot = log2_slot(off_ns / 1000);
	nr = is_odd() ? bpf_map_lookup_elem(&odd_slots, slot) : bpf_map_lookup_elem(&slots, slot);
	if (nr)
		++*nr;
	else if (is_odd() ? bpf_map_update_elem(&odd_slots, slot, &one, BPF_NOEXIST) : bpf_map_update_elem(&slots, slot, &one, BPF_NOEXIST))
		count->slots_full++;
	else
		count->new_slots++;
}

/* The first wait of its key. By itself, for its stack. 0, or 1: there is no room. */
static __noinline int new_sum(const struct sonde_wait_key *key, __u64 ns, __u64 queued_ns)
{
	struct sonde_wait_sum first = { .nr_waits = 1, .off_ns = ns, .queued_ns = queued_ns, .min_ns = ns, .max_ns = ns };
	struct sonde_wait_counters *count = wait_count();

	if (!count)
		return 1; /* there is always one */
	if (is_odd() ? bpf_map_update_elem(&odd_sums, key, &first, BPF_NOEXIST) : bpf_map_update_elem(&sums, key, &first, BPF_NOEXIST)) {
		count->sums_full++;
		count->lost_ns += ns;
		return 1;
	}
	count->new_sums++;
	return 0;
}

static __always_inline void add_sum(const struct sonde_wait_key *key, __u64 ns, __u64 queued_ns, struct sonde_wait_counters *count)
{
	struct sonde_wait_sum *sum = is_odd() ? bpf_map_lookup_elem(&odd_sums, key) : bpf_map_lookup_elem(&sums, key);

	if (!sum) {
		if (new_sum(key, ns, queued_ns))
			return;
	} else {
		sum->nr_waits++;
		sum->off_ns += ns;
		sum->queued_ns += queued_ns;
		if (ns < sum->min_ns)
			sum->min_ns = ns;
		if (ns > sum->max_ns)
			sum->max_ns = ns;
	}
	count->waits += key->what == SONDE_WAIT_OFF;
}

/* The time of a thread on CPUs; in `of` stand its ids and its name. */
static __always_inline void add_running(const struct sonde_wait_key *of, __u64 running_ns, struct sonde_wait_counters *count)
{
	__u32 zero = 0;
	struct sonde_wait_slot *made = bpf_map_lookup_elem(&made_keys, &zero);

	if (!made || !running_ns)
		return;
	__builtin_memset(&made->key, 0, sizeof(made->key));
	made->key.tgid = of->tgid;
	made->key.tid = of->tid;
	made->key.what = SONDE_WAIT_RUNNING;
	__builtin_memcpy(made->key.comm, of->comm, sizeof(made->key.comm));
	add_sum(&made->key, running_ns, 0, count);
}

/* A wait has ended, of the thread whose key this is. */
static __always_inline void add_wait(const struct sonde_wait_key *key, __u64 off_ns, __u64 queued_ns, struct sonde_wait_counters *count)
{
	if (!off_ns)
		return;
	if (off_ns < limits.min_off_ns || (cfg.max_off_ns && off_ns > cfg.max_off_ns)) {
		count->filtered_time++;
		return;
	}
	if (key->state == SONDE_WAIT_PREEMPTED || queued_ns > off_ns)
		queued_ns = off_ns;
	add_sum(key, off_ns, queued_ns, count);
	if (cfg.histograms)
		add_slot(key, off_ns, count);
}
