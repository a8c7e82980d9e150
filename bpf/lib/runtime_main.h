/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program of a runtime that has frames. The sampler tail-calls it for the processes in its map. A file that includes this defines
 * first:
 *
 *   RUNTIME_KIND                  its enum sonde_runtime
 *   RUNTIME_PROGRAM               the name of its program
 *   RUNTIME_STRUCT                what is known of a process
 *   RUNTIME_ENTER, RUNTIME_STEP   its steps (docs/internals/adding-a-runtime.md)
 *   RUNTIME_LOOPS(known)          the ranges for entries that are paired by counting, or 0
 *   RUNTIME_INNER(known)          a function that the loop calls to do its work; may be left out
 *   RUNTIME_PAIRING               how these are paired, an enum runtime_pairing; default: RUNTIME_PAIR_ALL
 *   RUNTIME_COPY                  copies what names code; not defined: the code lives long enough */
#pragma once
#include "runtime_program.h"
#include "../walk/walk_clock.h"
#include "map.h"

#ifndef RUNTIME_PAIRING
#define RUNTIME_PAIRING RUNTIME_PAIR_ALL
#endif
#ifndef RUNTIME_INNER
#define RUNTIME_INNER(known) 0
#endif
#define RUNTIME_MAX_TURNS (4 * SONDE_MAX_RUNTIME_FRAMES) /* elements that are no frames take a turn as well */
#define RUNTIME_MANY 64
#define RUNTIME_READS 64 /* after so many reads few turns end early */

struct { /* by tgid */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUNTIME_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, RUNTIME_STRUCT);
} runtime_processes MAP(RUNTIME_TEXT(RUNTIME_PROGRAM) "_ps");
_Static_assert(sizeof(RUNTIME_STRUCT) <= sizeof(union sonde_runtime_known), "no room");

static __always_inline const RUNTIME_STRUCT *known_of(const struct scratch *s)
{
	return (const RUNTIME_STRUCT *)&s->known;
}

WALK_FUNCTION int runtime_turn(__u32 slot)
{
	struct scratch *s = scratch_of(slot);

	return s ? RUNTIME_STEP(&s->walk, &s->runtime, known_of(s)) : RUNTIME_ENDED;
}

WALK_FUNCTION int runtime_few_turns(__u32 slot)
{
	struct scratch *s = scratch_of(slot);
	__u32 nr_reads;

	if (!s)
		return RUNTIME_ENDED;
	nr_reads = s->walk.nr_reads;
	if (walk_asks_clock(&s->walk) && walk_is_late(&s->walk, bpf_ktime_get_ns(), WALK_ALL_NS)) {
		runtime_stop(&s->runtime, SONDE_RUNTIME_STOP_DEPTH);
		return RUNTIME_ENDED;
	}
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < RUNTIME_FEW; turn++) {
		if (runtime_turn(slot) != RUNTIME_GOES_ON)
			return RUNTIME_ENDED;
		if (s->walk.nr_reads - nr_reads >= RUNTIME_READS)
			break;
	}
	return RUNTIME_GOES_ON;
}

WALK_FUNCTION int runtime_many_turns(__u32 slot)
{
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < RUNTIME_MANY; turn += RUNTIME_FEW) {
		if (runtime_few_turns(slot) != RUNTIME_GOES_ON)
			return RUNTIME_ENDED;
	}
	return RUNTIME_GOES_ON;
}

WALK_FUNCTION int runtime_all_turns(__u32 slot)
{
	struct scratch *s = scratch_of(slot);

	if (s)
		s->walk.clock_cost = WALK_CLOCK_COST; /* if the native walk cost much, the clock is read before the first turn */
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < RUNTIME_MAX_TURNS; turn += RUNTIME_MANY) {
		if (runtime_many_turns(slot) != RUNTIME_GOES_ON)
			return 0;
	}
	if (s)
		runtime_stop(&s->runtime, SONDE_RUNTIME_STOP_DEPTH);
	return 0;
}

#ifdef RUNTIME_COPY
#define COPY_FRAMES 16 /* from the leaf: short-lived code makes few calls; 0.1 us each in a new stack */
#define COPY_MAX 8     /* per stack: 1 us each */

struct { /* hashes of process, code, cookie and window of what was copied */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u8);
} copied MAP("sonde_copied");

/* Copies and sends the code of one frame. Returns 1 if it was sent. */
WALK_FUNCTION int copy_code(__u32 slot, __u32 number)
{
	struct scratch *s = scratch_of(slot);
	const struct sonde_runtime_frame *frame;
	__u8 sent = 1;
	__u64 key;

	if (!s)
		return 0;
	frame = &s->runtime.frames[number & (SONDE_MAX_RUNTIME_FRAMES - 1)];
	key = sonde_sent_key(hash_step(hash_step(s->walk.hash_begin, frame->code), frame->cookie), window_number());
	if (frame->flags & SONDE_RUNTIME_ENTRY || bpf_map_lookup_elem(&copied, &key) ||
	    RUNTIME_COPY(&s->walk, &s->code, known_of(s), frame->code))
		return 0;
	s->code.type = SONDE_RECORD_CODE;
	s->code.tgid = s->sample.tgid;
	s->code.time_ns = s->sample.time_ns;
	s->code.code = frame->code;
	s->code.cookie = frame->cookie;
	s->code.generation = s->walk.generation;
	if (bpf_ringbuf_output(&ring, &s->code, sizeof(s->code), BPF_RB_NO_WAKEUP)) /* the payload that follows wakes the reader */
		return 0;
	bpf_map_update_elem(&copied, &key, &sent, BPF_ANY);
	return 1;
}

/* Copies the code of the frames at the leaf of a new stack. */
WALK_FUNCTION int copy_codes(__u32 slot)
{
	struct scratch *s = scratch_of(slot);
	__u32 nr = 0;

	if (!s)
		return 0;
	if (is_sent(s->runtime.record.hash)) {
		s->runtime.known_hash = s->runtime.record.hash;
		return 0;
	}
#pragma clang loop unroll(disable)
	for (__u32 step = 0; step < COPY_FRAMES && nr < COPY_MAX; step++) {
		if (s->runtime.first_frame + step >= s->runtime.nr_frames)
			break;
		nr += copy_code(slot, s->runtime.first_frame + step);
	}
	return 0;
}
#endif

SEC("perf_event")
int RUNTIME_PROGRAM(struct bpf_perf_event_data *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct scratch *s = scratch_of_run(ctx);
	enum known known;

	if (!s)
		return 0; /* cannot happen: the program before has taken it */
	known = copy_known(&runtime_processes, tgid, s->walk.generation, &s->known, sizeof(RUNTIME_STRUCT));
	if (known == KNOWN_WELL) {
		begin_runtime(s, RUNTIME_KIND, RUNTIME_PAIRING, RUNTIME_LOOPS(known_of(s)), RUNTIME_INNER(known_of(s)));
		if (RUNTIME_ENTER(&s->walk, &s->runtime, known_of(s)) == RUNTIME_GOES_ON)
			runtime_all_turns(s->walk.number);
		end_runtime(s);
#ifdef RUNTIME_COPY
		copy_codes(s->walk.number);
#endif
	} else if (known == KNOWN_TORN) {
		begin_runtime(s, RUNTIME_KIND, RUNTIME_PAIRING, 0, 0);
		runtime_stop(&s->runtime, SONDE_RUNTIME_STOP_TORN);
		end_runtime(s);
	}
	return next_runtime(ctx, s);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
