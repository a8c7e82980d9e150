/* SPDX-License-Identifier: Apache-2.0 */
/* walk_host: the kernel side's walk (bpf/walk/unwind.h) compiled for the host. The test provides chunks, rules and user memory. */
#pragma once
#include <linux/types.h>
#include <stdint.h>
#include <string.h>

#include "abi/unwind.h"

#define HOST_MAX_CHUNKS 256

static const __u32 *host_chunks[HOST_MAX_CHUNKS];
static struct sonde_rule host_rules[SONDE_MAX_RULES];
static __u32 nr_host_rules;
static long (*host_read)(void *to, __u32 size, __u64 from);

struct walk;

static inline const __u32 *chunk_at(const struct walk *w, __u32 pos)
{
	__u32 number = pos >> SONDE_CHUNK_SHIFT;

	return number < HOST_MAX_CHUNKS ? host_chunks[number] : NULL;
}

static inline const struct sonde_rule *rule_at(const struct walk *w, __u32 number)
{
	return number < nr_host_rules ? &host_rules[number] : NULL;
}

/* Like bpf_probe_read_user: zeroes the buffer if not all of it could be read. */
static inline long read_user(const struct walk *w, void *to, __u32 size, __u64 from)
{
	long err = host_read ? host_read(to, size, from) : -1;

	if (err)
		memset(to, 0, size);
	return err;
}

static __u64 host_tls_base;

static inline __u64 user_tls_base(const struct walk *w)
{
	return host_tls_base;
}

#define WALK_FUNCTION static __attribute__((noinline, unused))
#include "walk/unwind.h"

/* Does the whole walk, as profile.bpf.c does, from the registers in `w`. */
static inline void host_walk(struct walk *w, __u64 *frames)
{
	walk_enter(w);
	for (int turn = 0; turn < WALK_MAX_TURNS; turn++) {
		if (walk_step(w, frames) != WALK_GOES_ON)
			break;
	}
}

/* Checks the result of host_walk(&w, frames): how it ended, and the frames. */
#define check_stack(stop_, ...)                                                  \
	do {                                                                     \
		const uint64_t want_[] = { __VA_ARGS__ };                        \
		assert_int_equal(w.stop, stop_);                                 \
		assert_int_equal(w.nr_frames, sizeof(want_) / sizeof(want_[0])); \
		for (uint32_t i_ = 0; i_ < w.nr_frames; i_++)                    \
			assert_int_equal(frames[i_], want_[i_]);                 \
	} while (0)

/* Chunks in the test's own memory, filled from the front. */
static __u32 host_words[HOST_MAX_CHUNKS][SONDE_CHUNK_WORDS];
static __u32 host_used;

static inline void host_reset(void)
{
	for (__u32 i = 0; i < HOST_MAX_CHUNKS; i++)
		host_chunks[i] = host_words[i];
	host_used = 4;
}

/* Allocates `nr_words` in one chunk; 0: no room. */
static inline __u32 host_alloc(__u32 nr_words)
{
	__u32 pos = (host_used + 3) & ~3u;

	if ((pos & (SONDE_CHUNK_WORDS - 1)) + nr_words > SONDE_CHUNK_WORDS)
		pos = (pos | (SONDE_CHUNK_WORDS - 1)) + 1;
	if (pos + nr_words > HOST_MAX_CHUNKS * SONDE_CHUNK_WORDS)
		return 0;
	host_used = pos + nr_words;
	return pos;
}

static inline void *host_at(__u32 pos)
{
	return &host_words[pos >> SONDE_CHUNK_SHIFT][pos & (SONDE_CHUNK_WORDS - 1)];
}

struct host_row {
	uint64_t rel;
	uint32_t rule;
};

/* Makes a table as in abi/unwind.h from rows that are sorted and begin at 0, up to `end_rel`. It continues elsewhere where a chunk is full.
 */
static inline void host_table(const struct host_row *rows, __u32 nr, uint64_t end_rel, __u32 shift, struct sonde_mapping *mapping)
{
	__u32 nr_blocks = (__u32)(end_rel >> shift) + 1, row = 0, index_pos = host_alloc(nr_blocks * 2), pos = host_alloc(2);
	struct sonde_row last = { .low = 0x1234, .rule = SONDE_RULE_NONE }; /* the rule at the start of a block; its low is unused */

	memcpy(host_at(pos++), &last, sizeof(last));
	for (__u32 block = 0; block < nr_blocks; block++) {
		__u32 end = row, left = SONDE_CHUNK_WORDS - (pos & (SONDE_CHUNK_WORDS - 1));
		struct sonde_block entry = { .pos = pos - 1, .nr_rows = 1 };

		while (end < nr && rows[end].rel >> shift == block)
			end++;
		if (end - row + 1 > left) { /* one more for the closing row */
			pos += left + SONDE_CHUNK_WORDS; /* not in the next chunk */
			entry.pos = pos;
			memcpy(host_at(pos++), &last, sizeof(last));
		}
		for (; row < end; row++) {
			last = (struct sonde_row){ .low = (__u16)(rows[row].rel & ((1u << shift) - 1)), .rule = (__u16)rows[row].rule };
			memcpy(host_at(pos++), &last, sizeof(last));
			entry.nr_rows++;
		}
		if (block == nr_blocks - 1) {
			last = (struct sonde_row){ .low = (__u16)(end_rel & ((1u << shift) - 1)), .rule = SONDE_RULE_NONE };
			memcpy(host_at(pos++), &last, sizeof(last));
			entry.nr_rows++;
		}
		memcpy(host_at(index_pos + block * 2), &entry, sizeof(entry));
	}
	host_used = pos;
	mapping->index_pos = index_pos;
	mapping->nr_blocks = (__u16)nr_blocks;
	mapping->block_shift = (__u16)shift;
}

/* Gives the walk a process with these mappings. */
static inline void host_process(struct walk *w, const struct sonde_mapping *mappings, __u32 nr)
{
	__u32 pos = host_alloc(nr * sizeof(*mappings) / 4);

	memcpy(host_at(pos), mappings, nr * sizeof(*mappings));
	w->process_pos = pos;
	w->nr_mappings = nr;
}
