// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs of `leak`: uprobes at the functions of allocators keep each block from its allocation to its free, with the stack that asked
 * for it. A block is known by its address and process. It is added when the function has returned, before the program gets it, and removed
 * at the entry of free, before the allocator can hand it out again; so is what realloc gives up. Counters are atomic: uprobes may be
 * preempted. docs/internals/memory.md */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi/alloc.h"
#include "abi/alloc_chance.h"
#include "lib/event_regs.h"
#include "lib/filter.h"
#include "lib/log2.h"
#include "lib/maps.h"
#include "lib/scratch.h"
#include "lib/send.h"
#include "lib/user_walk.h"
#include "lib/user_regs.h"
#include "lib/user_stack_cache.h"
#include "lib/map.h"
#include "heap/hits.h"

static const int walk_is_recorded = 1;

#define SAME_STACK_BYTES 65536 /* frames of one allocator's functions are closer to each other */
#define MAX_UNMAPPED 64 /* regions, by one munmap */
#define MAP_IS_FIXED 0x10      /* MAP_FIXED, linux/mman.h of x86 and arm64 */
#define MAX_ERRNO 4095         /* linux/err.h: system calls return -1 to -4095 for errors; mmap(3) -1 */
#define EEXIST 17
#define SIGSTOP 19
#define E2BIG 7

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set by the loader: --max-live */
	__type(key, struct sonde_alloc_key);
	__type(value, struct sonde_alloc_block);
} alloc_blocks MAP("sonde_mem_block");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set by the loader: with alloc_cfg.sums */
	__type(key, struct sonde_alloc_sum_key);
	__type(value, struct sonde_alloc_sum);
} alloc_sums MAP("sonde_mem_sums");

const struct sonde_alloc_sum no_sum = {}; /* of a new stack; too large for the programs' stack */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_alloc_hold);
} alloc_hold MAP("sonde_mem_hold");

extern bool bpf_session_is_return(void) __ksym __weak;

static __always_inline bool is_ours(__u64 tgid_tid)
{
	char comm[SONDE_COMM_BYTES] = {};

	if (alloc_cfg.only_tgid)
		return tgid_tid >> 32 == alloc_cfg.only_tgid;
	if (cfg.filter_comm)
		bpf_get_current_comm(comm, sizeof(comm));
	return is_wanted((void *)bpf_get_current_task(), tgid_tid >> 32, tgid_tid, comm);
}

static __always_inline bool is_mapping_call(__u32 kind)
{
	return kind == SONDE_ALLOC_MMAP || kind == SONDE_ALLOC_MREMAP || kind == SONDE_ALLOC_MUNMAP;
}

static __always_inline struct sonde_alloc_key key_of(__u64 addr, __u32 tgid, __u32 kind)
{
	return (struct sonde_alloc_key){ .addr = addr,
					 .tgid = tgid,
					 .space = is_mapping_call(kind) ? SONDE_ALLOC_MAPPING : SONDE_ALLOC_HEAP };
}

/* --- the calls of a thread ------------------------------------------------------------------------------------------------------------ */

/* Is the thread in an allocator's function that called this one? Calls that ended without a return (an exception, longjmp) are forgotten:
 * their frames are gone once a call has its own at their place or above it. Only on the same stack: a signal may have another. */
WALK_FUNCTION int is_inner(struct thread *thread, __u64 sp)
{
	int inner = 0;

	for (int i = 0; thread && i < SONDE_ALLOC_CALLS; i++) {
		struct call *call = &thread->calls[i];

		if (!call->sp)
			continue;
		if (call->sp < sp && sp - call->sp < SAME_STACK_BYTES)
			call->sp = 0;
		else if (call->sp > sp && call->sp - sp < SAME_STACK_BYTES)
			inner = 1;
	}
	return inner;
}

/* Notes in the calls that are in progress what one that they made has returned. */
WALK_FUNCTION int note_inner(struct thread *thread, __u64 sp, __u64 addr, __u64 bytes)
{
	for (int i = 0; thread && i < SONDE_ALLOC_CALLS; i++) {
		struct call *call = &thread->calls[i];

		if (call->sp <= sp || call->sp - sp >= SAME_STACK_BYTES)
			continue;
		call->inner_addr = addr;
		call->inner_bytes = bytes;
	}
	return 0;
}

/* The number of the call with that frame (0: of a free one); SONDE_ALLOC_CALLS: there is none. */
WALK_FUNCTION __u32 number_at(const struct thread *thread, __u64 sp)
{
	__u32 number = SONDE_ALLOC_CALLS;

	for (int i = 0; thread && i < SONDE_ALLOC_CALLS; i++) {
		if (thread->calls[i].sp == sp)
			number = i;
	}
	return number;
}

static __always_inline struct call *call_at(struct thread *thread, __u64 sp)
{
	__u32 number = number_at(thread, sp);

	if (number >= SONDE_ALLOC_CALLS)
		return 0;
	barrier_var(number); /* so that the mask is where the verifier looks */
	return &thread->calls[number & (SONDE_ALLOC_CALLS - 1)];
}

/* Functions that may jump to another one with a size that they have rounded (tcmalloc's pvalloc). None of them throws, so a call of theirs
 * in the same frame is still in progress. */
static __always_inline bool jumps_on(__u32 kind)
{
	return kind == SONDE_ALLOC_PVALLOC || kind == SONDE_ALLOC_VALLOC || kind == SONDE_ALLOC_ALIGNED_ALLOC ||
	       kind == SONDE_ALLOC_MEMALIGN;
}

/* A place for the call: that of one with the same frame (a tail call, or one that is gone), else a free one. */
static __always_inline struct call *take_call(struct thread *thread, __u64 sp, struct sonde_alloc_counters *count)
{
	struct call *call = call_at(thread, sp) ?: call_at(thread, 0);

	if (call)
		return call;
	count_one(&count->overtaken);
	return &thread->calls[thread->next++ & (SONDE_ALLOC_CALLS - 1)];
}

/* --- arguments ------------------------------------------------------------------------------------------------------------------------ */

struct arguments { /* of the function, and where its frame begins */
	__u64 first, second, third, fourth, sp, pc;
};

/* Each is loaded here and kept: the verifier refuses a load from the context at a place that was computed, which compilers make of a choice
 * between two. */
static __always_inline struct arguments arguments_of(user_regs_t *ctx)
{
	struct arguments a = { .first = PT_REGS_PARM1(ctx),
			       .second = PT_REGS_PARM2(ctx),
			       .third = PT_REGS_PARM3(ctx),
			       .fourth = PT_REGS_PARM4(ctx),
			       .sp = PT_REGS_SP(ctx),
			       .pc = PT_REGS_IP(ctx) };

	barrier_var(a.first);
	barrier_var(a.second);
	barrier_var(a.third);
	barrier_var(a.fourth);
	barrier_var(a.sp);
	barrier_var(a.pc);
	return a;
}

/* A product that is too large does not matter: the call fails. */
static __always_inline __u64 bytes_of(const struct arguments *a, __u32 kind)
{
	switch (kind) {
	case SONDE_ALLOC_CALLOC: return a->first * a->second;
	case SONDE_ALLOC_REALLOCARRAY: return a->second * a->third;
	case SONDE_ALLOC_REALLOC:
	case SONDE_ALLOC_ALIGNED_ALLOC:
	case SONDE_ALLOC_MEMALIGN:
	case SONDE_ALLOC_MMAP: return a->second;
	case SONDE_ALLOC_POSIX_MEMALIGN:
	case SONDE_ALLOC_MREMAP: return a->third;
	}
	return a->first;
}

static __always_inline __u32 sampled_weight(__u64 bytes)
{
	__u64 chance = sonde_alloc_chance(bytes, alloc_cfg.sample_bytes);

	return bpf_get_prandom_u32() < chance ? sonde_alloc_weight(chance, bpf_get_prandom_u32()) : 0;
}

/* So many blocks it stands for; 0: it is left out. Verified by itself, as are other functions here: their branches would double what
 * follows. */
WALK_FUNCTION __u32 weight_of(__u64 bytes)
{
	if (alloc_cfg.min_bytes && bytes < alloc_cfg.min_bytes)
		return 0;
	if (alloc_cfg.max_bytes && bytes > alloc_cfg.max_bytes)
		return 0;
	if (alloc_cfg.sample_bytes)
		return sampled_weight(bytes);
	if (alloc_cfg.sample_rate > 1)
		return bpf_get_prandom_u32() % alloc_cfg.sample_rate ? 0 : alloc_cfg.sample_rate;
	return 1;
}

/* --- sums ----------------------------------------------------------------------------------------------------------------------------- */

static __always_inline struct sonde_alloc_sum *sum_of(const struct sonde_alloc_block *block, __u32 tgid)
{
	struct sonde_alloc_sum_key key = { .user_stack = block->user_stack,
					   .runtime_stack = block->runtime_stack,
					   .generation = block->generation,
					   .tgid = tgid,
					   .user_state = block->user_state,
					   .runtime_state = block->runtime_state };
	struct sonde_alloc_sum *sum = bpf_map_lookup_elem(&alloc_sums, &key);

	if (sum)
		return sum;
	bpf_map_update_elem(&alloc_sums, &key, &no_sum, BPF_NOEXIST); /* another thread may have done so */
	return bpf_map_lookup_elem(&alloc_sums, &key);
}

/* Adds a block to its stack's sum, or takes it out again (`sign` -1). 1: there was no room. */
WALK_FUNCTION int sum_block(const struct sonde_alloc_block *block, __u32 tgid, int sign)
{
	struct sonde_alloc_sum *sum;
	__u64 nr;
	__u32 slot;

	if (!block)
		return 0; /* never */
	sum = sum_of(block, tgid);
	if (!sum)
		return 1;
	nr = sign < 0 ? -(__u64)block->weight : block->weight;
	slot = log2_slot(block->bytes);
	__sync_fetch_and_add(&sum->nr, nr);
	__sync_fetch_and_add(&sum->bytes, nr * block->bytes);
	__sync_fetch_and_add(&sum->sizes[slot < SONDE_ALLOC_SIZES ? slot : SONDE_ALLOC_SIZES - 1], nr);
	return 0;
}

WALK_FUNCTION int sum_end(const struct sonde_alloc_block *block, __u32 tgid)
{
	struct sonde_alloc_sum *sum;
	__u64 us;
	__u32 slot;

	if (!block)
		return 0; /* never */
	sum = sum_of(block, tgid);
	if (!sum)
		return 0; /* counted when it was allocated */
	us = (bpf_ktime_get_ns() - block->time_ns) / 1000;
	slot = log2_slot(us);
	__sync_fetch_and_add(&sum->nr_freed, block->weight);
	__sync_fetch_and_add(&sum->lifetime_us, us * block->weight);
	__sync_fetch_and_add(&sum->lifetimes[slot < SONDE_ALLOC_LIFETIMES ? slot : SONDE_ALLOC_LIFETIMES - 1], block->weight);
	return 0;
}

/* A block that is gone. */
static __always_inline void end_block(const struct sonde_alloc_block *block, __u32 tgid)
{
	if (alloc_cfg.sums)
		sum_end(block, tgid);
}

/* Removes the block at that address, as its life has ended, or (`is_inner`) as it was never the program's. 0: there was none. */
WALK_FUNCTION int remove_block(__u64 addr, __u32 tgid, int is_inner)
{
	struct sonde_alloc_key key = { .addr = addr, .tgid = tgid, .space = SONDE_ALLOC_HEAP };
	struct sonde_alloc_block gone, *known = alloc_cfg.sums ? bpf_map_lookup_elem(&alloc_blocks, &key) : 0;

	if (known)
		gone = *known;
	if (bpf_map_delete_elem(&alloc_blocks, &key))
		return 0;
	if (known && is_inner)
		sum_block(&gone, tgid, -1);
	else if (known)
		sum_end(&gone, tgid);
	return 1;
}

/* --- blocks that go ------------------------------------------------------------------------------------------------------------------- */

/* Removes what realloc or mremap is given. A function that calls another one with the same block has removed it already. */
static __always_inline void remove_old(struct call *call, __u32 tgid, __u32 kind, __u64 old_addr, bool is_again, bool inner,
				       struct sonde_alloc_counters *count)
{
	struct sonde_alloc_key key = key_of(old_addr, tgid, kind);
	struct sonde_alloc_block *old;

	if (is_again)
		return;
	call->has_old = 0;
	call->old_addr = old_addr;
	if (!old_addr)
		return;
	old = bpf_map_lookup_elem(&alloc_blocks, &key);
	if (old) {
		call->old = *old;
		call->has_old = !bpf_map_delete_elem(&alloc_blocks, &key);
	}
	if (call->has_old)
		count_one(&count->frees);
	else if (!inner)
		count_one(kind == SONDE_ALLOC_MREMAP ? &count->unmaps_unknown : &count->frees_unknown);
}

static __always_inline __u64 whole_pages(__u64 bytes)
{
	return (bytes + SONDE_DEFERRED_PAGE_BYTES - 1) & -(__u64)SONDE_DEFERRED_PAGE_BYTES;
}

/* munmap may end several regions that follow each other; of the last one it may take only the beginning: the rest stays. What begins in the
 * middle of a region is not found. Returns the bytes that are not known. */
WALK_FUNCTION __u64 unmap(__u64 addr, __u64 bytes, __u32 tgid)
{
	struct sonde_alloc_key key = key_of(addr, tgid, SONDE_ALLOC_MUNMAP);
	struct sonde_alloc_counters *count = alloc_count();

	bytes = whole_pages(bytes);
	for (int i = 0; count && i < MAX_UNMAPPED && bytes; i++) {
		struct sonde_alloc_block *known = bpf_map_lookup_elem(&alloc_blocks, &key), rest;
		__u64 region;

		if (!known)
			break;
		rest = *known;
		if (bpf_map_delete_elem(&alloc_blocks, &key))
			break;
		count_one(&count->frees);
		region = whole_pages(rest.bytes);
		if (region > bytes) {
			rest.bytes -= bytes;
			key.addr += bytes;
			bpf_map_update_elem(&alloc_blocks, &key, &rest, BPF_ANY); /* into the place that has just become free */
			return 0;
		}
		end_block(&rest, tgid);
		bytes -= region;
		key.addr += region;
	}
	return bytes;
}

/* The kernel refuses these; nothing is unmapped then. */
static __always_inline bool is_possible(__u64 addr, __u64 bytes)
{
	return bytes && !(addr % SONDE_DEFERRED_PAGE_BYTES) && bytes < 1ULL << 57;
}

/* --- the entry ------------------------------------------------------------------------------------------------------------------------ */

/* In a new window payloads have to be sent again. */
static __always_inline void forget_stacks(struct thread *thread)
{
	__u64 number = window_number();

	if (thread->window == number)
		return;
	thread->window = number;
	for (int i = 0; i < STACKS; i++)
		thread->stacks[i].hash = 0;
}

static __always_inline void keep_ids(struct call *call, const struct scratch *s)
{
	call->block.user_stack = s->sample.user_stack;
	call->block.runtime_stack = s->sample.runtime_stack;
	call->block.generation = s->sample.generation;
	call->block.user_state = s->sample.user_state;
	call->block.runtime_state = s->sample.runtime_state;
}

/* After a walk and the programs of the runtimes. */
static __always_inline int end_stack(struct scratch *s)
{
	struct thread *thread = bpf_task_storage_get(&alloc_threads, bpf_get_current_task_btf(), 0, 0);
	struct call *call = thread ? call_at(thread, s->deferred.regs[WALK_REG_SP]) : 0;
	__u32 fresh;
	struct sonde_counters *shared = zeroth(&counters);

	if (shared && s->runtimes_left)
		count_one(&shared->runtimes_missed);
	send_runtime(s);
	if (call)
		keep_ids(call, s);
	fresh = thread ? thread->fresh - 1 : STACKS;
	if (fresh < STACKS)
		thread->stacks[fresh].is_bare = !s->runtime.nr_frames && !s->runtime.record.stop && !s->runtimes_left;
	if (thread)
		thread->fresh = 0;
	scratch_leave(s);
	return alloc_cfg.windows ? log_hit(thread, call) : 0;
}

/* Runs after the programs of the runtimes. */
SEC("kprobe")
int sonde_mem_stack(user_regs_t *ctx)
{
	struct scratch *s = scratch_of_run(ctx);

	return s ? end_stack(s) : 0;
}

/* As user_stack_cache_fits, for registers that are in the scratch's deferred record: a context's may not be read by a computed address. */
static __always_inline bool stack_fits(const struct stack_cache *cached, const struct scratch *s)
{
	const __u64 *regs = s->deferred.regs;
	__u64 differs = 0;

	if (!cached->hash || !cached->is_bare || cached->table_generation != s->table_generation || cached->exec != s->exec ||
	    cached->tls_base || (cached->nr_words && !cached->near_bytes))
		return false;
	if (cached->pc != regs[SONDE_REG_PC] || cached->sp != regs[WALK_REG_SP] || cached->bp != regs[WALK_REG_BP])
		return false;
#pragma clang loop unroll(full)
	for (int i = 0; i < WALK_NR_REGS; i++)
		differs |= (cached->regs[i] ^ regs[i]) & -(__u64)(cached->used_regs >> i & 1);
	return !differs;
}

WALK_FUNCTION __u64 known_stack(const struct stack_cache *cached, __u32 slot)
{
	struct scratch *s = scratch_of(slot);

	return s && cached && stack_fits(cached, s) ? user_stack_cache_hash(cached, slot) : 0;
}

/* The hash of the stack if the thread has had it (lib/user_stack_cache.h); else 0. */
static __always_inline __u64 find_stack(struct thread *thread, struct scratch *s)
{
	struct task_struct *task = bpf_get_current_task_btf();

	forget_stacks(thread);
	s->table_generation = table_generation_now();
	s->exec = task->self_exec_id;
	if (s->walk.compat)
		return 0;
	for (int i = 0; i < STACKS; i++) {
		__u64 hash = known_stack(&thread->stacks[i], s->walk.number);

		if (hash) {
			s->sample.generation = thread->stacks[i].generation;
			return hash;
		}
	}
	return 0;
}

/* Stops the process before its next instruction, and wakes the reader. The signal comes first: so user space, which sees `is_held`, lets it
 * go on after it was stopped. */
WALK_FUNCTION int hold_process(__u32 tgid)
{
	struct sonde_alloc_hold *hold = zeroth(&alloc_hold);
	void *wake;

	if (!hold || tgid != alloc_cfg.held_tgid || hold->nr >= SONDE_ALLOC_MAX_HOLDS || bpf_send_signal(SIGSTOP))
		return 0;
	hold->nr++;
	*(volatile __u32 *)&hold->is_held = 1;
	wake = bpf_ringbuf_reserve(&ring, sizeof(__u64), 0);
	if (wake)
		bpf_ringbuf_discard(wake, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* `known`: what the cache has; 0: nothing. */
static __always_inline void walk_stack(struct thread *thread, struct scratch *s, __u64 known, struct sonde_counters *shared,
				       struct sonde_alloc_counters *count)
{
	__u32 i;

	s->walk.in_syscall = 0;
	s->walk.syscall = NO_SYSCALL;
	enter_process(s, &s->sample);
	take_user_stack(s, shared, 0);
	if (alloc_cfg.held_tgid && is_early(s->walk.stop))
		hold_process(s->sample.tgid);
	if (s->sample.user_state != SONDE_STACK_STORED)
		return;
	if (known) {
		if (known != s->sample.user_stack && s->table_generation == table_generation_now()) /* else it was right, and has changed */
			count_one(&count->stack_cache_wrong);
		return;
	}
	i = thread->next_stack++ & (STACKS - 1);
	note_generation(&thread->stacks[i], s);
	user_stack_cache_keep(&thread->stacks[i], s->walk.number, s->sample.user_stack);
	thread->fresh = i + 1;
}

static __always_inline int take_stack(user_regs_t *ctx, struct thread *thread, struct call *call, __u64 tgid_tid,
				      struct sonde_alloc_counters *count)
{
	struct scratch *s = scratch_take(ctx);
	struct sonde_counters *shared;
	__u64 known;

	call->block.user_state = SONDE_STACK_LOST;
	shared = zeroth(&counters);
	if (!s || !shared) {
		count_one(&count->no_scratch);
		return alloc_cfg.windows ? log_hit(thread, call) : 0;
	}
	begin_sample(s, call->block.time_ns, tgid_tid);
	enter_regs(&s->walk, &s->deferred, ctx);
	known = find_stack(thread, s);
	if (known && ++thread->nr_hits % STACK_CACHE_CHECK) {
		s->sample.user_stack = known;
		s->sample.user_state = SONDE_STACK_STORED;
		keep_ids(call, s);
		scratch_leave(s);
		count_one(&count->stack_cache_hits);
		return alloc_cfg.windows ? log_hit(thread, call) : 0;
	}
	walk_stack(thread, s, known, shared, count);
	return is_next_runtime(s) ? next_runtime(ctx, s) : end_stack(s);
}

/* A call that returns memory. 0: its return is to be seen; 1: it is not. */
static __always_inline int begin_call(user_regs_t *ctx, const struct arguments *a, __u32 kind, __u64 tgid_tid,
				      struct sonde_alloc_counters *count)
{
	struct thread *thread =
	    bpf_task_storage_get(&alloc_threads, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	bool inner, has_old = kind == SONDE_ALLOC_REALLOC || kind == SONDE_ALLOC_REALLOCARRAY || kind == SONDE_ALLOC_MREMAP, is_again;
	__u64 sp = a->sp, old_addr = has_old ? a->first : 0, bytes;
	struct call *call;

	if (!thread) {
		count_one(&count->no_storage);
		return 1;
	}
	inner = is_inner(thread, sp);
	if (kind == SONDE_ALLOC_NEW && a->first >= SONDE_ALLOC_LARGE_NEW) {
		count_one(&count->large_news);
		return 1;
	}
	if (inner && is_mapping_call(kind)) {
		count_one(&count->inner_mappings);
		return 1;
	}
	call = take_call(thread, sp, count);
	is_again = has_old && call->sp == sp && call->old_addr == old_addr && old_addr; /* reallocarray's jump to realloc */
	bytes = call->sp == sp && call->block.call != kind && jumps_on(call->block.call) ? call->block.bytes : bytes_of(a, kind);
	call->sp = sp;
	call->out = a->first;
	call->old_bytes = kind == SONDE_ALLOC_MREMAP ? a->second : 0;
	call->inner_addr = 0;
	call->is_fixed = kind == SONDE_ALLOC_MMAP && a->fourth & MAP_IS_FIXED;
	call->block =
	    (struct sonde_alloc_block){ .bytes = bytes, .time_ns = bpf_ktime_get_ns(), .call = kind, .weight = weight_of(bytes) };
	remove_old(call, tgid_tid >> 32, kind, old_addr, is_again, inner, count);
	call->is_left_out = !call->block.weight;
	if (call->is_left_out) {
		count_one(&count->left_out);
		return 0;
	}
	return take_stack(ctx, thread, call, tgid_tid, count);
}

/* Is this call another one's, by a call or by a jump from the same frame? The same function in the same frame is a new call: what it was
 * before has thrown. */
static __always_inline bool is_anothers(struct thread *thread, __u64 sp, __u64 pc)
{
	const struct call *same;

	forget_ended(thread);
	if (is_inner(thread, sp))
		return true;
	same = call_at(thread, sp);
	return same && same->pc != pc;
}

/* As begin_call, in a window: what a function that is itself called by an allocator's returns is left to that one, also by a jump. */
static __always_inline int begin_hit(user_regs_t *ctx, const struct arguments *a, __u32 kind, __u64 tgid_tid, __u64 begin_ns,
				     struct sonde_alloc_counters *count)
{
	const struct sonde_alloc_gate *gate = zeroth(&alloc_gate);
	__u64 bytes = bytes_of(a, kind);
	struct thread *thread;
	struct call *call;

	if (!gate || !gate->window)
		return 1;
	thread = bpf_task_storage_get(&alloc_threads, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread) {
		count_one(&count->no_storage);
		return 1;
	}
	enter_window(thread, gate->window, begin_ns);
	if (is_anothers(thread, a->sp, a->pc)) {
		charge_run(thread);
		return 1;
	}
	call = take_call(thread, a->sp, count);
	call->sp = a->sp;
	call->out = a->first;
	call->hit = SONDE_ALLOC_HITS;
	call->pc = a->pc;
	call->return_pc = kind == SONDE_ALLOC_NEW ? return_pc_at(a->sp) : 0;
	call->block = (struct sonde_alloc_block){ .bytes = bytes, .time_ns = begin_ns, .call = kind, .weight = weight_of(bytes) };
	if (kind == SONDE_ALLOC_OWN) {
		call->block.user_state = SONDE_STACK_LOST;
		return log_hit(thread, call);
	}
	if (!call->block.weight) {
		count_one(&count->left_out);
		charge_run(thread);
		return may_throw(call); /* what it calls is left out, too */
	}
	return take_stack(ctx, thread, call, tgid_tid, count);
}

static __always_inline void free_block(__u64 addr, __u32 tgid, __u64 sp, struct sonde_alloc_counters *count)
{
	if (!addr)
		return;
	if (remove_block(addr, tgid, 0))
		count_one(&count->frees);
	else if (!is_inner(bpf_task_storage_get(&alloc_threads, bpf_get_current_task_btf(), 0, 0), sp)) /* else realloc gave it up */
		count_one(&count->frees_unknown);
}

static __always_inline void unmap_region(__u64 addr, __u64 bytes, __u32 tgid, struct sonde_alloc_counters *count)
{
	if (is_possible(addr, bytes) && unmap(addr, bytes, tgid))
		count_one(&count->unmaps_unknown);
}

/* What has no return to be seen. */
WALK_FUNCTION int release(__u32 kind, __u64 addr, __u64 bytes, __u32 tgid, __u64 sp)
{
	struct sonde_alloc_counters *count = alloc_count();

	if (!count)
		return 1; /* there are always some */
	if (kind != SONDE_ALLOC_MUNMAP)
		free_block(addr, tgid, sp, count);
	else if (!is_inner(bpf_task_storage_get(&alloc_threads, bpf_get_current_task_btf(), 0, 0), sp))
		unmap_region(addr, bytes, tgid, count);
	return 1;
}

/* Of user space only the function that is there to be measured: where a file is probed in all processes, its own calls are seen, too. */
static __always_inline bool is_own(__u64 tgid_tid, __u32 kind)
{
	return kind == SONDE_ALLOC_OWN && tgid_tid >> 32 == alloc_cfg.own_tgid;
}

static __always_inline int enter(user_regs_t *ctx)
{
	__u64 begin_ns = alloc_cfg.windows ? bpf_ktime_get_ns() : 0;
	struct sonde_alloc_counters *count = alloc_count();
	__u64 tgid_tid = bpf_get_current_pid_tgid();
	__u32 kind = bpf_get_attach_cookie(ctx);
	struct arguments a = arguments_of(ctx);

	if (!count)
		return 1; /* there are always some */
	if (!is_own(tgid_tid, kind) && !is_ours(tgid_tid)) {
		count_one(&count->filtered);
		return 1;
	}
	if (alloc_cfg.windows)
		return begin_hit(ctx, &a, kind, tgid_tid, begin_ns, count);
	if (kind == SONDE_ALLOC_FREE || kind == SONDE_ALLOC_DELETE || kind == SONDE_ALLOC_MUNMAP)
		return release(kind, a.first, a.second, tgid_tid >> 32, a.sp);
	return begin_call(ctx, &a, kind, tgid_tid, count);
}

/* --- the return ----------------------------------------------------------------------------------------------------------------------- */

static __always_inline void add_block(const struct call *call, const struct sonde_alloc_key *key, struct sonde_alloc_counters *count)
{
	long err = bpf_map_update_elem(&alloc_blocks, key, &call->block, BPF_NOEXIST);

	if (err == -EEXIST) {
		count_one(&count->reused);
		err = bpf_map_update_elem(&alloc_blocks, key, &call->block, BPF_ANY);
	}
	if (err)
		count_one(err == -E2BIG ? &count->full : &count->no_memory);
	if (alloc_cfg.sums && sum_block(&call->block, key->tgid, 1))
		count_one(&count->full_sums);
}

/* The address that the function returned; 0: it failed. */
static __always_inline __u64 result_of(user_regs_t *ctx, const struct call *call)
{
	__u64 result = PT_REGS_RC(ctx), addr = 0;

	if (is_mapping_call(call->block.call))
		return result >= -(__u64)MAX_ERRNO ? 0 : result;
	if (call->block.call != SONDE_ALLOC_POSIX_MEMALIGN)
		return result;
	if (!(__u32)result)
		bpf_probe_read_user(&addr, sizeof(addr), (const void *)call->out);
	return addr;
}

/* realloc(p, 0) may free p and return NULL; otherwise p stays the program's. */
static __always_inline void put_back(const struct call *call, __u32 tgid)
{
	struct sonde_alloc_key key = key_of(call->old_addr, tgid, call->block.call);

	if (!call->has_old)
		return;
	if (call->block.bytes)
		bpf_map_update_elem(&alloc_blocks, &key, &call->old, BPF_ANY);
	else
		end_block(&call->old, tgid);
}

/* A function that hands out what another one gave it, or a part of that (a header of its own before it, a better alignment): the same
 * memory. So it is also when this call is left out by sampling: the other one was chosen or not by a chance of its own. */
static __always_inline void forget_inner(const struct call *call, const struct sonde_alloc_key *key, struct sonde_alloc_counters *count)
{
	if (!call->inner_addr || (call->inner_addr != key->addr && key->addr - call->inner_addr >= call->inner_bytes))
		return;
	if (remove_block(call->inner_addr, key->tgid, 1))
		count_one(&count->reused);
}

/* What mmap has replaced, and what mremap has left of the old region. */
static __always_inline void follow_regions(const struct call *call, const struct sonde_alloc_key *key, struct sonde_alloc_counters *count)
{
	struct sonde_alloc_key left = { .addr = call->old_addr, .tgid = key->tgid, .space = SONDE_ALLOC_MAPPING };
	struct sonde_alloc_block rest = call->old;
	__u64 moved = whole_pages(call->old_bytes);

	if (call->is_fixed)
		unmap_region(key->addr, call->block.bytes, key->tgid, count);
	if (call->block.call != SONDE_ALLOC_MREMAP || !call->has_old)
		return;
	if (rest.bytes <= moved) {
		end_block(&rest, key->tgid);
		return;
	}
	left.addr += moved;
	rest.bytes -= moved;
	bpf_map_update_elem(&alloc_blocks, &left, &rest, BPF_ANY);
}

/* As leave, of a hit. */
static __attribute__((noinline)) int end_hit(user_regs_t *ctx)
{
	__u64 begin_ns = bpf_ktime_get_ns();
	struct thread *thread = bpf_task_storage_get(&alloc_threads, bpf_get_current_task_btf(), 0, 0);
	struct sonde_alloc_counters *count = alloc_count();
	struct sonde_alloc_hit *hit;
	__u32 number;
	const struct sonde_alloc_gate *gate = zeroth(&alloc_gate);
	struct call *call;

	if (!count || !gate || !thread || !gate->window || gate->window != thread->gate)
		return 0; /* the gate has closed */
	enter_window(thread, gate->window, begin_ns);
	call = call_at(thread, PT_REGS_SP(ctx) - WALK_RETURN_BYTES);
	if (!call) {
		count_one(&count->unmatched);
		return 0;
	}
	call->sp = 0;
	number = call->hit;
	hit = bpf_map_lookup_elem(&alloc_hits, &number);
	if (hit && !result_of(ctx, call)) {
		hit->failed = 1;
		count_one(&count->failed);
	}
	charge_run(thread);
	if (hit) {
		hit->returned = 1;
		note_cost(thread, hit);
	}
	return 0;
}

/* A function of its own: its variables would lie below the walk's, and there is no room for both. */
static __attribute__((noinline)) int leave(user_regs_t *ctx)
{
	struct thread *thread = bpf_task_storage_get(&alloc_threads, bpf_get_current_task_btf(), 0, 0);
	struct call *call = thread ? call_at(thread, PT_REGS_SP(ctx) - WALK_RETURN_BYTES) : 0;
	struct sonde_alloc_counters *count = alloc_count();
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct sonde_alloc_key key;
	__u64 sp;

	if (!count)
		return 0; /* there are always some */
	if (!call) {
		count_one(&count->unmatched);
		return 0;
	}
	sp = call->sp;
	call->sp = 0;
	key = key_of(result_of(ctx, call), tgid, call->block.call);
	if (!key.addr) {
		put_back(call, tgid);
		count_one(&count->failed);
		return 0;
	}
	count_one(key.space == SONDE_ALLOC_MAPPING ? &count->mappings : &count->allocs);
	if (key.space == SONDE_ALLOC_MAPPING) {
		follow_regions(call, &key, count);
	} else {
		forget_inner(call, &key, count);
		if (call->has_old)
			end_block(&call->old, tgid);
		note_inner(thread, sp, key.addr, call->block.bytes);
	}
	if (!call->is_left_out)
		add_block(call, &key, count);
	return 0;
}

/* --- programs ------------------------------------------------------------------------------------------------------------------------- */

/* Entry and return by one probe (Linux 6.13). 1 at the entry: the return is left alone, and costs nothing. */
SEC("kprobe")
int sonde_mem_both(user_regs_t *ctx)
{
	if (!bpf_session_is_return())
		return enter(ctx);
	return alloc_cfg.windows ? end_hit(ctx) : leave(ctx);
}

/* Only counts, for the forecast. 1: as sonde_mem_both. */
SEC("kprobe")
int sonde_mem_count(user_regs_t *ctx)
{
	struct sonde_alloc_counters *count = alloc_count();

	if (count)
		count_one(&count->counted);
	return 1;
}

SEC("kprobe")
int sonde_mem_entry(user_regs_t *ctx)
{
	enter(ctx);
	return 0;
}

SEC("kprobe")
int sonde_mem_end(user_regs_t *ctx)
{
	return alloc_cfg.windows ? end_hit(ctx) : leave(ctx);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
