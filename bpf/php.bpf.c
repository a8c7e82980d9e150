// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What PHP runs in the thread that was sampled. Tail-called by the sampler for processes that it is told of in its map. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/runtime_program.h"

#include "lib/php.h"

#define MAX_TURNS (2 * SONDE_MAX_RUNTIME_FRAMES) /* stand-ins, and the end of each run, take one, too */

struct { /* by tgid */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUNTIME_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, struct sonde_php);
} runtime_processes SEC(".maps");

/* Eight steps in one function are too many ways for the verifier. */
WALK_FUNCTION int php_one(__u32 cpu)
{
	struct scratch *s = scratch_of(cpu);

	return s ? php_step(&s->walk, &s->runtime, &s->php) : RUNTIME_ENDED;
}

WALK_FUNCTION int php_few(__u32 cpu)
{
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < RUNTIME_FEW; turn++) {
		if (php_one(cpu) != RUNTIME_GOES_ON)
			return RUNTIME_ENDED;
	}
	return RUNTIME_GOES_ON;
}

WALK_FUNCTION int php_all(__u32 cpu)
{
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < MAX_TURNS; turn += RUNTIME_FEW) {
		if (php_few(cpu) != RUNTIME_GOES_ON)
			break;
	}
	return 0;
}

SEC("perf_event")
int walk_runtime(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id(), tgid = bpf_get_current_pid_tgid() >> 32;
	struct scratch *s = scratch_of(cpu);
	struct sonde_php *php = bpf_map_lookup_elem(&runtime_processes, &tgid);

	if (!s)
		return 0; /* the sampler had it */
	if (php && php->process.generation == s->walk.generation) {
		s->php = *php;
		begin_runtime(s, SONDE_RUNTIME_PHP, s->php.loops);
		if (php_enter(&s->walk, &s->runtime, &s->php) == RUNTIME_GOES_ON)
			php_all(cpu);
		end_runtime(s);
	}
	return next_runtime(ctx, s);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
