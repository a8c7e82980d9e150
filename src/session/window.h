/* SPDX-License-Identifier: Apache-2.0 */
/* window: what one profile is made of, from one moment of a recording to another: samples or sums of waits, the bodies that they name, the files that these stand in, and the account. Closed, it needs
 * nothing of the recording: another thread may make the profile, while the next window is recorded. docs/internals/windows.md */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "model/profile.h"
#include "session/event_book.h"
#include "session/namer.h"
#include "session/place_files.h"
#include "session/stack_book.h"
#include "session/wait_sums.h"

struct window {
	uint32_t number;             /* from 1 on */
	uint64_t start_ns, end_ns;   /* CLOCK_MONOTONIC */
	uint64_t unix_offset_ns;     /* of CLOCK_REALTIME to it */
	const struct stack_store *store; /* borrowed until stack_book_done */
	struct samples *samples;
	struct wait_sums *sums;      /* NULL: waits were not asked for */
	struct place_files *files;
	struct account account;      /* as far as it is known before the profile is made */
	struct event_book *events;   /* borrowed; NULL: there is no file of events */
	uint64_t events_lost;
	int events_err;              /* that their file was not written with; the account has a note */
};
void window_free(struct window *window); /* takes NULL; not the store */
static inline void window_freep(struct window **window)
{
	window_free(*window);
}

/* What there is to a window. `options`: the session's. *ret_nr_skipped: files that were not read in haste. 0 or -ENOMEM. */
MUST_CHECK int window_profile(struct window *window, const struct sonde_profile_options *options, const struct naming *naming, struct profile **ret_profile, uint32_t *ret_nr_skipped);
