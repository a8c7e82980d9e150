/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_pool: words of kernel memory, addressed by the pos of abi/unwind.h. Allocates them in the inner arrays of the map `chunks`, which
 * are mapped while they are used. Released words wait until no BPF program can still be reading them: an update of an array of maps returns
 * only after all programs that ran before have ended (kernel/bpf/syscall.c, maybe_wait_bpf_programs). Empty chunks are freed then. One
 * thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "base/cleanup.h"

#define CHUNK_POOL_UNIT_WORDS 16 /* a cache line: places start at one and consist of whole ones */

/* Contiguous words in one chunk. nr_words 0: none. */
struct chunk_place {
	uint32_t pos, nr_words;
};

struct chunk_pool;
/* Borrows the descriptor for the pool's life. -1: the chunks are our own memory, which no kernel reads. NULL: no memory. */
struct chunk_pool *chunk_pool_new(int chunks_fd, uint64_t max_bytes);
void chunk_pool_free(struct chunk_pool *pool);
/* Another bound, at most that of chunk_pool_new. Chunks beyond it stay until they are empty. */
void chunk_pool_bound(struct chunk_pool *pool, uint64_t max_bytes);
/* Allocates max_words; fewer if free words are scattered, but at least min_words. Rounds up to units. Never returns pos 0. 0; -E2BIG:
 * min_words do not fit in a chunk; -ENOSPC: max_bytes is reached; or the error of bpf(2). Takes a grace period (some 10 ms) if it needs
 * released words. */
MUST_CHECK int chunk_pool_alloc(struct chunk_pool *pool, uint32_t min_words, uint32_t max_words, struct chunk_place *ret_location);
/* Frees all but the first nr_words of a place that the kernel has not seen. */
void chunk_pool_trim(struct chunk_pool *pool, struct chunk_place *place, uint32_t nr_words);
/* Releases a place that the kernel may be reading: its words are reused after a grace period. */
void chunk_pool_release(struct chunk_pool *pool, struct chunk_place place);
/* Waits for the grace period of what was released. 0, or the error of bpf(2): then the words keep waiting. */
MUST_CHECK int chunk_pool_settle(struct chunk_pool *pool);
/* Number of grace periods that have passed. */
uint64_t chunk_pool_nr_settled(const struct chunk_pool *pool);
/* Shows all chunks to the kernel. To be called before the kernel gets a pos in a new one. Takes a grace period if there are new ones. 0 or
 * the error of bpf(2). */
MUST_CHECK int chunk_pool_publish(struct chunk_pool *pool);
/* The words from pos up to the chunk's end, for writing; valid until chunk_pool_rest. NULL: they cannot be mapped (errno). */
uint32_t *chunk_pool_words(const struct chunk_pool *pool, uint32_t pos);
/* Nobody has words: unmaps chunks that were not used of late, as pages of the kernel count as this process's memory while they are mapped.
 * Mapping one again takes some 20 us. */
void chunk_pool_rest(struct chunk_pool *pool);
uint64_t chunk_pool_bytes(const struct chunk_pool *pool);      /* of all chunks */
uint64_t chunk_pool_used_bytes(const struct chunk_pool *pool); /* of allocated and waiting words */
