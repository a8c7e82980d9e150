/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program of a runtime that has frames: tail-called by the sampler for the processes that stand in its map. Whoever includes this defines, before, which it is:
 *
 *   RUNTIME_KIND                  its enum sonde_runtime
 *   RUNTIME_STRUCT                what is known of a process
 *   RUNTIME_KNOWN                 the member of struct scratch that holds it
 *   RUNTIME_ENTER, RUNTIME_STEP   its steps (docs/internals/adding-a-runtime.md)
 *   RUNTIME_LOOPS(known)          the ranges for entries that are paired by counting, or 0
 */
#pragma once
#include "runtime_program.h"

#define RUNTIME_MAX_TURNS (4 * SONDE_MAX_RUNTIME_FRAMES) /* what is no frame takes one, too */

struct { /* by tgid */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUNTIME_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, RUNTIME_STRUCT);
} runtime_processes SEC(".maps");

WALK_FUNCTION int runtime_turn(__u32 cpu)
{
	struct scratch *s = scratch_of(cpu);

	return s ? RUNTIME_STEP(&s->walk, &s->runtime, &s->RUNTIME_KNOWN) : RUNTIME_ENDED;
}

WALK_FUNCTION int runtime_few_turns(__u32 cpu)
{
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < RUNTIME_FEW; turn++) {
		if (runtime_turn(cpu) != RUNTIME_GOES_ON)
			return RUNTIME_ENDED;
	}
	return RUNTIME_GOES_ON;
}

WALK_FUNCTION int runtime_all_turns(__u32 cpu)
{
	struct scratch *s = scratch_of(cpu);

#pragma clang loop unroll(disable)
	for (int turn = 0; turn < RUNTIME_MAX_TURNS; turn += RUNTIME_FEW) {
		if (runtime_few_turns(cpu) != RUNTIME_GOES_ON)
			return 0;
	}
	if (s)
		runtime_stop(&s->runtime, SONDE_RUNTIME_STOP_DEPTH);
	return 0;
}

SEC("perf_event")
int walk_runtime(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id(), tgid = bpf_get_current_pid_tgid() >> 32;
	struct scratch *s = scratch_of(cpu);
	RUNTIME_STRUCT *known = bpf_map_lookup_elem(&runtime_processes, &tgid);

	if (!s)
		return 0; /* the sampler had it */
	if (known && known->process.generation == s->walk.generation) {
		s->RUNTIME_KNOWN = *known;
		begin_runtime(s, RUNTIME_KIND, RUNTIME_LOOPS(&s->RUNTIME_KNOWN));
		if (RUNTIME_ENTER(&s->walk, &s->runtime, &s->RUNTIME_KNOWN) == RUNTIME_GOES_ON)
			runtime_all_turns(cpu);
		end_runtime(s);
	}
	return next_runtime(ctx, s);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
