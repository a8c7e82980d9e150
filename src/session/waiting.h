/* SPDX-License-Identifier: Apache-2.0 */
/* waiting: the part of a session that asks how long threads are off the CPU: the scheduler's programs from their start to the sums of each window, and what they send beside the stacks. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "base/diag.h"
#include "collect/sampler.h"
#include "collect/sched_programs.h"
#include "model/account.h"
#include "session/event_book.h"
#include "session/seed.h"
#include "session/stack_book.h"
#include "session/wait_sums.h"

struct waiting;
struct waiting_parts { /* of the session, borrowed for its life */
	struct sampler *sampler;
	struct stack_book *book;
	struct seeds *seeds;
};
/* Loads the programs; `options` are checked ones. As sched_programs_new. */
MUST_CHECK int waiting_new(const struct sonde_profile_options *options, const struct waiting_parts *parts, struct diag *diag, struct waiting **ret_waiting);
void waiting_free(struct waiting *waiting); /* takes NULL */
/* As sched_programs_start: from then on each wait counts. `command_line`: for the file of events. */
MUST_CHECK int waiting_start(struct waiting *waiting, const char *command_line, struct diag *diag, uint64_t *ret_start_ns);
/* Is it a record for waiting_record (abi/wait.h), not for the stack_book? */
bool waiting_is_for(uint32_t record_type);
/* A record as the sampler gives it; copied. 0 or -ENOMEM. */
MUST_CHECK int waiting_record(struct waiting *waiting, const void *record);
/* While it runs, about each 100 ms: takes the sums when the kernel's room runs out; --max-overhead. 0 or an error that ends the run. */
MUST_CHECK int waiting_step(struct waiting *waiting, uint64_t now_ns);
uint64_t waiting_nr_waits(const struct waiting *waiting); /* that were added to a sum so far */
size_t waiting_bytes(const struct waiting *waiting); /* of the open window's sums */

/* As sched_programs_tell_border. */
bool waiting_tell_border(struct waiting *waiting, uint64_t *border_ns);
/* As sched_programs_cut: the window has ended there; and as sched_programs_stop: there are no others. */
MUST_CHECK int waiting_cut(struct waiting *waiting, struct diag *diag);
MUST_CHECK int waiting_stop(struct waiting *waiting, struct diag *diag, uint64_t *ret_end_ns);
/* After all that was sent before the border has come, and before the book's window is closed: the sums of the window that was cut, for the caller to free. 0 or -ENOMEM. */
MUST_CHECK int waiting_close(struct waiting *waiting, const struct process_table *processes, struct wait_sums **ret_sums);
struct event_book *waiting_events(const struct waiting *waiting); /* borrowed; NULL: not asked for */
uint64_t waiting_events_lost(const struct waiting *waiting);
/* What the account says of the waits, up to now. */
void waiting_account(const struct waiting *waiting, struct account *account);
