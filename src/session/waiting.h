/* SPDX-License-Identifier: Apache-2.0 */
/* waiting: the part of a session that asks how long threads are off the CPU: the scheduler's programs from their start to their sums, and what they send beside the stacks. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "base/diag.h"
#include "collect/sampler.h"
#include "collect/sched_programs.h"
#include "model/profile.h"
#include "session/seed.h"
#include "session/stack_book.h"

struct waiting;
struct waiting_parts { /* of the session, borrowed for its life */
	struct sampler *sampler;
	struct stack_book *book;
	struct seeds *seeds;
	struct profile *profile;
};
/* Loads the programs; `options` are checked ones. As sched_programs_new. */
MUST_CHECK int waiting_new(const struct sonde_profile_options *options, const struct waiting_parts *parts, struct diag *diag, struct waiting **ret_waiting);
void waiting_free(struct waiting *waiting); /* takes NULL */
/* As sched_programs_start and _stop: between the two times each wait counts. */
MUST_CHECK int waiting_start(struct waiting *waiting, struct diag *diag, uint64_t *ret_start_ns);
MUST_CHECK int waiting_stop(struct waiting *waiting, struct diag *diag, uint64_t *ret_end_ns);
/* Is it a record for waiting_record (abi/wait.h), not for the stack_book? */
bool waiting_is_for(uint32_t record_type);
/* A record as the sampler gives it; copied. 0 or -ENOMEM. */
MUST_CHECK int waiting_record(struct waiting *waiting, const void *record);
/* Between start and stop, about each 100 ms: takes the sums when the kernel's room runs out; --max-overhead. 0 or an error that ends the run. */
MUST_CHECK int waiting_step(struct waiting *waiting, uint64_t now_ns);
bool waiting_has_room(const struct waiting *waiting); /* for more stacks of wakers, without end */
uint64_t waiting_nr_waits(const struct waiting *waiting); /* that were added to a sum so far */
/* After the stop: fills the profile with the waits, a sample for each sum. 0 or -ENOMEM. */
MUST_CHECK int waiting_profile(struct waiting *waiting, struct stack_maker *maker);
/* Likewise: ends the file of switches and wake-ups, where one was asked for. 0 or the first failure that it met. */
MUST_CHECK int waiting_write_events(struct waiting *waiting, struct stack_maker *maker, uint64_t end_ns, uint64_t unix_offset_ns, struct diag *diag);
/* What the account says of the waits. */
void waiting_account(const struct waiting *waiting, struct account *account);
