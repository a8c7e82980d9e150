// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The labels of the goroutine that the sampled thread works for. The sampler tail-calls this for the processes in its map. Go's frames are
 * native ones: nothing is added to them. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/runtime_program.h"
#include "walk/walk_clock.h"

static __always_inline struct label_walk *label_walk_of(__u32 number)
{
	struct scratch *s = scratch_of(number);

	return s ? &s->labels : 0;
}

#include "labels/go_labels.h"
#include "lib/map.h"

struct { /* by tgid */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUNTIME_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, struct sonde_go);
} runtime_processes MAP("sonde_go_ps");
_Static_assert(sizeof(struct sonde_go) <= sizeof(union sonde_runtime_known), "no room");

SEC("perf_event")
int sonde_go(struct bpf_perf_event_data *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct scratch *s = scratch_of_run(ctx);
	const struct sonde_go *go;
	enum known known;
	int result;

	if (!s)
		return 0; /* cannot happen: the program before has taken it */
	go = (const struct sonde_go *)&s->known;
	known = copy_known(&runtime_processes, tgid, s->walk.generation, &s->known, sizeof(*go));
	if (known == KNOWN_TORN || (known == KNOWN_WELL && was_walk_slow(&s->walk, WALK_MORE_NS))) {
		s->sample.labels_state = SONDE_STACK_LOST;
	} else if (known == KNOWN_WELL) {
		result = go_labels(&s->walk, &s->labels, go, tgid);
		if (result != GO_LABELS_NONE)
			s->sample.labels_state = result == GO_LABELS_FOUND ? send_labels(s) : SONDE_STACK_LOST;
	}
	return next_runtime(ctx, s);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
