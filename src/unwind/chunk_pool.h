/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_pool: words of kernel memory, by the pos of abi/unwind.h: allocates them in the inner arrays of the map `chunks` and maps these for
 * writing. Freed words wait until no BPF program can still be reading them: an update of an array of maps returns only after all
 * programs that ran before have ended (kernel/bpf/syscall.c, maybe_wait_bpf_programs). One thread. */
#pragma once
#include <stdint.h>

#include "abi/unwind.h"
#include "base/cleanup.h"

#define CHUNK_POOL_FIRST_WORDS 4 /* of the first chunk are never given: pos 0 names nothing */

struct chunk_pool;
/* Borrows the descriptor for the pool's life. NULL: no memory. */
struct chunk_pool *chunk_pool_new(int chunks_fd, uint64_t max_bytes);
void chunk_pool_free(struct chunk_pool *pool);
/* Both give a place in one chunk, at a multiple of four words, never 0. 0; -E2BIG: more than a chunk; -ENOSPC: max_bytes is reached; what
 * bpf(2) gave. alloc is for what comes and goes, and rounds up to a power of two; cut is exact and for what stays. */
MUST_CHECK int chunk_pool_alloc(struct chunk_pool *pool, uint32_t nr_words, uint32_t *ret_pos);
MUST_CHECK int chunk_pool_cut(struct chunk_pool *pool, uint32_t nr_words, uint32_t *ret_pos);
/* Lets the kernel see all chunks there are: before a pos in a new one is given to it. Takes a grace period (some 10 ms) when there are new ones.
 * 0 or what bpf(2) gave. */
MUST_CHECK int chunk_pool_publish(struct chunk_pool *pool);
/* Gives back a place of chunk_pool_alloc, by the same nr_words. */
void chunk_pool_release(struct chunk_pool *pool, uint32_t pos, uint32_t nr_words);
/* The words at pos up to the chunk's end, for writing; valid until chunk_pool_free. */
uint32_t *chunk_pool_words(struct chunk_pool *pool, uint32_t pos);
/* How many words the next cut can have without a new chunk. */
uint32_t chunk_pool_room(const struct chunk_pool *pool);
uint64_t chunk_pool_bytes(const struct chunk_pool *pool);
