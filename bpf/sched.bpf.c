// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Waiting: runs at every switch of threads on every CPU, and sums how long each thread was off the CPU. At a thread's switch away its
 * stacks are taken, and kept with it. When it gets a CPU again, the time since then is added to the sum for that thread and these stacks.
 * So a wait costs no record: user space reads the sums later, and stacks are sent once.
 *
 * Stacks, deferred stacks and interpreters' frames are taken as the sampler does (bpf/profile.bpf.c), whose maps this one shares. */
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
#include "lib/waits.h"

static const bool scratch_nests = true;
static const bool deferred_leaves_room = true;
static const __u32 deferred_max_pages = 16; /* the run queue's lock is held: 10 us */
static const int walk_is_recorded = 1;
static const bool tasks_are_typed = true;

#define MANY_SHORT 4 /* after so many short waits the next one is assumed to be short as well */

volatile __u32 own_tgid; /* its threads are left out; as in the root PID namespace */

/* True if the thread is to be observed, for all of its life. Children of this program that were not requested are its helpers. */
static __always_inline bool is_kept(struct task_struct *task, bool is_target_now)
{
	__u32 tgid = task->tgid, parent = task->real_parent->tgid;
	bool is_kernel = task->flags & PF_KTHREAD;

	if (!task->pid || (cfg.user_threads_only && is_kernel) || (cfg.kernel_threads_only && !is_kernel))
		return false;
	if (cfg.filter_tgid || cfg.filter_tid)
		return is_target_now && tgid != own_tgid;
	return tgid != own_tgid && parent != own_tgid;
}

/* At the first switch of a thread that was off the CPU at the start: makes what the iterator found of its wait the thread's current
 * wait. */
static __always_inline void take_initial_stack(struct thread *thread)
{
	if (thread->is != THREAD_INITIAL)
		return;
	thread->key = thread->initial_stack.key;
	thread->run_delay = thread->initial_stack.run_delay;
	thread->exec_ns = thread->initial_stack.exec_ns;
	thread->is = THREAD_OFF;
}

/* Marks the thread's time as counted up to now. Returns until when it was counted before, which the iterator may have moved on. */
static __always_inline __u64 count_up_to(struct thread *thread, __u64 now_ns)
{
	return __sync_lock_test_and_set(&thread->counted_ns, now_ns);
}

/* Adds the part before the border of a wait that ends to the window that ended there, unless the iterator was faster. Returns from when on
 * the wait counts in this window. */
static __always_inline __u64 cut_wait(struct thread *thread, __u64 from_ns, __u64 now_ns)
{
	__u64 window_ns = limits.window_ns, border_ns = WINDOW_BEGIN(window_ns);

	if (from_ns >= border_ns || now_ns < border_ns || !is_cut_at(thread->since_ns, border_ns))
		return from_ns;
	thread->key.window = window_ns - 1;
	thread->key.waker = 0;
	add_cut(&thread->key, counted_ns(from_ns, border_ns));
	return border_ns;
}

static __always_inline __u64 waker_of(const struct sonde_wait_key *key, const struct thread *thread)
{
	return cfg.wake && key->state != SONDE_WAIT_PREEMPTED ? thread->waker : 0;
}

/* A function of its own, verified once, as it has two callers. */
WALK_FUNCTION int wait_ended(struct thread *thread, __u64 now_ns)
{
	__u64 from_ns;

	if (!thread)
		return 0;
	from_ns = cut_wait(thread, count_up_to(thread, now_ns), now_ns);

	thread->key.waker = waker_of(&thread->key, thread);
	thread->off_ns = counted_ns(from_ns, now_ns);
	thread->whole_ns = counted_ns(thread->since_ns, now_ns);
	thread->nr_short = now_ns - thread->since_ns < limits.min_off_ns ? thread->nr_short + 1 : 0;
	return 0;
}

static __always_inline void switched_in(struct thread *thread, __u64 now_ns, struct sonde_wait_counters *count)
{
	if (thread->is == THREAD_OFF) {
		wait_ended(thread, now_ns);
	} else if (thread->is != THREAD_LEFT_OUT) {
		count->unseen += counted_ns(0, now_ns) != 0;
	}
	thread->waker = 0;
	thread->is = THREAD_ON;
	thread->since_ns = thread->counted_ns = now_ns;
}

/* The thread leaves a CPU, but was not seen to arrive there: no program runs when certain threads leave a CPU (those of an init that must
 * not be observed). The scheduler's own account tells since when it was there. */
static __always_inline void came_unseen(struct task_struct *task, struct thread *thread, __u64 now_ns, struct sonde_wait_counters *count)
{
	__u64 running_ns = task->se.sum_exec_runtime - thread->exec_ns,
	      came_ns = running_ns < now_ns - thread->since_ns ? now_ns - running_ns : thread->since_ns;

	switched_in(thread, came_ns > thread->counted_ns ? came_ns : thread->counted_ns, count); /* the iterator may have split its wait */
}

/* Adds the wait before the thread's last time on a CPU: only after that is its time on a queue known. */
static __always_inline void add_last_wait(struct task_struct *task, struct thread *thread, struct sonde_wait_counters *count)
{
	__u64 whole_ns = thread->whole_ns ? __sync_lock_test_and_set(&thread->whole_ns, 0) : 0;

	if (!whole_ns)
		return;
	thread->key.window = window_at(limits.window_ns, thread->since_ns);
	add_wait(&thread->key, thread->off_ns, run_delay(task) - thread->run_delay - thread->cut_queued_ns, whole_ns, count);
}

/* Adds the thread's time on CPUs that is in no sum yet. */
static __always_inline void flush_running(struct thread *thread)
{
	__u64 running_ns = thread->running_ns ? __sync_lock_test_and_set(&thread->running_ns, 0) : 0;

	add_running(&thread->key, running_ns, thread->running_window);
}

/* With `wall`. Each name of a thread has a sum of its own, in each window. */
static __always_inline void flush_if_other(struct task_struct *task, struct thread *thread, const __u64 *comm, __u64 now_ns)
{
	const __u64 *old = (const void *)thread->key.comm;

	if (old[0] != comm[0] || old[1] != comm[1] || thread->key.tid != (__u32)task->pid ||
	    thread->running_window != window_at(limits.window_ns, now_ns))
		flush_running(thread);
}

/* With `wall`: adds the time on CPUs up to now, for the name in the key. */
static __always_inline void add_slice(struct thread *thread, __u64 now_ns)
{
	__u64 window_ns = limits.window_ns, border_ns = WINDOW_BEGIN(window_ns), from_ns = count_up_to(thread, now_ns);

	if (thread->is != THREAD_UNKNOWN && thread->is != THREAD_ON)
		return;
	if (from_ns < border_ns && now_ns >= border_ns) {
		add_running(&thread->key, counted_ns(from_ns, border_ns), window_ns - 1);
		from_ns = border_ns;
	}
	thread->running_ns += counted_ns(from_ns, now_ns);
	thread->running_window = window_at(window_ns, now_ns);
}

/* With `events`. NULL: the thread that leaves the CPU is not among the targets, or is the idle one. */
static __always_inline void send_switch(const __u64 *ctx, const struct thread *thread, __u64 now_ns)
{
	struct sonde_switch_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct sonde_wait_counters *count;

	if (!record) {
		count = wait_count();
		if (count)
			count->events_lost++;
		return;
	}
	record->type = SONDE_RECORD_SWITCH;
	record->cpu = bpf_get_smp_processor_id();
	record->time_ns = now_ns;
	record->next_tgid = next->tgid;
	record->next_tid = next->pid;
	read_comm(next, (void *)record->next_comm);
	if (thread) {
		record->prev = thread->key;
	} else {
		__builtin_memset(&record->prev, 0, sizeof(record->prev));
		record->prev.tgid = prev->tgid;
		record->prev.tid = prev->pid;
		record->prev.syscall = SONDE_NO_SYSCALL;
		record->prev.state = switch_state(ctx);
		read_comm(prev, (void *)record->prev.comm);
	}
	bpf_ringbuf_submit(record, wake_flag());
}

static __always_inline int end_switch(const __u64 *ctx, struct thread *thread, struct scratch *s)
{
	take_ids(&thread->key, s);
	end_stack_cache(&thread->cache, s);
	if (cfg.events)
		send_switch(ctx, thread, s->sample.time_ns);
	scratch_leave(s);
	return 0;
}

/* Runs after the programs of the runtimes. */
SEC("tp_btf/sched_switch")
int sonde_switched(__u64 *ctx)
{
	struct scratch *s = scratch_of_run(ctx);
	struct thread *thread = thread_of((void *)ctx[1]);

	if (s && thread)
		return end_switch(ctx, thread, s);
	if (s)
		scratch_leave(s); /* cannot happen: it has storage */
	return 0;
}

static __always_inline int take_stacks(__u64 *ctx, struct thread *thread, __u64 now_ns, struct sonde_wait_counters *count)
{
	struct scratch *s = scratch_take(ctx);
	struct task_struct *task = (void *)ctx[1];
	struct cache *cache = caches_of_window(&thread->cache);
	const user_regs_t *regs;
	bool has_user;

	if (!s)
		return 0; /* there is always one */
	begin_sample(s, now_ns, (__u64)thread->key.tgid << 32 | thread->key.tid);
	regs = user_regs_of(task);
	has_user = take_syscall(regs, s);
	thread->key.syscall = syscall_of(s->syscall, s->compat);
	if (cfg.kernel_stacks)
		s->sample.kernel_state = kernel_stack_by_cache(task, ctx, s, cache, count);
	if (cfg.user_stacks && has_user)
		s->sample.user_state = user_stack_by_cache(task, regs, s, cache, count);
	return is_next_runtime(s) ? next_runtime(ctx, s) : end_switch(ctx, thread, s);
}

/* With --max-overhead: the thread's last waits were all too short to count, and its stacks were taken in vain. If this wait is longer, it
 * has no stacks. */
static __always_inline int leave_stacks_out(const __u64 *ctx, struct thread *thread, __u64 now_ns)
{
	thread->key.ids = (struct sonde_stack_ids){ .user_state = SONDE_STACK_LOST, .kernel_state = SONDE_STACK_LOST };
	thread->key.syscall = SONDE_NO_SYSCALL;
	if (cfg.events)
		send_switch(ctx, thread, now_ns);
	return 0;
}

/* Applies the filters to a thread that leaves a CPU, or stays off one. */
static __always_inline bool is_asked_for(struct task_struct *task, __u16 state, const void *comm)
{
	if ((cfg.state > 0 && !(state & cfg.state)) || (!cfg.state && state))
		return false;
	return is_wanted_now(task, comm);
}

static __always_inline void begin_key(struct sonde_wait_key *key, struct task_struct *task, __u16 state, const __u64 *comm)
{
	key->tgid = task->tgid;
	key->tid = task->pid;
	key->state = state;
	__builtin_memcpy(key->comm, comm, sizeof(key->comm));
}

static __always_inline void begin_wait(struct thread *thread, struct task_struct *task, __u16 state, const __u64 *comm)
{
	thread->run_delay = run_delay(task);
	thread->exec_ns = task->se.sum_exec_runtime;
	thread->cut_queued_ns = 0;
	begin_key(&thread->key, task, state, comm);
}

/* The wait of the thread that leaves the CPU is not recorded. The switch is still an event if one of its two threads is a target. */
static __always_inline int without_wait(const __u64 *ctx, __u64 now_ns, bool is_event)
{
	if (cfg.events && (is_event || (thread_of((void *)ctx[2]) && is_event_of((void *)ctx[2]))))
		send_switch(ctx, 0, now_ns);
	return 0;
}

/* The thread that leaves the CPU; NULL: it never was a target. */
struct leaving {
	struct thread *thread;
	__u64 *comm; /* in struct making: the stack has no room for it */
	__u16 state;
	bool is_asked;
};

/* True if the time of the switch matters. If both threads are known only as excluded, it does not. */
static __always_inline bool is_timed(const struct leaving *leaving, const struct thread *coming)
{
	if (cfg.wall || cfg.events || (coming && coming->is != THREAD_LEFT_OUT))
		return true;
	return leaving->thread && (leaving->is_asked || leaving->thread->is == THREAD_OFF);
}

static __always_inline int switched_out(__u64 *ctx, struct leaving *leaving, __u64 now_ns, struct sonde_wait_counters *count)
{
	struct thread *thread = leaving->thread;
	struct task_struct *task = (void *)ctx[1];

	if (thread->is == THREAD_OFF)
		came_unseen(task, thread, now_ns, count);
	add_last_wait(task, thread, count);
	if (cfg.wall && leaving->is_asked)
		flush_if_other(task, thread, leaving->comm, now_ns);
	else if (cfg.wall) /* until now it had another name or cgroup */
		flush_running(thread);
	if (leaving->is_asked)
		begin_wait(thread, task, leaving->state, leaving->comm);
	if (cfg.wall && leaving->is_asked)
		add_slice(thread, now_ns);
	thread->since_ns = thread->counted_ns = now_ns;
	if (leaving->state & TASK_DEAD) {
		flush_running(thread);
		thread->is = THREAD_GONE;
		return without_wait(ctx, now_ns, leaving->is_asked);
	}
	if (!leaving->is_asked) {
		thread->is = THREAD_LEFT_OUT;
		count->filtered_target++;
		return without_wait(ctx, now_ns, false);
	}
	thread->is = THREAD_OFF;
	if (limits.is_thrifty && thread->nr_short >= MANY_SHORT)
		return leave_stacks_out(ctx, thread, now_ns);
	return take_stacks(ctx, thread, now_ns, count);
}

static __always_inline struct thread *look_at_leaving(const __u64 *ctx, struct leaving *leaving)
{
	struct task_struct *task = (void *)ctx[1];
	struct making *made = making();

	leaving->thread = task->pid && made ? thread_of(task) : 0;
	if (!leaving->thread)
		return 0;
	leaving->comm = made->comm;
	take_initial_stack(leaving->thread);
	leaving->state = switch_state(ctx);
	read_comm(task, leaving->comm);
	leaving->is_asked = is_asked_for(task, leaving->state, leaving->comm);
	return leaving->thread;
}

SEC("tp_btf/sched_switch")
int sonde_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct sonde_wait_counters *count = wait_count();
	struct leaving leaving = { 0 };
	struct thread *coming;
	__u64 now_ns;

	if (!count)
		return 0; /* there is always one */
	count->switches++;
	coming = next->pid ? thread_of(next) : 0;
	if (coming)
		take_initial_stack(coming);
	if (!look_at_leaving(ctx, &leaving)) {
		count->filtered_target += prev->pid != 0;
		if (!coming)
			return 0; /* before anything that costs more */
	}
	now_ns = is_timed(&leaving, coming) ? bpf_ktime_get_ns() : 0;
	if (coming)
		switched_in(coming, now_ns, count);
	return leaving.thread ? switched_out(ctx, &leaving, now_ns, count) : without_wait(ctx, now_ns, false);
}

static __always_inline struct thread *make_thread(struct task_struct *task, bool is_target_now, struct sonde_wait_counters *count)
{
	struct thread *thread;

	if (!is_kept(task, is_target_now))
		return 0;
	if (cfg.wake || cfg.events)
		bpf_task_storage_get(&waker_caches, task, 0,
				     BPF_LOCAL_STORAGE_GET_F_CREATE); /* without it, its stacks are walked each time */
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		count->no_storage++;
	return thread;
}

/* A thread starts; current is its creator. Until its first switch to a CPU it waits like a preempted thread. */
SEC("tp_btf/task_newtask")
int BPF_PROG(sonde_newtask, struct task_struct *task)
{
	bool is_target_now = is_target(task->tgid, task->pid) || (cfg.command_tgid && is_target(bpf_get_current_pid_tgid() >> 32, 0));
	struct sonde_wait_counters *count = wait_count();
	struct thread *thread = count ? make_thread(task, is_target_now, count) : 0;

	if (!thread || thread->is != THREAD_UNKNOWN)
		return 0;
	read_comm(task, (void *)thread->key.comm);
	thread->key.tgid = task->tgid;
	thread->key.tid = task->pid;
	thread->key.syscall = SONDE_NO_SYSCALL;
	thread->since_ns = thread->counted_ns = bpf_ktime_get_ns();
	thread->is = cfg.wall && is_asked_for(task, SONDE_WAIT_PREEMPTED, thread->key.comm) ? THREAD_OFF : THREAD_LEFT_OUT;
	return 0;
}

/* The command begins, on a CPU: no switch of it was seen yet. Its later execs change nothing. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(sonde_command, struct task_struct *task)
{
	struct sonde_wait_counters *count = wait_count();
	struct thread *thread = count && (__u32)task->tgid == cfg.command_tgid ? make_thread(task, true, count) : 0;

	if (thread && !thread->since_ns)
		thread->since_ns = thread->counted_ns = bpf_ktime_get_ns();
	return 0;
}

/* Sends the registers: user space walks the user stack, as it can wait for the pages. */
static __always_inline enum sonde_stack_state send_initial_stack(struct scratch *s, __u64 id)
{
	struct sonde_initial_stack_record *initial_stack = bpf_ringbuf_reserve(&ring, sizeof(*initial_stack), 0);

	if (!initial_stack)
		return SONDE_STACK_LOST;
	__builtin_memset(initial_stack, 0, sizeof(*initial_stack));
	initial_stack->type = SONDE_RECORD_INITIAL_STACK;
	initial_stack->tgid = s->sample.tgid;
	initial_stack->tid = s->sample.tid;
	initial_stack->time_ns = s->sample.time_ns;
	initial_stack->id = id;
	for (int i = 0; i < SONDE_NR_REGS; i++)
		initial_stack->regs[i] = s->deferred.regs[i];
	initial_stack->compat = s->deferred.compat;
	initial_stack->in_syscall = 1;
	bpf_ringbuf_submit(initial_stack, 0);
	return SONDE_STACK_DEFERRED;
}

/* A function of its own, for its copy of the registers. */
static __noinline int take_regs_of(struct task_struct *task, struct scratch *s)
{
	return user_regs(task, saved_regs_of(task), &s->walk, &s->deferred);
}

/* Describes the wait of a thread that is off the CPU when the recording begins, unless the thread has been given one meanwhile. */
static __always_inline void add_initial_stack(const void *ctx, struct task_struct *task, struct thread *thread)
{
	struct scratch *s = scratch_take(ctx); /* switches go on */
	struct initial_wait *initial_stack = &thread->initial_stack;
	__u64 comm[SONDE_COMM_BYTES / 8];
	__u16 state = task_state(task), syscall = SONDE_NO_SYSCALL;
	__u64 now_ns = bpf_ktime_get_ns();

	if (!s)
		return;
	read_comm(task, comm);
	begin_sample(s, now_ns, (__u64)task->tgid << 32 | (__u32)task->pid);
	if (cfg.kernel_stacks)
		s->sample.kernel_state =
		    kernel_state(s, bpf_get_task_stack(task, s->stack.frames, SONDE_MAX_KERNEL_FRAMES * sizeof(__u64), 0), 0, now_ns,
				 &s->sample.kernel_stack);
	if (take_regs_of(task, s)) {
		syscall = syscall_of(s->walk.syscall, s->walk.compat);
		s->sample.user_stack = hash_step(hash_step(hash_step(cfg.hash_seed, SONDE_RECORD_INITIAL_STACK), now_ns), s->sample.tid);
		if (cfg.user_stacks)
			s->sample.user_state = send_initial_stack(s, s->sample.user_stack);
	}
	initial_stack->run_delay = run_delay(task);
	initial_stack->exec_ns = task->se.sum_exec_runtime;
	begin_key(&initial_stack->key, task, state, comm);
	initial_stack->key.syscall = syscall;
	initial_stack->key.ids = s->sample.ids;
	scratch_leave(s);
	/* else it has had a CPU meanwhile, and the wait found is over */
	__sync_val_compare_and_swap(&thread->is, THREAD_UNKNOWN, is_asked_for(task, state, comm) ? THREAD_INITIAL : THREAD_LEFT_OUT);
}

/* Runs once at the start, called by the reader itself. */
SEC("iter/task")
int sonde_list(struct bpf_iter__task *ctx)
{
	struct sonde_wait_counters *count = iterator_count();
	struct task_struct *task = ctx->task;
	struct thread *thread;

	own_tgid = bpf_get_current_pid_tgid() >> 32;
	if (!task || !count || task->exit_state)
		return 0;
	thread = make_thread(task, is_target(task->tgid, task->pid), count);
	if (!thread || task->on_cpu || thread->is != THREAD_UNKNOWN)
		return 0;
	add_initial_stack(ctx, task, thread);
	return 0;
}

/* What a thread has in the window that ends. */
struct cutting {
	struct task_struct *task;
	struct thread *thread;
	__u64 end_ns;
	bool is_over; /* there are no more switches */
	struct sonde_wait_piece piece;
};

static __always_inline void give(struct bpf_iter__task *ctx, struct cutting *cutting, struct sonde_wait_counters *count)
{
	count->waits += cutting->piece.key.what == SONDE_WAIT_OFF && cutting->piece.sum.nr_waits;
	bpf_seq_write(ctx->meta->seq, &cutting->piece, sizeof(cutting->piece));
}

/* Moves *number from `from` to `to`. On success the caller's copy of the key is valid: a key changes only after these numbers. */
static __always_inline bool claim(__u64 *number, __u64 from, __u64 to)
{
	return __sync_val_compare_and_swap(number, from, to) == from;
}

/* Writes the wait before the thread's time on its CPU. */
static __always_inline void cut_last_wait(struct bpf_iter__task *ctx, struct cutting *cutting, struct sonde_wait_counters *count)
{
	struct thread *thread = cutting->thread;
	struct sonde_wait_piece *piece = &cutting->piece;
	__u64 whole_ns = thread->whole_ns, off_ns = thread->off_ns,
	      queued_ns = run_delay(cutting->task) - thread->run_delay - thread->cut_queued_ns;

	if (!whole_ns || (!cutting->is_over && thread->since_ns >= cutting->end_ns)) /* it ended behind the border */
		return;
	piece->key = thread->key;
	piece->goes_on = 0;
	if (!claim(&thread->whole_ns, whole_ns, 0))
		return;
	if (!is_length_asked_for(whole_ns)) {
		count->filtered_time++;
		return;
	}
	piece->sum = (struct sonde_wait_sum){ .nr_waits = 1,
					      .off_ns = off_ns,
					      .queued_ns = queued_part(&piece->key, off_ns, queued_ns),
					      .whole_ns = whole_ns,
					      .min_ns = whole_ns,
					      .max_ns = whole_ns };
	give(ctx, cutting, count);
}

/* How long the thread had been on a CPU's queue at then_ns, by the scheduler's clock, which may lag. */
static __always_inline __u64 queued_at(struct task_struct *task, __u64 then_ns)
{
	__u64 since = bpf_core_field_exists(task->sched_info.last_queued) ? task->sched_info.last_queued : 0;
	__u64 now = since && bpf_core_field_exists(task->se.cfs_rq) ? BPF_CORE_READ(task, se.cfs_rq, rq, clock) : 0;
	__u64 late_ns = bpf_ktime_get_ns() - then_ns;

	return now > since + late_ns ? now - since - late_ns : 0;
}

/* Writes a wait that goes on. */
static __always_inline void cut_wait_of(struct bpf_iter__task *ctx, struct cutting *cutting, const struct sonde_wait_key *key, __u64 delay,
					struct sonde_wait_counters *count)
{
	struct thread *thread = cutting->thread;
	struct sonde_wait_piece *piece = &cutting->piece;
	__u64 from_ns = thread->counted_ns, since_ns = thread->since_ns, whole_ns = counted_ns(since_ns, cutting->end_ns),
	      off_ns = counted_ns(from_ns, cutting->end_ns), queued_ns;
	bool counts = cutting->is_over ? is_length_asked_for(whole_ns) : is_cut_at(since_ns, cutting->end_ns);

	if (!off_ns)
		return;
	piece->key = *key;
	piece->key.waker = 0;
	piece->goes_on = !cutting->is_over;
	piece->waker = waker_of(key, thread);
	piece->sum = (struct sonde_wait_sum){ 0 };
	if (counts) {
		queued_ns = queued_part(
		    key, off_ns, run_delay(cutting->task) - delay - thread->cut_queued_ns + queued_at(cutting->task, cutting->end_ns));
		piece->sum =
		    (struct sonde_wait_sum){ .nr_waits = cutting->is_over, .off_ns = off_ns, .queued_ns = queued_ns, .max_ns = whole_ns };
		if (cutting->is_over)
			piece->sum.whole_ns = piece->sum.min_ns = whole_ns;
		if (!claim(&thread->counted_ns, from_ns, cutting->end_ns))
			return;
		thread->cut_queued_ns += queued_ns;
	} else {
		count->filtered_time += cutting->is_over;
	}
	if (counts || !cutting->is_over)
		give(ctx, cutting, count);
}

/* With `wall`: writes the thread's time on CPUs, up to now if it is still on one. */
static __always_inline void cut_running(struct bpf_iter__task *ctx, struct cutting *cutting, const struct sonde_wait_key *of, bool is_on,
					struct sonde_wait_counters *count)
{
	struct thread *thread = cutting->thread;
	struct sonde_wait_piece *piece = &cutting->piece;
	__u64 from_ns = thread->counted_ns, now_ns = is_on ? counted_ns(from_ns, cutting->end_ns) : 0, running_ns = thread->running_ns;

	begin_running_key(&piece->key, of, 0);
	piece->goes_on = 0;
	if (now_ns && !claim(&thread->counted_ns, from_ns, cutting->end_ns))
		now_ns = 0;
	if (!running_ns || (!cutting->is_over && thread->running_window == (__u8)limits.window_ns) ||
	    !claim(&thread->running_ns, running_ns, 0))
		running_ns = 0;
	piece->sum = (struct sonde_wait_sum){ .nr_waits = 1, .off_ns = now_ns + running_ns };
	if (piece->sum.off_ns)
		give(ctx, cutting, count);
}

/* A thread without a switch so far, which was on a CPU at the start: it still is, or its switch away was hidden. */
static __always_inline void cut_unknown(struct bpf_iter__task *ctx, struct cutting *cutting, __u64 *comm, struct sonde_wait_counters *count)
{
	struct task_struct *task = cutting->task;
	struct sonde_wait_key key = { .syscall = SONDE_NO_SYSCALL };
	__u16 state = task_state(task);

	if (!is_asked_for(task, state, comm))
		return;
	begin_key(&key, task, state, comm);
	if (task->on_cpu && cfg.wall)
		cut_running(ctx, cutting, &key, true, count);
	if (task->on_cpu)
		return;
	count->unseen += cutting->is_over;
	if (cfg.wall)
		cut_wait_of(ctx, cutting, &key, run_delay(task), count);
}

static __always_inline int cut_thread(struct bpf_iter__task *ctx, struct cutting *cutting, struct sonde_wait_counters *count)
{
	struct task_struct *task = cutting->task;
	struct thread *thread = cutting->thread;
	__u32 is = thread->is;
	__u64 comm[SONDE_COMM_BYTES / 8];

	read_comm(task, comm);
	if (is == THREAD_UNKNOWN) {
		cut_unknown(ctx, cutting, comm, count);
		return 0;
	}
	if (is == THREAD_ON)
		cut_last_wait(ctx, cutting, count);
	if (is == THREAD_OFF)
		cut_wait_of(ctx, cutting, &thread->key, thread->run_delay, count);
	if (is == THREAD_INITIAL)
		cut_wait_of(ctx, cutting, &thread->initial_stack.key, thread->initial_stack.run_delay, count);
	if (cfg.wall)
		cut_running(ctx, cutting, &thread->key, is == THREAD_ON && is_asked_for(task, SONDE_WAIT_PREEMPTED, comm), count);
	return 0;
}

#define PIECES_MAX 3 /* per thread */

/* Writes waits that have not ended, and what is in no sum yet: at a border, while switches go on, and at the end. What was claimed cannot
 * be given back, so there must be room for it. */
SEC("iter/task")
int sonde_cut(struct bpf_iter__task *ctx)
{
	struct sonde_wait_counters *count = iterator_count();
	struct cutting cutting = { .task = ctx->task, .is_over = limits.end_ns != ~0ULL };
	struct seq_file *seq = ctx->meta->seq;

	if (!cutting.task || !count)
		return 0;
	cutting.thread = thread_of(cutting.task);
	if (!cutting.thread || cutting.task->exit_state)
		return 0;
	if (seq->size - seq->count < PIECES_MAX * sizeof(cutting.piece))
		return 1; /* call again */
	cutting.end_ns = cutting.is_over ? limits.end_ns : WINDOW_BEGIN(limits.window_ns);
	return cut_thread(ctx, &cutting, count);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
