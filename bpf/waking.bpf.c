// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who ends a wait: runs when a thread wakes another up, in the waker. The waker's stacks are taken as those of a switch (bpf/sched.bpf.c),
 * and their hash is stored with the thread that is woken up. A waker is sent once. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi/wait.h"
#include "lib/comm.h"
#include "lib/filter.h"
#include "lib/maps.h"
#include "lib/scratch.h"
#include "lib/send.h"
#include "lib/user_walk.h"
#include "lib/thread.h"
#include "lib/wait_counters.h"
#include "lib/map.h"

static const bool scratch_nests = true;
static const bool deferred_leaves_room = true;
static const __u32 deferred_max_pages = 16; /* the run queue's lock is held: 10 us */
static const int walk_is_recorded = 1;
static const bool tasks_are_typed = true;

#define ENTRY_BYTES 64 /* longer than the entry code of a fault */

struct { /* working memory for wakers, one per CPU */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_waker_record);
} wakers MAP("sonde_wakers");

extern const void asm_exc_page_fault __ksym __weak;

/* True if an interrupt has struck the current thread, which then is not the waker. Interrupts have a stack of their own, except on x86-64
 * when they strike in user code. Those leave no system call number, as faults do not. FRED tells the two apart. Without it faults enter by
 * the entry code of page faults, whose return address is below the registers. A kernel with larger stacks (64 KiB pages) keeps the
 * registers farther up. */
static __noinline bool in_interrupt(struct task_struct *task, __u64 *ctx, struct scratch *s, bool has_user)
{
	__u64 low = as_number(s, task->stack), off = as_number(s, ctx) - low;
#ifndef SONDE_ARM64
	__u64 entry = 0, ss = 0;
	const void *regs;
#endif

	if (off >= stack_bytes(task) &&
	    off >= as_number(s, saved_regs_of(task)) - low) /* the arguments are on the stack in use */
		return true;
#ifdef SONDE_ARM64
	return false;
#else
	if (!has_user || s->syscall != NO_SYSCALL)
		return false;
	regs = saved_regs((void *)task);
	bpf_probe_read_kernel(&ss, sizeof(ss), regs + offsetof(user_regs_t, ss));
	if (is_fred(ss))
		return fred_event(ss) == FRED_INTERRUPT;
	bpf_probe_read_kernel(&entry, sizeof(entry), regs - sizeof(entry));
	return entry - (__u64)&asm_exc_page_fault >= ENTRY_BYTES;
#endif
}

static __always_inline __u64 hash_waker(const struct sonde_wait_key *waker)
{
	const __u64 *words = (const void *)waker;
	__u64 hash = hash_step(cfg.hash_seed, SONDE_RECORD_WAKER);

#pragma clang loop unroll(full)
	for (__u32 i = 0; i < sizeof(*waker) / sizeof(*words); i++)
		hash = hash_step(hash, words[i]);
	return hash;
}

static __always_inline void send_wakeup(struct task_struct *task, __u64 hash, struct scratch *s)
{
	struct sonde_wakeup_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	struct sonde_wait_counters *count;

	if (!record) {
		count = wait_count();
		if (count)
			count->events_lost++;
		return;
	}
	*record = (struct sonde_wakeup_record){ .type = SONDE_RECORD_WAKEUP,
						.cpu = s->sample.cpu,
						.time_ns = s->sample.time_ns,
						.tgid = task->tgid,
						.tid = task->pid,
						.waker = hash };
	bpf_ringbuf_submit(record, wake_flag());
}

/* Sends the waker, unless it was sent before. */
static __always_inline void send_waker(struct sonde_waker_record *waker, struct cache *cache, struct scratch *s)
{
	enum sonde_stack_state state = SONDE_STACK_STORED;

	if (!is_sent(waker->hash)) {
		set_time(s);
		waker->type = SONDE_RECORD_WAKER;
		waker->time_ns = s->sample.time_ns;
		state = send_payload(waker, sizeof(*waker), sizeof(*waker), waker->hash, wake_flag());
	}
	if (cache && state == SONDE_STACK_STORED)
		cache->waker = waker->hash;
}

/* Makes what was found the waker of the task. */
static __always_inline int end_waking(struct task_struct *task, struct thread *thread, struct cache *cache, struct scratch *s)
{
	struct sonde_waker_record *waker = zeroth(&wakers);

	if (!thread || !waker) {
		scratch_leave(s);
		return 0;
	}
	__builtin_memset(waker, 0, sizeof(*waker));
	waker->waker.tgid = s->sample.tgid;
	waker->waker.tid = s->sample.tid;
	waker->waker.syscall = SONDE_NO_SYSCALL;
	__builtin_memcpy(waker->waker.comm, s->sample.comm, sizeof(waker->waker.comm));
	take_ids(&waker->waker, s);
	if (cache)
		end_stack_cache(cache, s);
	waker->hash = hash_waker(&waker->waker);
	thread->waker = waker->hash;
	if (!cache || cache->waker != waker->hash)
		send_waker(waker, cache, s);
	if (cfg.events) {
		set_time(s);
		send_wakeup(task, waker->hash, s);
	}
	scratch_leave(s);
	return 0;
}

static __always_inline struct cache *caches_of(struct task_struct *task)
{
	return bpf_task_storage_get(&waker_caches, task, 0, 0);
}

/* Runs after the programs of the runtimes. */
SEC("tp_btf/sched_waking")
int sonde_woken(__u64 *ctx)
{
	struct scratch *s = scratch_of_run(ctx);
	struct task_struct *task = (void *)ctx[0];

	return s ? end_waking(task, thread_of(task), caches_of(bpf_get_current_task_btf()), s) : 0;
}

/* A function of its own, for the 512 bytes of stack that all calls share. */
static __noinline struct scratch *take_scratch(const void *ctx)
{
	return scratch_take(ctx);
}

static __always_inline int take_stacks(__u64 *ctx, struct sonde_wait_counters *count)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cache *cache = caches_of_window(caches_of(task));
	struct scratch *s = take_scratch(ctx);
	const user_regs_t *regs;
	bool has_user;

	if (!s)
		return 0; /* there is always one */
	regs = user_regs_of(task);
	has_user = take_syscall(regs, s);
	if (in_interrupt(task, ctx, s, has_user)) {
		begin_sample(s, 0, 0);
		has_user = false;
	} else {
		begin_sample(s, 0, (__u64)task->tgid << 32 | (__u32)task->pid);
		read_comm(task, (void *)s->sample.comm);
	}
	if (cfg.kernel_stacks)
		s->sample.kernel_state = kernel_stack_by_cache(task, ctx, s, cache, count);
	if (cfg.user_stacks && has_user)
		s->sample.user_state = user_stack_by_cache(task, regs, s, cache, count);
	/* looked up again: to save stack as well */
	return is_next_runtime(s) ? next_runtime(ctx, s) : end_waking((void *)ctx[0], thread_of((void *)ctx[0]), cache, s);
}

SEC("tp_btf/sched_waking")
int sonde_waking(__u64 *ctx)
{
	struct sonde_wait_counters *count = wait_count();
	struct thread *thread = thread_of((void *)ctx[0]);

	return thread && thread->is != THREAD_LEFT_OUT && is_event_of((void *)ctx[0]) && count ? take_stacks(ctx, count) : 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
