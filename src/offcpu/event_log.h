/* SPDX-License-Identifier: Apache-2.0 */
/* event_log: takes the records of switches and wake-ups, sorts them by time and writes them as numbers. What the numbers stand for
 * (threads, waits, wakers) is kept, each once, and written at the end. One thread. */
#pragma once
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "model/profile.h"
#include "output/event_file.h"
#include "stacks/stack_builder.h"

#define EVENT_ORDER_NS UINT64_C(200000000) /* a record may arrive so late and still be sorted by time */

struct event_log;
/* The file is written while events arrive; nothing is at `path` before the end. 0 or a negative errno. */
MUST_CHECK int event_log_new(const char *path, struct diag *diag, struct event_log **ret_events);
void event_log_free(struct event_log *events); /* takes NULL */
/* Earlier events are left out. */
void event_log_begin(struct event_log *events, uint64_t start_ns, const char *command_line);
/* Struct sonde_switch_record, sonde_wakeup_record or sonde_waker_record; copied. 0 or -ENOMEM. */
MUST_CHECK int event_log_record(struct event_log *events, const void *record);
/* Call when all events have arrived, and all stacks are in the profile. `nr_lost`: events that found no room on their way. 0 or the first
 * failure of all. */
struct event_end {
	uint64_t end_ns, unix_offset_ns; /* CLOCK_MONOTONIC, and its offset to the time of day */
	uint64_t nr_lost;
};
MUST_CHECK int event_log_end(struct event_log *events, struct stack_builder *builder, struct profile *profile, const struct event_end *end,
			     struct diag *diag);
