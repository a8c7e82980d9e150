/* SPDX-License-Identifier: Apache-2.0 */
/* window: what one profile is made of, from one moment of a recording to another: samples or sums of waits, the bodies that they name, the
 * files that these stand in, and the account. Closed, it needs nothing of the recording: another thread may make the profile, while the
 * next window is recorded. docs/internals/windows.md */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "model/account.h"
#include "naming/location_files.h"
#include "stacks/stack_recorder.h"
#include "stacks/wait_sums.h"

struct window {
	uint32_t number;             /* from 1 on */
	uint64_t start_ns, end_ns;   /* CLOCK_MONOTONIC */
	uint64_t unix_offset_ns;     /* of CLOCK_REALTIME to it */
	const struct stack_store *store; /* borrowed until stack_recorder_done */
	struct samples *samples;
	struct wait_sums *sums;      /* NULL: waits were not asked for */
	struct buffer waits;         /* of runq --stacks: struct sonde_runqslower_record each */
	struct location_files *files;
	struct account account;      /* as far as it is known before the profile is made */
	int events_err;              /* that a file of events was not written with; the account has a note */
};
void window_free(struct window *window); /* takes NULL; not the store */
static inline void window_freep(struct window **window)
{
	window_free(*window);
}
