/* SPDX-License-Identifier: Apache-2.0 */
/* wall_table: shares out the time that threads were on a CPU, known exactly from the scheduler's events, among the samples that ticks took
 * of them: in proportion, each nanosecond once. One thread. */
#pragma once
#include <stdint.h>

#include "abi/record.h"
#include "base/cleanup.h"

#define WALL_NOT_SAMPLED UINT32_MAX

/* A thread under one of its names. Zeroed before it is filled: it is hashed and compared whole. */
struct wall_thread {
	uint32_t tgid, tid;
	char comm[SONDE_COMM_BYTES];
};

struct wall_table;
struct wall_table *wall_table_new(void); /* NULL: no memory */
void wall_table_free(struct wall_table *table); /* takes NULL */
/* Each adds to what it was given before. 0 or -ENOMEM. */
MUST_CHECK int wall_table_ran(struct wall_table *table, const struct wall_thread *thread, uint64_t running_ns);
MUST_CHECK int wall_table_sampled(struct wall_table *table, const struct wall_thread *thread, uint32_t sample, uint64_t count);
/* `sample`: one that was passed to wall_table_sampled, or WALL_NOT_SAMPLED. A negative result ends the calls. */
typedef int (*wall_share_fn)(void *arg, const struct wall_thread *thread, uint32_t sample, uint64_t running_ns);
/* Call once. The shares passed to `fn` add up to the times passed to wall_table_ran, thread by thread. If a thread is not known to have run
 * under a sample's name (it was renamed before it left the CPU), the sample goes to the name under which it ran most. 0 or the result of
 * fn. */
MUST_CHECK int wall_table_shares(struct wall_table *table, wall_share_fn fn, void *arg);
