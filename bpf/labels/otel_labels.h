/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The context that a thread publishes by OpenTelemetry's OTEP 4947 "Thread Context": trace, span and attributes of the request that it
 * works for. A context belongs to its thread alone, which is interrupted here: so it is never read in the middle of a change that its
 * `valid` does not tell of. User space takes the attributes apart.
 *
 * Compiles for BPF and for the host, as walk/unwind.h does, with its accessors. */
#pragma once
#include "../abi/otel.h"
#include "../abi/record.h"
#include "label_walk.h"
#include "../walk/tls.h"

#define OTEL_NONE 0  /* the thread has no context, or no valid one, or it says nothing */
#define OTEL_FOUND 1
#define OTEL_LOST 2  /* not readable */

#define OTEL_WORDS (SONDE_CONTEXT_BYTES / 8)
#define OTEL_HEADER_WORDS (sizeof(struct sonde_thread_context) / 8)

static __always_inline int otel_says_nothing(const __u64 *words)
{
	return !(words[0] | words[1] | words[2]) && !((const struct sonde_thread_context *)words)->attributes_bytes;
}

/* Begins a set without labels. */
static __always_inline void otel_begin(const struct walk *w, struct label_walk *g, __u32 tgid)
{
	g->record.type = SONDE_RECORD_LABELS;
	g->record.tgid = tgid;
	g->record.generation = w->generation;
	g->record.nr_labels = g->record.nr_left = 0;
	g->record.fault = 0;
	g->record.hash = hash_step(w->hash_begin, SONDE_RECORD_LABELS);
}

/* Reads the attributes, and zeroes the rest of their last word. Returns the number of the context's words: without those if they cannot be
 * read, which is counted as one label without room. */
static __always_inline __u32 otel_attributes(struct walk *w, struct label_walk *g, __u64 *words, __u64 at)
{
	__u32 size = ((struct sonde_thread_context *)words)->attributes_bytes, last = OTEL_HEADER_WORDS + (size - 1) / 8;

	barrier_var(last);
	if (!size || last >= OTEL_WORDS)
		return OTEL_HEADER_WORDS;
	words[last] = 0;
	barrier_var(size);
	if (size > SONDE_CONTEXT_ATTRIBUTES) /* cannot happen: for the verifier */
		return OTEL_HEADER_WORDS;
	if (!read_user(w, words + OTEL_HEADER_WORDS, size, at + SONDE_CONTEXT_PUBLISHED))
		return last + 1;
	g->record.fault = at + SONDE_CONTEXT_PUBLISHED;
	return OTEL_HEADER_WORDS;
}

/* Reads the context behind the labels that the set has, and adds it to the set's hash. */
static __always_inline int otel_labels(struct walk *w, struct label_walk *g, const struct sonde_otel *otel)
{
	__u32 nr_labels = g->record.nr_labels, nr_words;
	__u64 at, hash = g->record.hash, *words;
	struct sonde_thread_context *context;
	int err = tls_read(w, &otel->process.root, &at);

	if (err || nr_labels > SONDE_MAX_LABELS)
		return err == TLS_NONE ? OTEL_NONE : OTEL_LOST;
	context = (struct sonde_thread_context *)&g->labels[nr_labels];
	words = (__u64 *)context;
	if (read_user(w, context, SONDE_CONTEXT_PUBLISHED, at))
		return OTEL_LOST;
	context->pad = 0;
	if (context->valid != 1)
		return OTEL_NONE;
	context->flags = 0;
	if (otel_says_nothing(words))
		return OTEL_NONE;
	nr_words = otel_attributes(w, g, words, at);
	for (__u32 i = 0; i < OTEL_WORDS && i < nr_words; i++)
		hash = hash_step(hash, words[i]);
	g->record.context_bytes = 8 * nr_words;
	g->record.hash = hash;
	return OTEL_FOUND;
}
