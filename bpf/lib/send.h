/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a sample leaves the kernel: payloads of new stacks, then the sample itself. In between run the programs of the process's runtimes;
 * each ends with next_runtime. */
#pragma once
#include "maps.h"
#include "scratch.h"
#include "map.h"

#define WINDOW_NS 100000000u /* the time that the limits below are for */
#define DEFERRED_MAX 64           /* deferred records per CPU: 10 MiB a second */
#define DEFERRED_MORE_PAGES 1024  /* pages of deferred stacks beyond the shortest copy: 40 MiB a second */
#define WAKE_MAX 64          /* wake-ups of the reader for a runtime stack: 5 us each */

struct { /* the runtimes' programs, by enum sonde_runtime, loaded when first needed; SONDE_RUNTIME_NONE: the one that follows them */
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SONDE_RUNTIME_COUNT);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} runtime_programs MAP("sonde_rt_progs");

static __always_inline __u64 wake_flag(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= cfg.ring_wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline void open_window(struct scratch *s, __u64 time_ns)
{
	if (time_ns - s->window_ns > WINDOW_NS) {
		s->window_ns = time_ns;
		s->nr_deferred = s->nr_deferred_pages = s->nr_wakes = 0;
	}
}

/* A function of its own, verified once, as it has many callers. */
WALK_FUNCTION int is_sent(__u64 hash)
{
	__u64 key = sonde_sent_key(hash, window_number());
	const __u8 *state = bpf_map_lookup_elem(&stacks, &key);

	return state && *state != SONDE_STACK_SENDING;
}

/* Sends a payload of `size` bytes, at most max_size, that was not sent yet. If another CPU is sending it just now both do: the other may
 * find no room, and a caller that caches the hash does not ask again. */
static __always_inline enum sonde_stack_state send_payload(const void *payload, __u64 size, __u64 max_size, __u64 hash, __u64 flags)
{
	__u64 key = sonde_sent_key(hash, window_number());
	__u8 sending = SONDE_STACK_SENDING, sent = SONDE_STACK_SENT;
	long err;

	err = bpf_map_update_elem(&stacks, &key, &sending, BPF_NOEXIST);
	if (err && err != -17) /* EEXIST */
		return err == -7 ? SONDE_STACK_FULL : SONDE_STACK_LOST; /* E2BIG; else EBUSY */
	barrier_var(size);
	if (size > max_size) /* never: for the verifier */
		size = max_size;
	if (bpf_ringbuf_output(&ring, (void *)payload, size, flags)) {
		bpf_map_delete_elem(&stacks, &key);
		return SONDE_STACK_LOST;
	}
	bpf_map_update_elem(&stacks, &key, &sent, BPF_ANY); /* on failure it is sent again */
	return SONDE_STACK_STORED;
}

/* Sends the labels, and the context that joins them, if they were not sent yet. */
static __always_inline enum sonde_stack_state send_labels(struct scratch *s)
{
	struct label_walk *g = &s->labels;
	__u32 nr = g->record.nr_labels, bytes = g->record.context_bytes;

	if (nr > SONDE_MAX_LABELS || bytes > SONDE_CONTEXT_BYTES) /* cannot happen: for the verifier */
		return SONDE_STACK_LOST;
	s->sample.labels = g->record.hash;
	if (is_sent(g->record.hash))
		return SONDE_STACK_STORED;
	g->record.time_ns = s->sample.time_ns;
	return send_payload(&g->record, sizeof(g->record) + nr * sizeof(g->labels[0]) + bytes,
			    sizeof(g->record) + SONDE_MAX_LABELS * sizeof(g->labels[0]) + SONDE_CONTEXT_BYTES, g->record.hash, wake_flag());
}

/* Sends what the interpreters run, if any of them runs something. A new payload wakes the reader: the code may soon be freed, and its name
 * with it. */
static __always_inline void send_runtime(struct scratch *s)
{
	struct runtime_walk *r = &s->runtime;
	__u64 flags;

	if (!r->nr_frames && !r->record.stop)
		return;
	s->sample.runtime_stack = r->record.hash;
	s->sample.runtime_state = SONDE_STACK_STORED;
	if (r->record.hash == r->known_hash || is_sent(r->record.hash))
		return;
	open_window(s, s->sample.time_ns);
	flags = s->nr_wakes < WAKE_MAX ? BPF_RB_FORCE_WAKEUP : wake_flag();
	s->nr_wakes++;
	r->record.type = SONDE_RECORD_RUNTIME;
	r->record.tgid = s->sample.tgid;
	r->record.generation = s->walk.generation;
	r->record.time_ns = s->sample.time_ns;
	r->record.nr_frames = r->nr_frames;
	s->sample.runtime_state = send_payload(&r->record, sizeof(r->record) + r->nr_frames * sizeof(r->frames[0]),
					       sizeof(r->record) + sizeof(r->frames), r->record.hash, flags);
}

#define MAX_HANDOVERS 16 /* of the 33 tail calls that the kernel allows */

/* True: next_runtime has something to do. */
static __always_inline int is_next_runtime(const struct scratch *s)
{
	return s->runtimes_left || s->walk.owner;
}

/* Goes on to the program of the next runtime: that whose code the walk is at, else one that has not run yet. After the last one, to the
 * trigger's last program. Returns only if that is closed: then nobody reads what it would send. */
static __always_inline int next_runtime(void *ctx, struct scratch *s)
{
	__u32 left = s->runtimes_left;

	if (s->walk.owner) {
		if (s->nr_handovers++ < MAX_HANDOVERS)
			bpf_tail_call(ctx, &runtime_programs, s->walk.owner);
		s->sample.user_state = SONDE_STACK_LOST; /* runtimes that call each other more often, or it is not loaded */
	}
	for (__u32 kind = 1; kind < SONDE_RUNTIME_COUNT; kind++) {
		if (left & 1u << kind) {
			s->runtimes_left = left & ~(1u << kind);
			bpf_tail_call(ctx, &runtime_programs, kind);
			s->runtimes_left = left; /* it is not loaded */
			break;
		}
	}
	bpf_tail_call(ctx, &runtime_programs, SONDE_RUNTIME_NONE);
	scratch_leave(s);
	return 0;
}
