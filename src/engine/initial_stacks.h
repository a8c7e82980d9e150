/* SPDX-License-Identifier: Apache-2.0 */
/* seed: the user stacks of threads that were off the CPU when the recording began. The kernel side sends their registers; their memory is
 * read as soon as that has come. A thread that ran on before has another stack by then: its wait, whose end is known when the recording is
 * over, tells. One thread. */
#pragma once
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"

#define INITIAL_STACK_BYTES 16384u /* so much of each is copied */

struct initial_stacks;
struct proxy;
struct initial_stacks *initial_stacks_new(struct proxy *proxy); /* which reads memory, borrowed. NULL: no memory */
void initial_stacks_free(struct initial_stacks *initial_stacks); /* takes NULL */
/* Takes raw records, as of the sampler; borrowed for the call. 0 or an error that ends. */
typedef int (*initial_stacks_deferred_fn)(void *arg, const struct sonde_deferred_record *record);
/* Gives two raw records for `fn`: of the stack as it is now, and of the registers alone. 0, -ENOMEM or what fn gave. */
MUST_CHECK int initial_stacks_take(struct initial_stacks *initial_stacks, const struct sonde_initial_stack_record *record,
				   initial_stacks_deferred_fn fn, void *arg);
/* The walk of the raw record `id` goes on where the copy of the stack ends: 0, or not 0 when that is not there. */
int initial_stacks_read_on(struct initial_stacks *initial_stacks, uint64_t id, uint32_t tgid, uint64_t from, void *to, size_t size);
/* The raw record that tells the stack of a wait that began with that seed and ended at `end_ns` (CLOCK_MONOTONIC), or earlier than it
 * really did: that of the registers alone when the thread may have run before its memory was read. */
uint64_t initial_stacks_stack(struct initial_stacks *initial_stacks, uint64_t id, uint64_t end_ns);
uint64_t initial_stacks_id_of_registers(uint64_t id); /* the one that initial_stacks_stack gives then */
uint32_t initial_stacks_nr(const struct initial_stacks *initial_stacks);
uint32_t initial_stacks_nr_late(const struct initial_stacks *initial_stacks); /* of them those of which initial_stacks_stack said so */
