/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The labels that a Go program has given to the goroutine a thread works for (runtime/pprof.Do, SetGoroutineLabels). As in Go's own
 * profiler (runtime.sigprof), these are m.curg's: also in a system call, in C, and on g0. A set of labels does not change once a goroutine
 * has it: the goroutine gets another set. Facts: Go's src/runtime/runtime2.go, src/runtime/map.go, src/runtime/pprof/label.go, 1.16 to
 * 1.27.
 *
 * Compiles for BPF and for the host, as walk/unwind.h does, with its accessors and:
 *
 *   struct label_walk *label_walk_of(WALK_REF ref)   what belongs to a native walk, or NULL
 *
 * The order of buckets differs between maps, and equal sets must have equal hashes. So the hash is a sum over the labels, and of more than
 * SONDE_MAX_LABELS the ones with the least keys are kept. */
#pragma once
#include "../abi/go.h"
#include "../abi/record.h"
#include "label_walk.h"
#include "../walk/unwind.h"

#define GO_LABELS_NONE 0  /* no goroutine, or it has no labels */
#define GO_LABELS_FOUND 1
#define GO_LABELS_LOST 2  /* not readable, or not labels */

/* struct hmap: count, {flags, B, noverflow, hash0}, buckets, oldbuckets. A bucket: tophash[8], keys[8], values[8] (strings: pointer,
 * length), overflow. */
#define GO_MAP_WORDS 4
#define GO_MAP_SAME_SIZE 8 /* flag: there are as many old buckets as new ones */
#define GO_BUCKET_WORDS LABEL_BUFFER_WORDS
#define GO_BUCKET_BYTES (8 * GO_BUCKET_WORDS)
#define GO_BUCKET_CELLS 8
#define GO_BUCKET_KEYS 1
#define GO_BUCKET_TEXTS (GO_BUCKET_KEYS + 2 * GO_BUCKET_CELLS)
#define GO_BUCKET_OVERFLOW (GO_BUCKET_WORDS - 1)
#define GO_FULL_CELL 5 /* minTopHash: lower values mark empty cells, and cells moved to the new buckets */
#define GO_MAX_MAP_SHIFT 4
#define GO_MAX_BUCKETS 32 /* of one map, with old ones and overflow */
#define GO_MAX_LABELS (1u << 20) /* a larger number is not a set of labels */
#define GO_LABEL_WORDS 4 /* of the list form */
#define GO_KEY_WORDS (SONDE_LABEL_KEY_BYTES / 8)
#define GO_TEXT_WORDS (SONDE_LABEL_TEXT_BYTES / 8)

/* Reads the first bytes of a string, and zeroes the rest of its field. */
static __always_inline int go_text(struct walk *w, struct label_walk *g, char *to, __u32 max, __u64 from, __u64 bytes)
{
	__u32 size = bytes < max ? bytes : max;
	__u64 *words = (__u64 *)to;

	for (__u32 i = 0; i < max / 8; i++)
		words[i] = 0;
	__asm__ volatile("" : "+r"(size)); /* the verifier has to see the bound in the register that is passed */
	if (size > max)
		return -1;
	if (!read_user(w, to, size, from))
		return 0;
	g->record.fault = from;
	return -1;
}

static __always_inline __u64 go_label_hash(const struct sonde_label *label)
{
	const __u64 *key = (const __u64 *)label->key, *text = (const __u64 *)label->text;
	__u64 hash = hash_step(SONDE_RUNTIME_GO, label->key_bytes | (__u64)label->text_bytes << 32);

	for (int i = 0; i < GO_KEY_WORDS; i++)
		hash = hash_step(hash, key[i]);
	for (int i = 0; i < GO_TEXT_WORDS; i++)
		hash = hash_step(hash, text[i]);
	return hash;
}

/* Both below SONDE_MAX_LABELS + 1. Compares by bytes, as Go compares strings. */
static __always_inline int go_label_before(const struct label_walk *g, __u32 a, __u32 b)
{
	const __u64 *key_a = (const __u64 *)g->labels[a].key, *key_b = (const __u64 *)g->labels[b].key;

	for (int i = 0; i < GO_KEY_WORDS; i++) {
		if (key_a[i] != key_b[i])
			return __builtin_bswap64(key_a[i]) < __builtin_bswap64(key_b[i]);
	}
	return g->hashes[a] < g->hashes[b];
}

/* The last label replaces the one with the greatest key, if that is greater than its own. */
static __always_inline void go_label_replace(struct label_walk *g)
{
	__u32 greatest = SONDE_MAX_LABELS;

	for (__u32 i = 0; i < SONDE_MAX_LABELS; i++) {
		if (go_label_before(g, greatest, i))
			greatest = i;
	}
	if (greatest < SONDE_MAX_LABELS) {
		g->labels[greatest] = g->labels[SONDE_MAX_LABELS];
		g->hashes[greatest] = g->hashes[SONDE_MAX_LABELS];
	}
}

/* Stores a label whose two strings are in the buffer. */
WALK_FUNCTION int go_label_take(WALK_REF ref, __u32 key, __u32 text)
{
	struct walk *w = walk_of(ref);
	struct label_walk *g = label_walk_of(ref);
	struct sonde_label *label;
	__u64 key_bytes, text_bytes;
	__u32 i;

	if (!w || !g || key > GO_BUCKET_WORDS - 2 || text > GO_BUCKET_WORDS - 2)
		return -1;
	i = g->record.nr_labels;
	if (i > SONDE_MAX_LABELS)
		return -1;
	label = &g->labels[i];
	key_bytes = g->buffer[key + 1];
	text_bytes = g->buffer[text + 1];
	label->key_bytes = key_bytes < ~0u ? key_bytes : ~0u;
	label->text_bytes = text_bytes < ~0u ? text_bytes : ~0u;
	if (go_text(w, g, label->key, SONDE_LABEL_KEY_BYTES, g->buffer[key], key_bytes) ||
	    go_text(w, g, label->text, SONDE_LABEL_TEXT_BYTES, g->buffer[text], text_bytes)) {
		g->record.nr_left++;
		return 0;
	}
	g->hashes[i] = go_label_hash(label);
	if (i < SONDE_MAX_LABELS) {
		g->record.nr_labels = i + 1;
		return 0;
	}
	g->record.nr_left++;
	go_label_replace(g);
	return 0;
}

static __always_inline int go_read_list(struct walk *w, struct label_walk *g, __u64 list)
{
	__u64 nr;
	__u32 nr_taken;

	if (read_user(w, g->buffer, 16, list))
		return GO_LABELS_LOST;
	nr = g->buffer[1];
	if (nr > GO_MAX_LABELS)
		return GO_LABELS_LOST;
	nr_taken = nr < SONDE_MAX_LABELS ? nr : SONDE_MAX_LABELS;
	if (read_user(w, g->buffer, nr_taken * GO_LABEL_WORDS * 8, g->buffer[0]))
		return GO_LABELS_LOST;
	for (__u32 i = 0; i < SONDE_MAX_LABELS && i < nr_taken; i++)
		go_label_take(ref_of(w), i * GO_LABEL_WORDS, i * GO_LABEL_WORDS + 2);
	g->record.nr_left += nr - nr_taken;
	return GO_LABELS_FOUND;
}

/* The address of the next bucket; 0: there are no more. */
static __always_inline __u64 go_next_bucket(struct label_walk *g)
{
	__u32 i = g->next_bucket;

	if (g->overflow)
		return g->overflow;
	if (i >= g->nr_buckets + g->nr_old_buckets)
		return 0;
	g->next_bucket = i + 1;
	return i < g->nr_buckets ? g->buckets + i * GO_BUCKET_BYTES : g->old_buckets + (i - g->nr_buckets) * GO_BUCKET_BYTES;
}

/* Returns WALK_GOES_ON; WALK_ENDED: there are no more buckets, or one cannot be read. */
WALK_FUNCTION int go_read_bucket(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct label_walk *g = label_walk_of(ref);
	__u64 at;

	if (!w || !g)
		return WALK_ENDED;
	at = go_next_bucket(g);
	if (!at || read_user(w, g->buffer, GO_BUCKET_BYTES, at))
		return WALK_ENDED;
	g->overflow = g->buffer[GO_BUCKET_OVERFLOW];
	for (__u32 cell = 0; cell < GO_BUCKET_CELLS; cell++) {
		if ((g->buffer[0] >> cell * 8 & 0xff) >= GO_FULL_CELL)
			go_label_take(ref, GO_BUCKET_KEYS + 2 * cell, GO_BUCKET_TEXTS + 2 * cell);
	}
	return WALK_GOES_ON;
}

static __always_inline int go_read_map(struct walk *w, struct label_walk *g, __u64 variable)
{
	__u64 map, nr;
	__u32 shift;

	if (read_user(w, &map, sizeof(map), variable))
		return GO_LABELS_LOST;
	if (!map)
		return GO_LABELS_NONE;
	if (read_user(w, g->buffer, GO_MAP_WORDS * 8, map))
		return GO_LABELS_LOST;
	nr = g->buffer[0];
	shift = g->buffer[1] >> 8 & 0xff;
	if (nr > GO_MAX_LABELS || shift > 20)
		return GO_LABELS_LOST;
	g->nr_buckets = 1u << shift;
	g->nr_old_buckets = !g->buffer[3] ? 0 : g->buffer[1] & GO_MAP_SAME_SIZE ? g->nr_buckets : g->nr_buckets / 2;
	g->buckets = g->buffer[2];
	g->old_buckets = g->buffer[3];
	g->overflow = g->next_bucket = 0;
	for (int i = 0; i < GO_MAX_BUCKETS && nr && shift <= GO_MAX_MAP_SHIFT; i++) {
		if (go_read_bucket(ref_of(w)) != WALK_GOES_ON)
			break;
	}
	if (g->record.nr_labels + g->record.nr_left != nr) { /* the ones found are a matter of chance */
		g->record.nr_labels = 0;
		g->record.nr_left = nr;
	}
	return GO_LABELS_FOUND;
}

static __always_inline void go_hash_labels(struct label_walk *g, __u64 hash_begin)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < SONDE_MAX_LABELS; i++) {
		if (i < g->record.nr_labels)
			sum += g->hashes[i];
	}
	g->record.hash =
	    hash_step(hash_step(hash_step(hash_begin, SONDE_RECORD_LABELS), sum), g->record.nr_labels | (__u64)g->record.nr_left << 32);
}

/* GO_LABELS_FOUND: g->record and g->labels are filled in, except record.time_ns. */
static __always_inline int go_labels(struct walk *w, struct label_walk *g, const struct sonde_go *go, __u32 tgid)
{
	__u64 tls = user_tls_base(w), word;
	int result;

	if (!tls || read_user(w, &word, sizeof(word), tls + go->process.root.off))
		return GO_LABELS_LOST;
	if (!word) /* a thread that never ran Go */
		return GO_LABELS_NONE;
	if (read_user(w, &word, sizeof(word), word + GO_G_M) || !word || read_user(w, &word, sizeof(word), word + go->m_curg))
		return GO_LABELS_LOST;
	if (!word)
		return GO_LABELS_NONE;
	if (read_user(w, &word, sizeof(word), word + go->g_labels))
		return GO_LABELS_LOST;
	if (!word)
		return GO_LABELS_NONE;
	g->record.type = SONDE_RECORD_LABELS;
	g->record.tgid = tgid;
	g->record.generation = w->generation;
	g->record.nr_labels = g->record.nr_left = g->record.context_bytes = 0;
	g->record.fault = 0;
	result = go->labels == SONDE_GO_LABELS_LIST ? go_read_list(w, g, word) : go_read_map(w, g, word);
	if (result != GO_LABELS_FOUND)
		return result;
	go_hash_labels(g, w->hash_begin);
	return g->record.nr_labels || g->record.nr_left ? GO_LABELS_FOUND : GO_LABELS_NONE;
}
