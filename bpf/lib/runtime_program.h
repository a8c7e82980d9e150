/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs of all runtimes share. Each is tail-called after the native walk, adds what its interpreter runs to the scratch's
 * runtime walk, and goes on to the next. lib/runtime_main.h is the rest of those that have frames. */
#pragma once
#include "scratch.h"
#include "send.h"

#define RUNTIME_FEW 8
#define RUNTIME_TEXT(name) RUNTIME_TEXT_OF(name)
#define RUNTIME_TEXT_OF(name) #name
#define RUNTIME_MAX_PROCESSES 4096 /* per runtime */

enum known {
	KNOWN_NOT,
	KNOWN_WELL,
	KNOWN_TORN, /* it belongs to an earlier or later program of the process, or changed during the copy */
};

/* Copies what is known of the current process: `size` bytes that begin with a struct sonde_runtime_process. User space may change the value
 * meanwhile; then its memory is given to another process's value at once. So the copy is valid only if the map still leads to the same
 * memory afterwards, with the same serial number. If `to` still has the copy with this number, nothing is copied: the number is unique.
 * KNOWN_NOT: user space has written nothing yet. */
static __always_inline enum known copy_known(void *map, __u32 tgid, __u32 generation, void *to, __u32 size)
{
	volatile const struct sonde_runtime_process *known = bpf_map_lookup_elem(map, &tgid), *again;
	volatile struct sonde_runtime_process *copy = to;
	__u32 serial;

	if (!known)
		return KNOWN_NOT;
	if (known->generation != generation)
		return KNOWN_TORN;
	serial = known->serial;
	if (copy->serial == serial)
		return KNOWN_WELL;
	__builtin_memcpy(to, (const void *)known, size);
	again = bpf_map_lookup_elem(map, &tgid);
	if (again && again == known && again->serial == serial && copy->serial == serial)
		return KNOWN_WELL;
	copy->serial = 0;
	return KNOWN_TORN;
}

/* Nested loops as in the native walk: the verifier checks each function once. */
WALK_FUNCTION int look_at_few_natives(__u32 slot, __u32 from)
{
	struct scratch *s = scratch_of(slot);

	if (!s)
		return RUNTIME_ENDED;
#pragma clang loop unroll(disable)
	for (__u32 step = 0; step < RUNTIME_FEW; step++) {
		__u32 number = from + step;

		if (number >= s->walk.nr_frames || number >= SONDE_LEAF_FRAMES)
			return RUNTIME_ENDED;
		barrier_var(number); /* so that the mask is where the verifier looks */
		runtime_look_at_native(&s->runtime, s->stack.frames, number);
	}
	return RUNTIME_GOES_ON;
}

WALK_FUNCTION int look_at_natives(__u32 slot)
{
#pragma clang loop unroll(disable)
	for (__u32 from = 0; from < SONDE_LEAF_FRAMES; from += RUNTIME_FEW) {
		if (look_at_few_natives(slot, from) != RUNTIME_GOES_ON)
			break;
	}
	return 0;
}

/* Pairs the entries that are paired by counting, and hashes where they are. Returns the number of entries so far. */
WALK_FUNCTION __u32 settle_few(__u32 slot, __u32 from, __u32 nr_entries)
{
	struct scratch *s = scratch_of(slot);
	struct runtime_walk *r;

	if (!s)
		return nr_entries;
	r = &s->runtime;
#pragma clang loop unroll(disable)
	for (__u32 step = 0; step < RUNTIME_FEW; step++) {
		struct sonde_runtime_frame *frame;
		__u32 number = from + step;

		if (number >= r->nr_frames)
			break;
		barrier_var(number);
		frame = &r->frames[number & (SONDE_MAX_RUNTIME_FRAMES - 1)];
		if (frame->flags & SONDE_RUNTIME_ENTRY) {
			if (frame->where == RUNTIME_TO_COUNT) {
				runtime_pair_one(&s->walk, r, frame, nr_entries);
				r->record.hash = hash_step(r->record.hash, frame->where);
			}
			nr_entries++;
		}
	}
	return nr_entries;
}

WALK_FUNCTION int settle(__u32 slot, __u32 from)
{
	struct scratch *s = scratch_of(slot);
	__u32 nr_entries = 0;

	if (!s)
		return 0;
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < SONDE_MAX_RUNTIME_FRAMES / RUNTIME_FEW; turn++) {
		if (from >= s->runtime.nr_frames)
			break;
		nr_entries = settle_few(slot, from, nr_entries);
		from += RUNTIME_FEW;
	}
	return 0;
}

/* Call before a runtime's first step. `loops`: SONDE_MAX_LOOPS ranges; NULL: its entries are not paired by counting. `inner`:
 * as in struct runtime_walk; NULL: none. */
static __always_inline void begin_runtime(struct scratch *s, enum sonde_runtime kind, enum runtime_pairing pairing,
					  const struct sonde_code_range *loops, const struct sonde_code_range *inner)
{
	struct runtime_walk *r = &s->runtime;

	if (!r->nr_frames)
		r->record.hash = hash_step(s->walk.hash_begin, SONDE_RECORD_RUNTIME);
	r->runtime = kind;
	r->pairing = pairing;
	r->first_frame = r->nr_frames;
	r->nr_entries = 0;
	r->next_native = 0;
	r->nr_loops = 0;
	r->counts = 0;
	r->nr_hits = r->nr_checked = r->nr_wrong = 0;
	r->nr_here = RUNTIME_ALL_HERE;
	r->leaf_pc = s->walk.start.pc;
	barrier_var(loops); /* the pointer itself is compared: Linux 5.10 does not infer it from the condition that chose it */
	if (!loops || s->sample.user_state == SONDE_STACK_DEFERRED) /* user space will find more native frames than these */
		return;
	for (int i = 0; i < SONDE_MAX_LOOPS; i++)
		r->ranges[i] = loops[i];
	r->inner = inner ? *inner : (struct sonde_code_range){};
	look_at_natives(s->walk.number);
}

/* Other triggers may interrupt the additions. Never adds 0, see count_one. */
static __always_inline void count_cached(const struct runtime_walk *r)
{
	struct sonde_counters *count = zeroth(&counters);

	if (!count || !r->nr_hits)
		return;
	__sync_fetch_and_add(&count->runtime_cache_hits, r->nr_hits);
	if (r->nr_checked)
		__sync_fetch_and_add(&count->runtime_cache_checks, r->nr_checked);
	if (r->nr_wrong)
		__sync_fetch_and_add(&count->runtime_cache_wrong, r->nr_wrong);
}

/* Call after a runtime's last step. */
static __always_inline void end_runtime(struct scratch *s)
{
	if (s->runtime.counts)
		settle(s->walk.number, s->runtime.first_frame);
	s->runtime.record.hash = hash_step(s->runtime.record.hash, s->runtime.record.stop);
	count_cached(&s->runtime);
}
