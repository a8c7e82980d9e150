// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The run queue: how long threads wait from wake-up or preemption to running, how long they then stay on the CPU, and how many of them
 * wait.
 *
 * When a thread is woken up, or leaves its CPU while still ready to run, the program stores the time and how often the thread has been
 * given a CPU (struct sched_info, the scheduler's own account). When the thread is given a CPU the next time, the difference is its wait; a
 * time older than its last run is ignored. For threads that were queued before the start, the scheduler's account says since when. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi/runq.h"
#include "compat/kernel.h"
#include "lib/cgroup.h"
#include "lib/filter.h"
#include "lib/knobs.h"
#include "lib/log2.h"
#include "lib/runq_maps.h"
#include "lib/task_state.h"
#include "lib/map.h"

#define NICE_0_PRIORITY 120

const volatile struct sonde_runq_config runq_cfg = {};

volatile __u32 own_tgid; /* its threads are left out; as in the root PID namespace */
const volatile __u64 own_since_ns =
    0; /* CLOCK_MONOTONIC: with stacks, processes that it has started since are left out as well: they read files for symbols */

struct thread {
	__u64 queued_ns; /* when its wait began, or its last one: CLOCK_MONOTONIC; 0: no wait yet */
	__u64 nr_runs;   /* how often it had been given a CPU by then */
};

struct { /* created when a thread starts, and for those that exist: never at a switch, where memory must not be allocated */
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads MAP("sonde_threads");

struct { /* without keys, the whole; for lengths by enum sonde_runq_length */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SONDE_RUNQ_LENGTH_COUNT);
	__type(key, __u32);
	__type(value, struct sonde_runq_histogram);
} histograms MAP("sonde_hists");

struct keyed {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space creates larger ones */
	__uint(key_size, sizeof(struct sonde_runq_key));
	__uint(value_size, sizeof(struct sonde_runq_histogram));
};

struct { /* the one in use: user space replaces it with an empty one; after that nobody writes to the old one */
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, struct keyed);
} by_key MAP("sonde_by_key");

struct { /* the first value of a new key: too large for the stack */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_runq_histogram);
} fresh MAP("sonde_fresh");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} waits MAP("sonde_waits");

struct { /* the program for the stacks */
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} runqslower_programs MAP("sonde_slow_prog");

/* The clock of the CPU's queue, which the scheduler's account uses, found from a thread on that CPU. BPF can read the variable `runqueues`
 * itself only in kernels with CONFIG_KALLSYMS_ALL; this way needs CONFIG_FAIR_GROUP_SCHED. */
static __always_inline __u64 queue_clock(struct task_struct *task)
{
	return task->se.cfs_rq->rq->clock;
}

static __always_inline bool is_asked_for(struct task_struct *task)
{
	char comm[SONDE_COMM_BYTES] = {};

	if (task->tgid == (int)own_tgid ||
	    (runq_cfg.stacks && task->real_parent->tgid == (int)own_tgid && task->group_leader->start_time >= own_since_ns))
		return false;
	if (cfg.filter_comm)
		bpf_probe_read_kernel_str(comm, sizeof(comm), task->comm);
	return is_wanted(task, task->tgid, task->pid, comm);
}

static __always_inline struct sonde_runq_key key_of(struct task_struct *task)
{
	struct sonde_runq_key key = {};

	switch (runq_cfg.key) {
	case SONDE_RUNQ_KEY_TGID:
		key.id = task->tgid;
		break;
	case SONDE_RUNQ_KEY_TID:
		key.id = task->pid;
		break;
	case SONDE_RUNQ_KEY_CGROUP:
		key.id = cgroup_id(task);
		break;
	case SONDE_RUNQ_KEY_COMM:
		bpf_probe_read_kernel_str(key.comm, sizeof(key.comm), task->comm);
		break;
	}
	return key;
}

/* The histogram of the thread's key, created if necessary. NULL: there is no room. */
static __always_inline struct sonde_runq_histogram *keyed_histogram(struct task_struct *task)
{
	struct sonde_runq_key key = key_of(task);
	struct sonde_runq_histogram *found, *begin;
	void *map = zeroth(&by_key);

	if (!map)
		return 0;
	found = bpf_map_lookup_elem(map, &key);
	if (found)
		return found;
	begin = zeroth(&fresh);
	if (!begin)
		return 0;
	if (runq_cfg.key == SONDE_RUNQ_KEY_TGID)
		BPF_CORE_READ_STR_INTO(&begin->comm, task, group_leader, comm);
	else if (runq_cfg.key == SONDE_RUNQ_KEY_TID)
		bpf_probe_read_kernel_str(begin->comm, sizeof(begin->comm), task->comm);
	bpf_map_update_elem(map, &key, begin, BPF_NOEXIST); /* another CPU may have been faster */
	return bpf_map_lookup_elem(map, &key);
}

static __always_inline void count_value(struct sonde_runq_counters *count, struct task_struct *task, __u64 ns)
{
	__u32 slot = log2_slot(ns / (runq_cfg.unit_ns ?: 1)) & (SONDE_RUNQ_SLOTS - 1);
	struct sonde_runq_histogram *h;

	if (runq_cfg.key) {
		h = keyed_histogram(task);
		if (!h) {
			count->keys_full++;
			return;
		}
		__sync_fetch_and_add(&h->slots[slot], 1);
		__sync_fetch_and_add(&h->sum, ns);
	} else {
		h = zeroth(&histograms);
		if (!h)
			return; /* there is always one */
		h->slots[slot]++;
		h->sum += ns;
	}
	count->counted++;
}

static __always_inline void fill_thread(struct sonde_runq_thread *thread, struct task_struct *task)
{
	thread->tgid = task->tgid;
	thread->tid = task->pid;
	thread->policy = task->policy;
	thread->nice = task->static_prio - NICE_0_PRIORITY;
	thread->rt_priority = task->rt_priority;
	bpf_probe_read_kernel_str(thread->comm, sizeof(thread->comm), task->comm);
}

static __always_inline void fill_wait(struct sonde_runq_record *record, struct task_struct *prev, struct task_struct *next, __u64 wait_ns)
{
	record->time_ns = bpf_ktime_get_ns();
	record->wait_ns = wait_ns;
	record->cpu = bpf_get_smp_processor_id();
	fill_thread(&record->next, next);
	fill_thread(&record->prev, prev);
}

static __always_inline void send_wait(struct sonde_runq_counters *count, struct task_struct *prev, struct task_struct *next, __u64 wait_ns)
{
	struct sonde_runq_record record = {};

	fill_wait(&record, prev, next, wait_ns);
	if (bpf_ringbuf_output(&waits, &record, sizeof(record),
			       bpf_ringbuf_query(&waits, BPF_RB_AVAIL_DATA) > cfg.ring_wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
		count->lost++;
	else
		count->sent++;
}

/* Goes on to the program that takes the stacks and sends the wait with them. */
static __always_inline void go_on_to_stacks(void *ctx, struct sonde_runq_counters *count, struct task_struct *prev,
					    struct task_struct *next, __u64 wait_ns)
{
	struct sonde_runqslower_record *record = zeroth(&slow);

	if (!record)
		return; /* there is always one */
	fill_wait(&record->wait, prev, next, wait_ns);
	bpf_tail_call(ctx, &runqslower_programs, 0);
	count->lost++; /* the program is not loaded */
}

static __always_inline bool is_waiting(const struct thread *known, struct task_struct *task)
{
	return known && known->queued_ns && known->nr_runs == task->sched_info.pcount;
}

static __always_inline void begin_wait(struct thread *known, struct task_struct *task)
{
	known->queued_ns = bpf_ktime_get_ns();
	known->nr_runs = task->sched_info.pcount;
}

/* A thread that is on a CPU, and was only about to leave it, begins no wait. */
static __always_inline int on_ready(struct task_struct *task)
{
	struct thread *known = task->on_cpu ? 0 : bpf_task_storage_get(&threads, task, 0, 0);

	if (known && !is_waiting(known, task))
		begin_wait(known, task);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sonde_wakeup, struct task_struct *task)
{
	return on_ready(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sonde_wake_new, struct task_struct *task)
{
	return on_ready(task);
}

/* The thread leaves the CPU while still ready to run. */
static __always_inline void put_back(struct task_struct *prev)
{
	struct thread *known = bpf_task_storage_get(&threads, prev, 0, 0);

	if (known)
		begin_wait(known, prev);
}

/* Returns in *ret_ns how long `next` has waited. False: not known. */
static __always_inline bool wait_of(struct sonde_runq_counters *count, struct task_struct *next, __u64 *ret_ns)
{
	struct thread *known = bpf_task_storage_get(&threads, next, 0, 0);
	__u64 now_ns;

	if (is_waiting(known, next)) {
		now_ns = bpf_ktime_get_ns();
		*ret_ns = now_ns > known->queued_ns ? now_ns - known->queued_ns : 0; /* CPUs' clocks differ by nanoseconds */
		return true;
	}
	if (!next->sched_info.last_queued) {
		count->no_time++;
		return false;
	}
	count->by_account++;
	*ret_ns = queue_clock(next) - next->sched_info.last_queued;
	return true;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sonde_wait_end, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct sonde_runq_counters *count = zeroth(&runq_counters);
	__u64 wait;

	if (prev->pid && (preempt || !task_state(prev)))
		put_back(prev);
	if (!next->pid || !count) /* the idle thread does not wait */
		return 0;
	count->events++;
	if (!is_asked_for(next)) {
		count->filtered++;
		return 0;
	}
	if (!wait_of(count, next, &wait))
		return 0;
	if (runq_cfg.histogram)
		count_value(count, next, wait);
	else
		count->counted++;
	if (wait <= runq_cfg.slower_ns)
		return 0;
	if (runq_cfg.stacks)
		go_on_to_stacks(ctx, count, prev, next, wait);
	else
		send_wait(count, prev, next, wait);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sonde_stay_end, bool preempt, struct task_struct *prev)
{
	struct sonde_runq_counters *count = zeroth(&runq_counters);

	if (!prev->pid || !count)
		return 0;
	count->events++;
	if (is_asked_for(prev))
		count_value(count, prev, queue_clock(prev) - prev->sched_info.last_arrival);
	else
		count->filtered++;
	return 0;
}

static __always_inline void add_length(__u32 which, __u32 running)
{
	struct sonde_runq_histogram *h = bpf_map_lookup_elem(&histograms, &which);
	__u32 length = running ? running - 1 : 0, slot; /* one of them is on the CPU */

	if (!h)
		return;
	slot = length < SONDE_RUNQ_SLOTS ? length : SONDE_RUNQ_SLOTS - 1;
	barrier_var(slot); /* so that the mask is where the verifier of 5.10 looks */
	h->slots[slot & (SONDE_RUNQ_SLOTS - 1)]++;
	h->sum += length;
}

SEC("perf_event")
int sonde_length(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct rq *rq = BPF_CORE_READ(task, se.cfs_rq, rq);
	struct cfs_rq___queued *queued = (void *)&rq->cfs;
	__u32 all = BPF_CORE_READ(rq, nr_running), fair;
	struct sonde_runq_counters *count = zeroth(&runq_counters);

	if (!count)
		return 0;
	count->events++;
	count->counted++;
	if (bpf_core_field_exists(queued->h_nr_runnable)) {
		fair = BPF_CORE_READ(queued, h_nr_runnable);
		all -= BPF_CORE_READ(queued, h_nr_queued) - fair;
	} else {
		fair = BPF_CORE_READ(rq, cfs.h_nr_running);
	}
	add_length(SONDE_RUNQ_LENGTH_ALL, all);
	add_length(SONDE_RUNQ_LENGTH_FAIR, fair);
	return 0;
}

/* Runs before the thread is first queued. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(sonde_birth, struct task_struct *parent, struct task_struct *child)
{
	bpf_task_storage_get(&threads, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}

SEC("iter/task")
int sonde_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task; /* read once: Linux 6.1 applies a check only to the value that was checked */

	own_tgid = bpf_get_current_pid_tgid() >> 32;
	if (task)
		bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
