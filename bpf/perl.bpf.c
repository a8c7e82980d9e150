// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What Perl runs in the thread that was sampled. Tail-called by the sampler for processes that it is told of in its map. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/runtime_program.h"

#include "lib/perl.h"

#define MAX_TURNS (4 * SONDE_MAX_RUNTIME_FRAMES) /* loops and blocks take one, too, and so does the end of each run */

struct { /* by tgid */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUNTIME_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, struct sonde_perl);
} runtime_processes SEC(".maps");

WALK_FUNCTION int perl_few(__u32 cpu)
{
	struct scratch *s = scratch_of(cpu);

	if (!s)
		return RUNTIME_ENDED;
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < RUNTIME_FEW; turn++) {
		if (perl_step(&s->walk, &s->runtime, &s->perl) != RUNTIME_GOES_ON)
			return RUNTIME_ENDED;
	}
	return RUNTIME_GOES_ON;
}

WALK_FUNCTION int perl_all(__u32 cpu)
{
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < MAX_TURNS; turn += RUNTIME_FEW) {
		if (perl_few(cpu) != RUNTIME_GOES_ON)
			break;
	}
	return 0;
}

SEC("perf_event")
int walk_runtime(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id(), tgid = bpf_get_current_pid_tgid() >> 32;
	struct scratch *s = scratch_of(cpu);
	struct sonde_perl *perl = bpf_map_lookup_elem(&runtime_processes, &tgid);

	if (!s)
		return 0; /* the sampler had it */
	if (perl && perl->process.generation == s->walk.generation) {
		s->perl = *perl;
		begin_runtime(s, SONDE_RUNTIME_PERL, s->perl.loops);
		if (perl_enter(&s->walk, &s->runtime, &s->perl) == RUNTIME_GOES_ON)
			perl_all(cpu);
		end_runtime(s);
	}
	return next_runtime(ctx, s);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
