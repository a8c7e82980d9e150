/* SPDX-License-Identifier: Apache-2.0 */
/* initial_stacks: the user stacks of threads that were off the CPU when the recording began. The kernel side sends their registers; their
 * memory is read as soon as these arrive. A thread that ran before that has another stack by then. The end of its wait, known when the
 * recording is over, shows it. One thread. */
#pragma once
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"

#define INITIAL_STACK_BYTES 16384u /* copied of each stack, at most */

struct initial_stacks;
struct proxy;
struct initial_stacks *initial_stacks_new(struct proxy *proxy); /* borrows the proxy, to read memory. NULL: no memory */
void initial_stacks_free(struct initial_stacks *initial_stacks); /* takes NULL */
/* Takes deferred records, like the sampler's; borrowed for the call. 0 or an error that ends the run. */
typedef int (*initial_stacks_deferred_fn)(void *arg, const struct sonde_deferred_record *record);
/* Passes two deferred records to `fn`: one with the stack as it is now, and one with the registers only. 0, -ENOMEM or the error of fn. */
MUST_CHECK int initial_stacks_take(struct initial_stacks *initial_stacks, const struct sonde_initial_stack_record *record,
				   initial_stacks_deferred_fn fn, void *arg);
/* Reads memory for the walk of the deferred record `id` behind the end of its copy: 0, or not 0 when it is not there. */
int initial_stacks_read_on(struct initial_stacks *initial_stacks, uint64_t id, uint32_t tgid, uint64_t from, void *to, size_t size);
/* The id of the deferred record for a wait that began with that initial stack and ended at `end_ns` (CLOCK_MONOTONIC), which may be earlier
 * than its real end. If the thread may have run before its memory was read: that with the registers only. */
uint64_t initial_stacks_stack(struct initial_stacks *initial_stacks, uint64_t id, uint64_t end_ns);
uint64_t initial_stacks_id_of_registers(uint64_t id); /* the id that initial_stacks_stack returns then */
uint32_t initial_stacks_nr(const struct initial_stacks *initial_stacks);
uint32_t initial_stacks_nr_late(const struct initial_stacks *initial_stacks); /* number of waits for which initial_stacks_stack did that */
