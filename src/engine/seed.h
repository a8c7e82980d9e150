/* SPDX-License-Identifier: Apache-2.0 */
/* seed: the user stacks of threads that were off the CPU when the recording began. The kernel side sends their registers; their memory is read as soon as that has come. A thread that ran on before
 * has another stack by then: its wait, whose end is known when the recording is over, tells. One thread. */
#pragma once
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"

#define SEED_STACK_BYTES 16384u /* so much of each is copied */

struct seeds;
struct proxy;
struct seeds *seeds_new(struct proxy *proxy); /* which reads memory, borrowed. NULL: no memory */
void seeds_free(struct seeds *seeds); /* takes NULL */
/* Takes raw records, as of the sampler; borrowed for the call. 0 or an error that ends. */
typedef int (*seeds_raw_fn)(void *arg, const struct sonde_raw_record *record);
/* Gives two raw records for `fn`: of the stack as it is now, and of the registers alone. 0, -ENOMEM or what fn gave. */
MUST_CHECK int seeds_take(struct seeds *seeds, const struct sonde_seed_record *record, seeds_raw_fn fn, void *arg);
/* The walk of the raw record `id` goes on where the copy of the stack ends: 0, or not 0 when that is not there. */
int seeds_read_on(struct seeds *seeds, uint64_t id, uint32_t tgid, uint64_t from, void *to, size_t size);
/* The raw record that tells the stack of a wait that began with that seed and ended at `end_ns` (CLOCK_MONOTONIC), or earlier than it really did: that of the registers alone when the thread may
 * have run before its memory was read. */
uint64_t seeds_stack(struct seeds *seeds, uint64_t id, uint64_t end_ns);
uint64_t seeds_id_of_registers(uint64_t id); /* the one that seeds_stack gives then */
uint32_t seeds_nr(const struct seeds *seeds);
uint32_t seeds_nr_late(const struct seeds *seeds); /* of them those of which seeds_stack said so */
