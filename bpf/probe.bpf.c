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

struct begins {				   /* of a thread's calls that have not returned */
	__u64 start_ns[SONDE_PROBE_DEPTH]; /* 0: not asked for */
	__u64 sp[SONDE_PROBE_DEPTH];	   /* the stack pointer there; 0: not known */
	__u32 depth;			   /* may be larger than SONDE_PROBE_DEPTH */
};

struct { /* tid -> its calls; shared by the programs of begin and end. The oldest make room: of threads that ended in a call */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set by the loader, if times are asked for */
	__type(key, __u32);
	__type(value, struct begins);
} begun MAP("sonde_begun");

static __always_inline void *zeroth(void *map)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(map, &zero);
}

/* --- sums ----------------------------------------------------------------------------------------------------------------------------- */

static __always_inline void fill_key(const struct hit *hit, struct sonde_probe_key *key)
{
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
		read_text(hit, knob(&probe_cfg.key), key->arg.text, sizeof(key->arg.text));
	else
		key->arg.number = value_of(hit, knob(&probe_cfg.key));
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

static __always_inline void begin(const struct hit *hit, bool wanted)
{
	struct begins none = {}, *of;
	__u32 tid = hit->tgid_tid, depth;

	of = bpf_map_lookup_elem(&begun, &tid);
	if (!of) {
		bpf_map_update_elem(&begun, &tid, &none, BPF_NOEXIST);
		of = bpf_map_lookup_elem(&begun, &tid);
	}
	if (!of)
		return; /* no memory: its end will be unpaired */
	depth = of->depth++;
	if (depth >= SONDE_PROBE_DEPTH)
		return;
	of->start_ns[depth] = wanted ? bpf_ktime_get_ns() : 0;
	of->sp[depth] = hit->sp;
}

/* The begin of the call that ends, which is removed. 0: not seen, or not asked for. Calls that were left by longjmp lie deeper in the stack
 * than the one that returns, and are dropped. */
static __always_inline __u64 end(const struct hit *hit)
{
	__u32 tid = hit->tgid_tid, depth;
	struct begins *of = bpf_map_lookup_elem(&begun, &tid);
	__u64 start_ns = 0;

	if (!of)
		return 0;
	for (int i = 0; i < SONDE_PROBE_DEPTH; i++) {
		depth = of->depth;
		if (!depth)
			break;
		of->depth = --depth;
		if (depth >= SONDE_PROBE_DEPTH)
			return 0;
		start_ns = of->start_ns[depth & (SONDE_PROBE_DEPTH - 1)];
		if (!hit->sp || of->sp[depth & (SONDE_PROBE_DEPTH - 1)] + 2 * sizeof(__u64) >= hit->sp)
			break;
		start_ns = 0;
	}
	if (!of->depth)
		bpf_map_delete_elem(&begun, &tid);
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
	bool good = probe_cfg.ends || passes_all(hit); /* of a time, the begin decides */
	__u64 start_ns = 0;

	if (probe_cfg.begins) {
		begin(hit, good);
		__sync_fetch_and_add(&count->unpaired, 1);
		return;
	}
	if (probe_cfg.ends) {
		start_ns = end(hit);
		if (!start_ns) {
			__sync_fetch_and_add(&count->unpaired, 1);
			return;
		}
	}
	if (!good) {
		__sync_fetch_and_add(&count->rejected, 1);
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
