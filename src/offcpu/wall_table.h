/* SPDX-License-Identifier: Apache-2.0 */
/* wall_table: shares the time that threads were on a CPU, which the scheduler's events tell exactly, among the samples that ticks took of
 * them: in proportion, each nanosecond once. One thread. */
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
/* Both add up. 0 or -ENOMEM. */
MUST_CHECK int wall_table_ran(struct wall_table *table, const struct wall_thread *thread, uint64_t running_ns);
MUST_CHECK int wall_table_sampled(struct wall_table *table, const struct wall_thread *thread, uint32_t sample, uint64_t count);
/* `sample` is one of those that were given, or WALL_NOT_SAMPLED. A negative result ends. */
typedef int (*wall_share_fn)(void *arg, const struct wall_thread *thread, uint32_t sample, uint64_t running_ns);
/* What is given to `fn` adds up to what was given to wall_table_ran, thread by thread. Samples of a name under which the thread is not
 * known to have run (it was renamed before it left the CPU) stand with the name under which it ran most. Once. 0 or what fn gave. */
MUST_CHECK int wall_table_shares(struct wall_table *table, wall_share_fn fn, void *arg);
