/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sums of waits. A key has a thread in it, and only the CPU that switches that thread adds to it: nothing here is atomic.
 *
 * User space sets the end of a window in advance. So a program that reads the clock first, and then the start of the window, knows the
 * window of each moment. A wait that goes on over the border is split there, by the iterator or by the switch that ends it: by the one that
 * moves counted_ns over the border. */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../abi/wait.h"
#include "knobs.h"
#include "wait_counters.h"
#include "log2.h"
#include "map.h"

/* Two of each: the programs add to the one that limits.turn selects, while user space takes the other away. */
struct sum_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, struct sonde_wait_key);
	__type(value, struct sonde_wait_sum);
} sums MAP("sonde_sums"), odd_sums MAP("sonde_odd_sums");

struct slot_map { /* with --hist */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, struct sonde_wait_slot);
	__type(value, __u64);
} slots MAP("sonde_slots"), odd_slots MAP("sonde_odd_slots");

/* Working memory for what is added: the stack has no room for it. */
struct making {
	struct sonde_wait_slot slot;
	struct sonde_wait_sum sum;
	__u64 comm[SONDE_COMM_BYTES / 8]; /* of the thread that leaves the CPU */
};

struct { /* one per CPU */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct making);
} makings MAP("sonde_making");

static __always_inline struct making *making(void)
{
	return zeroth(&makings);
}

/* Time counts from start_ns to end_ns, CLOCK_MONOTONIC; before they are set none does. User space sets these and the minimum. */
volatile struct {
	__u64 start_ns, end_ns;
	__u64 min_off_ns;
	__u64 turn;       /* odd: the programs add to the odd maps */
	__u64 is_thrifty; /* the minimum was raised to save time: skip the stacks of threads whose waits are shorter */
	__u64 window_ns;  /* start of the window, in units of 256 ns; the low byte is the window's number. 0: the first window */
} limits = { ~0ULL, ~0ULL, 0, 0, 0, 0 };

#define WINDOW_BEGIN(window_ns) ((window_ns) & ~0xffULL)

/* The low byte of the number of the window that the moment is in. */
static __always_inline __u8 window_at(__u64 window_ns, __u64 at_ns)
{
	return window_ns - (at_ns < WINDOW_BEGIN(window_ns));
}

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

/* True if a wait is split at the window's end: the window gets the time up to then. Else all of the wait counts in the window in which it
 * ends: it is too short so far, or may become too long. */
static __always_inline bool is_cut_at(__u64 since_ns, __u64 border_ns)
{
	return !cfg.max_off_ns && counted_ns(since_ns, border_ns) >= limits.min_off_ns;
}

/* Tests the length of the whole wait. */
static __always_inline bool is_length_asked_for(__u64 whole_ns)
{
	return whole_ns >= limits.min_off_ns && (!cfg.max_off_ns || whole_ns <= cfg.max_off_ns);
}

static __always_inline bool is_odd(void)
{
	return limits.turn & 1;
}

static __always_inline void add_slot(struct making *made, const struct sonde_wait_key *key, __u64 whole_ns,
				     struct sonde_wait_counters *count)
{
	struct sonde_wait_slot *slot = &made->slot;
	__u64 one = 1, *nr;

	slot->key = *key;
	slot->slot = log2_slot(whole_ns / 1000);
	nr = is_odd() ? bpf_map_lookup_elem(&odd_slots, slot) : bpf_map_lookup_elem(&slots, slot);
	if (nr)
		++*nr;
	else if (is_odd() ? bpf_map_update_elem(&odd_slots, slot, &one, BPF_NOEXIST) : bpf_map_update_elem(&slots, slot, &one, BPF_NOEXIST))
		count->slots_full++;
	else
		count->new_slots++;
}

/* Adds the first sum of a key. A function of its own, for its stack. Returns 0; 1: there is no room. */
static __noinline int new_sum(const struct sonde_wait_key *key, const struct sonde_wait_sum *first)
{
	struct sonde_wait_counters *count = wait_count();

	if (!count)
		return 1; /* there is always one */
	if (is_odd() ? bpf_map_update_elem(&odd_sums, key, first, BPF_NOEXIST) : bpf_map_update_elem(&sums, key, first, BPF_NOEXIST)) {
		count->sums_full++;
		count->lost_ns += first->off_ns;
		return 1;
	}
	count->new_sums++;
	return 0;
}

static __always_inline void add_sum(const struct sonde_wait_key *key, const struct sonde_wait_sum *more, struct sonde_wait_counters *count)
{
	struct sonde_wait_sum *sum = is_odd() ? bpf_map_lookup_elem(&odd_sums, key) : bpf_map_lookup_elem(&sums, key);

	if (!sum) {
		if (new_sum(key, more))
			return;
	} else {
		sonde_wait_sum_add(sum, more);
	}
	count->waits += key->what == SONDE_WAIT_OFF && more->nr_waits;
}

static __always_inline void begin_running_key(struct sonde_wait_key *key, const struct sonde_wait_key *of, __u8 window)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->tgid = of->tgid;
	key->tid = of->tid;
	key->what = SONDE_WAIT_RUNNING;
	key->window = window;
	__builtin_memcpy(key->comm, of->comm, sizeof(key->comm));
}

/* Adds a thread's time on CPUs. `of` has its ids and its name. */
WALK_FUNCTION int add_running(const struct sonde_wait_key *of, __u64 running_ns, __u8 window)
{
	struct sonde_wait_counters *count = wait_count();
	struct making *made = making();

	if (!made || !count || !of || !running_ns)
		return 0;
	begin_running_key(&made->slot.key, of, window);
	made->sum = (struct sonde_wait_sum){ .nr_waits = 1, .off_ns = running_ns };
	add_sum(&made->slot.key, &made->sum, count);
	return 0;
}

/* The part of a wait in which the thread was runnable. */
static __always_inline __u64 queued_part(const struct sonde_wait_key *key, __u64 off_ns, __u64 queued_ns)
{
	return key->state == SONDE_WAIT_PREEMPTED || queued_ns > off_ns ? off_ns : queued_ns;
}

/* Adds a wait that has ended: off_ns of it in this window, whole_ns in all. */
static __always_inline void add_wait(const struct sonde_wait_key *key, __u64 off_ns, __u64 queued_ns, __u64 whole_ns,
				     struct sonde_wait_counters *count)
{
	struct making *made = making();

	if (!made)
		return; /* there is always one */
	if (!is_length_asked_for(whole_ns)) {
		count->filtered_time++;
		return;
	}
	made->sum = (struct sonde_wait_sum){ .nr_waits = 1,
					     .off_ns = off_ns,
					     .queued_ns = queued_part(key, off_ns, queued_ns),
					     .whole_ns = whole_ns,
					     .min_ns = whole_ns,
					     .max_ns = whole_ns };
	add_sum(key, &made->sum, count);
	if (cfg.histograms)
		add_slot(made, key, whole_ns, count);
}

/* Adds the part before the border of a wait that ends now. Its time on a queue is not known yet, and counts behind the border. */
WALK_FUNCTION int add_cut(const struct sonde_wait_key *key, __u64 off_ns)
{
	struct sonde_wait_counters *count = wait_count();
	struct making *made = making();

	if (!made || !count || !key)
		return 0;
	made->slot.key = *key; /* Linux 6.1 refuses an argument's memory as a map's key */
	made->sum = (struct sonde_wait_sum){ .off_ns = off_ns, .queued_ns = queued_part(key, off_ns, 0), .max_ns = off_ns };
	add_sum(&made->slot.key, &made->sum, count);
	return 0;
}
