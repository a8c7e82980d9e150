/* SPDX-License-Identifier: Apache-2.0 */
/* event_book: takes the records of switches and wake-ups, brings them into the order of time and writes them as numbers; what the numbers stand for (threads, waits, wakers) is kept, each once, and
 * written at the end. One thread. */
#pragma once
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "model/profile.h"
#include "output/event_file.h"
#include "stacks/stack_maker.h"

#define EVENT_ORDER_NS UINT64_C(200000000) /* so late may a record come to be still in the order of time */

struct event_book;
/* The file is written while events come; nothing is at `path` before the end. 0 or a negative errno. */
MUST_CHECK int event_book_new(const char *path, struct diag *diag, struct event_book **ret_book);
void event_book_free(struct event_book *book); /* takes NULL */
/* Events before that are left out. */
void event_book_begin(struct event_book *book, uint64_t start_ns, const char *command_line);
/* Struct sonde_switch_record, sonde_wakeup_record or sonde_waker_record; copied. 0 or -ENOMEM. */
MUST_CHECK int event_book_record(struct event_book *book, const void *record);
/* After all events and stacks have come, which stand in the profile then. `nr_lost`: events that found no room on their way. 0 or the first failure of all. */
struct event_end {
	uint64_t end_ns, unix_offset_ns; /* CLOCK_MONOTONIC, and what makes it times of day */
	uint64_t nr_lost;
};
MUST_CHECK int event_book_end(struct event_book *book, struct stack_maker *maker, struct profile *profile, const struct event_end *end, struct diag *diag);
