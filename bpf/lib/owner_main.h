/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program of a runtime that owns code: its frames are on the native stack, between native ones. The walk comes here when it meets such
 * code. This program has both steps, the native one and the runtime's, in one loop, so changing sides costs nothing and may happen any
 * number of times. A file that includes this defines first:
 *
 *   RUNTIME_KIND     its enum sonde_runtime
 *   RUNTIME_PROGRAM  the name of its program
 *   RUNTIME_STRUCT   what is known of a process
 *   RUNTIME_FRAME    its step (docs/internals/adding-a-runtime.md)
 *   RUNTIME_DECLINES if the step may return WALK_AT_OWNER: the frame is in memory without a file, but in other code
 *   RUNTIME_BRIDGE   if it is one of SONDE_RUNTIMES_THAT_BRIDGE: the step from a native frame whose caller is not found */
#pragma once
#include "runtime_program.h"
#include "stack.h"
#include "map.h"

struct { /* by tgid */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUNTIME_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, RUNTIME_STRUCT);
} runtime_processes MAP(RUNTIME_TEXT(RUNTIME_PROGRAM) "_ps");
_Static_assert(sizeof(RUNTIME_STRUCT) <= sizeof(union sonde_runtime_known), "no room");

/* From the current frame, in the runtime's code, to its caller. */
WALK_FUNCTION int owned_frame(__u32 slot)
{
	struct scratch *s = scratch_of(slot);

	if (!s)
		return WALK_ENDED;
	walk_leave_to_owner(&s->walk);
	return RUNTIME_FRAME(&s->walk, &s->runtime, (const RUNTIME_STRUCT *)&s->known);
}

#ifdef RUNTIME_BRIDGE
WALK_FUNCTION int bridge(__u32 slot)
{
	struct scratch *s = scratch_of(slot);

	if (!s)
		return WALK_ENDED;
	s->walk.owner = 0;
	return RUNTIME_BRIDGE(&s->walk, &s->runtime, (const RUNTIME_STRUCT *)&s->known);
}
#else
#define bridge(slot) WALK_ENDED
#endif

/* After the runtime's step: what it returned, or what the native walk returns where it has declined. In the step itself the verifier would
 * count too many nested calls. */
static __always_inline int after_owned(struct scratch *s, int at)
{
#ifdef RUNTIME_DECLINES
	if (at == WALK_AT_OWNER) {
		walk_leave_to_owner(&s->walk);
		return walk_frame_pointer(&s->walk, 1);
	}
#endif
	return at;
}

static __always_inline int walk_turn(struct scratch *s)
{
	int at = walk_step(&s->walk, s->stack.frames);

	if (at == WALK_ENDED && walk_is_broken(&s->walk))
		return bridge(s->walk.number);
	return at == WALK_AT_OWNER && s->walk.owner == RUNTIME_KIND ? after_owned(s, owned_frame(s->walk.number)) : at;
}
#include "walk_loop.h"

SEC("perf_event")
int RUNTIME_PROGRAM(struct bpf_perf_event_data *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct scratch *s = scratch_of_run(ctx);
	struct sonde_counters *count = zeroth(&counters);
	enum known known;

	if (!s || !count)
		return 0; /* cannot happen: the program before has taken it, and there are always some */
	known = copy_known(&runtime_processes, tgid, s->walk.generation, &s->known, sizeof(RUNTIME_STRUCT));
	begin_runtime(s, RUNTIME_KIND, RUNTIME_PAIR_ALL, 0, 0);
	if (known != KNOWN_WELL) {
		s->walk.owner = 0;
		if (!s->walk.at_gap)
			runtime_stop(&s->runtime, SONDE_RUNTIME_STOP_TORN);
	} else if ((s->walk.at_gap ? bridge(s->walk.number) : after_owned(s, owned_frame(s->walk.number))) == WALK_GOES_ON) {
		walk_all(s->walk.number);
	}
	end_runtime(s);
	if (!s->walk.owner)
		end_user_stack(s, count, 0);
	return next_runtime(ctx, s);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
