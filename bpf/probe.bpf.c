// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The program of `sonde trace` at any trigger (src/collect/trigger.h): compares fields with a table, counts the hit by other fields, and
 * may send it. With times, one such program runs at the begin of a function and another at its end. The tables are constant, so the
 * verifier sees only what is asked for.
 *
 * The program may be preempted at some triggers, so it has no memory per CPU but counters. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/usdt.bpf.h>

#include "abi/probe.h"
#include "lib/filter.h"
#include "lib/log2.h"
#include "lib/probe_hit.h"
#include "lib/wake.h"
#include "lib/map.h"

const volatile __u32 probe_number = 0;
volatile __u32 own_tgid; /* sonde's own hits are left out; as in the root PID namespace */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_probe_counters);
} counters MAP("sonde_counters");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* set by the loader */
} ring MAP("sonde_ring");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct sonde_probe_key);
	__type(value, struct sonde_probe_sum);
} sums MAP("sonde_sums");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_probe_sum);
} fresh MAP("sonde_fresh"); /* the first value of a new key: too large for the stack; its name alone is written */

struct begun_call {
	__u64 start_ns; /* 0: not in use */
	__u64 sp;	/* the stack pointer there; 0: not known, then calls end in the order in which they began */
};

struct begins { /* of a thread's calls that have not returned */
	struct begun_call calls[SONDE_PROBE_DEPTH];
	/* Of a search among them. The verifier follows each value that a register may have, but not those in memory, where volatile keeps
	 * them: else it takes ten seconds. */
	volatile __u64 score;
	volatile __u32 found, second, third, pad;
};

struct { /* tid -> its calls; shared by the programs of begin and end. The oldest make room: of threads that ended in a call */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set by the loader, if times are asked for */
	__type(key, __u32);
	__type(value, struct begins);
} begun MAP("sonde_begun");

/* --- sums ----------------------------------------------------------------------------------------------------------------------------- */

static __always_inline void fill_key(const struct hit *hit, struct sonde_probe_key *key)
{
	bool unread = false;

	if (probe_cfg.by_tgid)
		key->tgid = hit->tgid_tid >> 32;
	if (probe_cfg.by_tid)
		key->tid = hit->tgid_tid;
	if (probe_cfg.by_cpu)
		key->cpu = bpf_get_smp_processor_id();
	if (probe_cfg.by_comm)
		__builtin_memcpy(key->comm, hit->comm, sizeof(key->comm));
	if (!probe_cfg.by_arg)
		return;
	if (probe_cfg.key.text || probe_cfg.key.source == SONDE_PROBE_COMM)
		read_text(hit, knob(&probe_cfg.key), key->arg.text, sizeof(key->arg.text), &unread);
	else
		key->arg.number = value_of(hit, knob(&probe_cfg.key), &unread);
	key->unread = unread;
}

/* The sum of the key, created if necessary. NULL: there is no room. */
static __always_inline struct sonde_probe_sum *sum_of(const struct hit *hit, const struct sonde_probe_key *key)
{
	struct sonde_probe_sum *found = bpf_map_lookup_elem(&sums, key), *begin;

	if (found)
		return found;
	begin = zeroth(&fresh);
	if (!begin)
		return 0;
	__builtin_memcpy(begin->comm, hit->comm, sizeof(begin->comm));
	bpf_map_update_elem(&sums, key, begin, BPF_NOEXIST); /* another CPU may have been faster */
	return bpf_map_lookup_elem(&sums, key);
}

static __always_inline void add(const struct hit *hit, __u64 took_ns, struct sonde_probe_counters *count)
{
	struct sonde_probe_key key = {};
	struct sonde_probe_sum *sum;

	fill_key(hit, &key);
	sum = sum_of(hit, &key);
	if (!sum) {
		__sync_fetch_and_add(&count->keys_full, 1);
		return;
	}
	__sync_fetch_and_add(&count->counted, 1);
	__sync_fetch_and_add(&sum->count, 1);
	if (!probe_cfg.ends)
		return;
	__sync_fetch_and_add(&sum->sum_ns, took_ns);
	__sync_fetch_and_add(&sum->slots[log2_slot(took_ns / 1000) & (SONDE_PROBE_SLOTS - 1)], 1);
}

static __always_inline void print(const struct hit *hit, struct sonde_probe_counters *count)
{
	struct sonde_probe_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record) {
		__sync_fetch_and_add(&count->lost, 1);
		return;
	}
	record->time_ns = bpf_ktime_get_ns();
	record->tgid = hit->tgid_tid >> 32;
	record->tid = hit->tgid_tid;
	record->cpu = bpf_get_smp_processor_id();
	record->probe = probe_number;
	__builtin_memcpy(record->comm, hit->comm, sizeof(record->comm));
	take_values(hit, &record->values);
	bpf_ringbuf_submit(record, wake_flag(&ring, record->time_ns));
	__sync_fetch_and_add(&count->sent, 1);
}

/* --- times ---------------------------------------------------------------------------------------------------------------------------- */

/* The idle threads of all CPUs have the same number. */
static __always_inline __u32 begun_key(const struct hit *hit)
{
	return (__u32)hit->tgid_tid ?: 1u << 31 | bpf_get_smp_processor_id();
}

/* Where a call that begins is kept: the place of one that began at the same stack pointer, and so was left without a return (longjmp, an
 * exception), else a free one, else that of one deeper in the stack, left as well, or on another stack. With none, the call will be one
 * without a begin: of a deep recursion the outer calls have times. */
static __always_inline __u32 place_of(struct begins *of, __u64 sp)
{
	if (probe_cfg.context == SONDE_PROBE_CALL_BEGIN)
		return 0; /* a thread is in one system call at most */
	of->found = of->second = of->third = SONDE_PROBE_DEPTH;
	for (int i = 0; i < SONDE_PROBE_DEPTH; i++) {
		if (!of->calls[i].start_ns)
			of->second = i;
		else if (of->calls[i].sp == sp && sp)
			of->found = i;
		else if (of->calls[i].sp < sp)
			of->third = i;
	}
	if (of->found < SONDE_PROBE_DEPTH)
		return of->found;
	return of->second < SONDE_PROBE_DEPTH ? of->second : of->third;
}

static __always_inline void begin(const struct hit *hit)
{
	__u32 key = begun_key(hit);
	struct begins none = {}, *of;
	__u32 at;

	of = bpf_map_lookup_elem(&begun, &key);
	if (!of) {
		bpf_map_update_elem(&begun, &key, &none, BPF_NOEXIST);
		of = bpf_map_lookup_elem(&begun, &key);
	}
	if (!of)
		return; /* no memory: its end will be unpaired */
	at = place_of(of, hit->sp);
	if (at >= SONDE_PROBE_DEPTH)
		return;
	of->calls[at].sp = hit->sp;
	of->calls[at].start_ns = bpf_ktime_get_ns();
}

/* Is `call` nearer to the end's stack pointer than the one found so far, at `score`? A return address and a word of the kernel's lie
 * between begin and end at most. */
static __always_inline bool is_nearer(const struct begun_call *call, __u64 score, __u64 sp)
{
	if (!sp)
		return call->start_ns > score;
	return call->start_ns && call->sp <= sp && sp - call->sp <= 2 * sizeof(__u64) && call->sp > score;
}

/* The begin of the call that ends, which is removed: the one at its place in the stack, as calls of coroutines end in any order. 0: not
 * seen, or not asked for. */
static __always_inline __u64 end(const struct hit *hit)
{
	__u32 key = begun_key(hit), at;
	struct begins *of = bpf_map_lookup_elem(&begun, &key);
	__u64 start_ns;

	if (!of)
		return 0;
	of->found = SONDE_PROBE_DEPTH;
	of->second = 0; /* calls that are open */
	of->score = 0;
	for (int i = 0; i < SONDE_PROBE_DEPTH; i++) {
		of->second += of->calls[i].start_ns != 0;
		if (is_nearer(&of->calls[i], of->score, hit->sp)) {
			of->score = hit->sp ? of->calls[i].sp : of->calls[i].start_ns;
			of->found = i;
		}
	}
	at = of->found;
	if (at >= SONDE_PROBE_DEPTH)
		return 0;
	start_ns = of->calls[at].start_ns;
	of->calls[at].start_ns = 0;
	if (of->second == 1)
		bpf_map_delete_elem(&begun, &key);
	return start_ns;
}

static __always_inline bool is_asked_for(const struct hit *hit, struct sonde_probe_counters *count)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (hit->tgid_tid >> 32 == own_tgid) {
		__sync_fetch_and_add(&count->own, 1);
		return false;
	}
	if (is_wanted(task, hit->tgid_tid >> 32, hit->tgid_tid, hit->comm))
		return true;
	__sync_fetch_and_add(&count->filtered, 1);
	return false;
}

static __always_inline void take_hit(const struct hit *hit, struct sonde_probe_counters *count)
{
	bool unread = false;
	__u64 start_ns = 0;

	if (probe_cfg.ends) { /* the begin has asked the filter */
		start_ns = end(hit);
		if (!start_ns) {
			__sync_fetch_and_add(&count->unpaired, 1);
			return;
		}
	} else if (!passes_all(hit, &unread)) {
		__sync_fetch_and_add(unread ? &count->unread : &count->rejected, 1);
		return;
	}
	if (probe_cfg.begins) {
		begin(hit);
		__sync_fetch_and_add(&count->unpaired, 1);
		return;
	}
	add(hit, start_ns ? bpf_ktime_get_ns() - start_ns : 0, count);
	if (probe_cfg.prints)
		print(hit, count);
}

SEC("kprobe")
int sonde_probe(void *ctx)
{
	struct sonde_probe_counters *count = zeroth(&counters);
	struct hit hit = {};

	if (!count || !take_args(&hit, ctx))
		return 0; /* there are always some */
	__sync_fetch_and_add(&count->hits, 1);
	hit.tgid_tid = bpf_get_current_pid_tgid();
	bpf_get_current_comm(hit.comm, sizeof(hit.comm));
	if (is_asked_for(&hit, count))
		take_hit(&hit, count);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
