// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The context that the sampled thread publishes. The sampler tail-calls this, after the programs of the process's languages, for the
 * processes in its map. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/runtime_program.h"
#include "walk/walk_clock.h"

#include "labels/otel_labels.h"
#include "lib/map.h"

struct { /* by tgid */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUNTIME_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, struct sonde_otel);
} runtime_processes MAP("sonde_otel_ps");
_Static_assert(sizeof(struct sonde_otel) <= sizeof(union sonde_runtime_known), "no room");

/* A process may have labels of its language too: then the context joins them. If those were lost, all are. */
SEC("perf_event")
int sonde_otel(struct bpf_perf_event_data *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct scratch *s = scratch_of_run(ctx);
	const struct sonde_otel *otel;
	enum known known;
	int result;

	if (!s)
		return 0; /* cannot happen: the program before has taken it */
	otel = (const struct sonde_otel *)&s->known;
	known = copy_known(&runtime_processes, tgid, s->walk.generation, &s->known, sizeof(*otel));
	if (known == KNOWN_TORN || (known == KNOWN_WELL && was_walk_slow(&s->walk, WALK_MORE_NS))) {
		s->sample.labels_state = SONDE_STACK_LOST;
	} else if (known == KNOWN_WELL && (s->sample.labels_state == SONDE_STACK_NONE || s->sample.labels_state == SONDE_STACK_STORED)) {
		if (s->sample.labels_state == SONDE_STACK_NONE)
			otel_begin(&s->walk, &s->labels, tgid);
		result = otel_labels(&s->walk, &s->labels, otel);
		if (result != OTEL_NONE)
			s->sample.labels_state = result == OTEL_FOUND ? send_labels(s) : SONDE_STACK_LOST;
	}
	return next_runtime(ctx, s);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
