/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_pool: words of kernel memory, by the pos of abi/unwind.h: allocates them in the inner arrays of the map `chunks` and maps these for
 * writing. Words that are released wait until no BPF program can still be reading them: an update of an array of maps returns only after
 * all programs that ran before have ended (kernel/bpf/syscall.c, maybe_wait_bpf_programs). Chunks are never given back. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "base/cleanup.h"

#define CHUNK_POOL_UNIT_WORDS 16 /* a cache line: every place begins with one and has whole ones */

/* Words that lie together in one chunk. nr_words 0: none. */
struct chunk_place {
	uint32_t pos, nr_words;
};

struct chunk_pool;
/* Borrows the descriptor for the pool's life; -1: the chunks are our own memory, and no kernel reads them. NULL: no memory. */
struct chunk_pool *chunk_pool_new(int chunks_fd, uint64_t max_bytes);
void chunk_pool_free(struct chunk_pool *pool);
/* A place of max_words or, where free ones lie scattered, of fewer, but not of fewer than min_words; rounded up to units. Never pos 0. 0;
 * -E2BIG: min_words are more than a chunk; -ENOSPC: max_bytes is reached; what bpf(2) gave. Takes a grace period (some 10 ms) when it needs
 * words that were released. */
MUST_CHECK int chunk_pool_alloc(struct chunk_pool *pool, uint32_t min_words, uint32_t max_words, struct chunk_place *ret_place);
/* Gives back what lies behind the first nr_words of a place that the kernel was not told of. */
void chunk_pool_trim(struct chunk_pool *pool, struct chunk_place *place, uint32_t nr_words);
/* Gives a place back that the kernel may be reading: its words are used again after a grace period. */
void chunk_pool_release(struct chunk_pool *pool, struct chunk_place place);
/* Waits for the grace period of what was released. 0 or what bpf(2) gave: then it goes on waiting. */
MUST_CHECK int chunk_pool_settle(struct chunk_pool *pool);
/* How many grace periods have passed. */
uint64_t chunk_pool_nr_settled(const struct chunk_pool *pool);
/* Lets the kernel see all chunks there are: before a pos in a new one is given to it. Takes a grace period when there are new ones. 0 or
 * what bpf(2) gave. */
MUST_CHECK int chunk_pool_publish(struct chunk_pool *pool);
/* The words at pos up to the chunk's end, for writing; valid until chunk_pool_free. */
uint32_t *chunk_pool_words(const struct chunk_pool *pool, uint32_t pos);
uint64_t chunk_pool_bytes(const struct chunk_pool *pool);      /* of all chunks */
uint64_t chunk_pool_used_bytes(const struct chunk_pool *pool); /* of what was given and not given back, with what waits */
