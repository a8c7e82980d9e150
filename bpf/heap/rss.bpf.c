// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The program of `alloc --rss`: at each change of a process's counters of resident memory (the tracepoint rss_stat) compares the counter
 * with its peak, and takes a stack where the peak has grown by a mebibyte. Memory that is used again is not reported again. The counters
 * are per-CPU ones: what the kernel has not added up yet (32 pages a CPU, or two for each CPU) is seen later. docs/internals/memory.md */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi/rss.h"
#include "lib/event_regs.h"
#include "lib/filter.h"
#include "lib/maps.h"
#include "lib/scratch.h"
#include "lib/send.h"
#include "lib/user_walk.h"
#include "lib/map.h"

const volatile struct sonde_rss_config rss_cfg = {};

struct process_peaks {
	__u64 mm; /* the memory that they are of: exec begins another */
	__u64 peaks[SONDE_RSS_MEMBERS], last_anon; /* in pages */
};

struct { /* by the process's first thread */
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct process_peaks);
} rss_peaks MAP("sonde_rss_peak");

struct { /* of memory that others swap out: mm -> pages */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, __u64);
} rss_swapped MAP("sonde_rss_swap");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_rss_counters);
} rss_counters MAP("sonde_rss_stat");

static __always_inline struct sonde_rss_counters *rss_count(void)
{
	return zeroth(&rss_counters);
}

/* The counter, in pages. It may be below zero for a moment. */
static __always_inline __u64 pages_of(__u64 mm, __u32 member)
{
	struct mm_struct___counts *old = 0;
	__u64 at = mm;
	__s64 pages = 0;

	if (bpf_core_type_exists(struct mm_rss_stat)) /* before Linux 6.2 */
		at += bpf_core_field_offset(old->rss_stat) + member * sizeof(__s64);
	else
		at += bpf_core_field_offset(((struct mm_struct *)0)->rss_stat) + member * bpf_core_type_size(struct percpu_counter) +
		      bpf_core_field_offset(((struct percpu_counter *)0)->count);
	if (bpf_probe_read_kernel(&pages, sizeof(pages), (const void *)at))
		return 0;
	return pages > 0 ? pages : 0;
}

/* What a process has when it is first seen is not growth. A program that exec has begun has next to nothing then. */
static __always_inline void begin_peaks(struct process_peaks *peaks, __u64 mm)
{
	for (__u32 i = 0; i < SONDE_RSS_MEMBERS; i++)
		peaks->peaks[i] = pages_of(mm, i);
	peaks->last_anon = peaks->peaks[SONDE_RSS_ANON];
	peaks->mm = mm;
}

static __always_inline int send_rss(struct scratch *s)
{
	struct sonde_rss_counters *count = rss_count();
	struct sonde_rss_record *record;
	struct sonde_counters *shared = zeroth(&counters);

	if (shared && s->runtimes_left)
		count_one(&shared->runtimes_missed);
	send_runtime(s);
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (record) {
		record->type = SONDE_RECORD_RSS;
		record->kind = s->kept[0];
		record->bytes = s->kept[1];
		record->sample = s->sample;
		bpf_ringbuf_submit(record, wake_flag());
	}
	scratch_leave(s);
	if (count)
		count_one(record ? &count->recorded : &count->ring_full);
	return 0;
}

/* Runs after the programs of the runtimes. */
SEC("tp_btf/rss_stat")
int sonde_rss_end(__u64 *ctx)
{
	struct scratch *s = scratch_of_run(ctx);

	return s ? send_rss(s) : 0;
}

/* 0: the process is not among those asked for, or there is no room. */
static __always_inline struct scratch *begin_growth(__u64 *ctx, struct sonde_rss_counters *count, __u32 kind, __u64 pages)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 tgid_tid = bpf_get_current_pid_tgid();
	char comm[SONDE_COMM_BYTES] = {};
	struct scratch *s;

	count_one(&count->growths);
	bpf_get_current_comm(comm, sizeof(comm));
	if (tgid_tid >> 32 == rss_cfg.own_tgid || !is_wanted(task, tgid_tid >> 32, tgid_tid, comm)) {
		count_one(&count->filtered);
		return 0;
	}
	s = scratch_take(ctx);
	if (!s) {
		count_one(&count->no_scratch);
		return 0;
	}
	begin_sample(s, bpf_ktime_get_ns(), tgid_tid);
	__builtin_memcpy(s->sample.comm, comm, sizeof(comm));
	s->kept[0] = kind;
	s->kept[1] = pages << rss_cfg.page_shift;
	return s;
}

static __always_inline int take_growth(__u64 *ctx, struct sonde_rss_counters *count, __u32 kind, __u64 pages)
{
	struct scratch *s = begin_growth(ctx, count, kind, pages);
	struct sonde_counters *shared = zeroth(&counters);

	if (!s || !shared)
		return 0; /* there are always some */
	if (cfg.kernel_stacks)
		s->sample.kernel_state =
		    kernel_state(s, get_kernel_stack(ctx, s), SONDE_TRACEPOINT_FRAMES, s->sample.time_ns, &s->sample.kernel_stack);
	if (cfg.user_stacks && take_regs(s->walk.number)) {
		enter_process(s, &s->sample);
		take_user_stack(s, shared, 0);
	}
	return is_next_runtime(s) ? next_runtime(ctx, s) : send_rss(s);
}

/* The owner's pages are swapped out by others, who have nothing to do with it: no stack. A function of its own: the record would be below
 * the whole walk's frames. */
static __noinline int take_swapped(struct sonde_rss_counters *count, __u64 mm)
{
	__u64 pages = pages_of(mm, SONDE_RSS_SWAP), *peak = bpf_map_lookup_elem(&rss_swapped, &mm), old;
	struct task_struct *owner = BPF_CORE_READ((struct mm_struct *)mm, owner);
	struct sonde_rss_record record = { .type = SONDE_RECORD_RSS, .kind = SONDE_RSS_SWAP };

	if (!peak) {
		bpf_map_update_elem(&rss_swapped, &mm, &pages, BPF_NOEXIST);
		return 0;
	}
	old = *peak;
	if (!owner || pages < old + rss_cfg.grain_pages || __sync_val_compare_and_swap(peak, old, pages) != old)
		return 0;
	count_one(&count->growths);
	record.bytes = (pages - old) << rss_cfg.page_shift;
	record.sample.type = SONDE_RECORD_SAMPLE;
	record.sample.time_ns = bpf_ktime_get_ns();
	record.sample.tgid = record.sample.tid = BPF_CORE_READ(owner, tgid);
	BPF_CORE_READ_STR_INTO(&record.sample.comm, owner, comm); /* on failure "" */
	if (!is_wanted(owner, record.sample.tgid, record.sample.tid, record.sample.comm)) {
		count_one(&count->filtered);
		return 0;
	}
	count_one(bpf_ringbuf_output(&ring, &record, sizeof(record), wake_flag()) ? &count->ring_full : &count->recorded);
	return 0;
}

SEC("tp_btf/rss_stat")
int sonde_rss(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sonde_rss_counters *count = rss_count();
	struct process_peaks *peaks;
	__u64 mm = ctx[0], member = ctx[1], pages, last, old;

	if (!count || member >= SONDE_RSS_MEMBERS)
		return 0;
	count_one(&count->hits);
	if (mm != (__u64)task->mm) {
		count_one(&count->foreign);
		return member == SONDE_RSS_SWAP ? take_swapped(count, mm) : 0;
	}
	peaks = bpf_task_storage_get(&rss_peaks, task->group_leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!peaks) {
		count_one(&count->no_storage);
		return 0;
	}
	if (peaks->mm != mm)
		begin_peaks(peaks, mm);
	pages = pages_of(mm, member);
	last = peaks->last_anon;
	if (member == SONDE_RSS_ANON)
		peaks->last_anon = pages;
	barrier_var(member);
	old = peaks->peaks[member & (SONDE_RSS_MEMBERS - 1)];
	if (pages < old + rss_cfg.grain_pages ||
	    __sync_val_compare_and_swap(&peaks->peaks[member & (SONDE_RSS_MEMBERS - 1)], old, pages) != old)
		return 0;
	if (member == SONDE_RSS_ANON && pages >= last + rss_cfg.huge_pages)
		member = SONDE_RSS_HUGE;
	return take_growth(ctx, count, member, pages - old);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
