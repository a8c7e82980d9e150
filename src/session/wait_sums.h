/* SPDX-License-Identifier: Apache-2.0 */
/* wait_sums: the sums of the scheduler's programs, taken from the kernel whenever its room runs out, and put together again by their keys: on a busy machine threads come and go, and the sums of those
 * that are gone would fill the kernel's map within minutes. One thread. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "collect/sched_programs.h"

struct wait_sums;
struct wait_sums *wait_sums_new(void); /* NULL: no memory */
void wait_sums_free(struct wait_sums *sums); /* takes NULL */
/* Is there room for more? Without it they stay in the kernel, which counts what finds no place there. */
bool wait_sums_have_room(const struct wait_sums *sums);
/* Takes in what the programs have. 0, -ENOMEM or what bpf(2) gave. */
MUST_CHECK int wait_sums_take(struct wait_sums *sums, struct sched_programs *programs);
/* Gives all sums to the sink, then all slots; each key once. 0 or what the sink gave. */
MUST_CHECK int wait_sums_give(const struct wait_sums *sums, const struct sched_sink *sink);
