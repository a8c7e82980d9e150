/* SPDX-License-Identifier: Apache-2.0 */
/* window: the contents of one profile, between two moments of a recording: samples or sums of waits, the payloads that they refer to, the
 * files of their locations, and the account. Once closed, it needs nothing from the recording: another thread may make the profile while
 * the next window is recorded. docs/internals/windows.md */
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
	uint32_t number;             /* from 1 */
	uint64_t start_ns, end_ns;   /* CLOCK_MONOTONIC */
	uint64_t unix_offset_ns;     /* CLOCK_REALTIME minus that */
	const struct stack_store *store; /* borrowed until stack_recorder_done */
	struct samples *samples;
	bool has_process_labels;     /* as far as they are known */
	struct wait_sums *sums;      /* NULL: waits are not measured */
	struct buffer waits;         /* of runq --stacks: struct sonde_runqslower_record each */
	void *own;                   /* what the measurement keeps of it; NULL: nothing */
	void (*free_own)(void *own);
	struct location_files *files;
	struct account account;      /* as far as it is known before the profile is made */
	int events_err;              /* from writing a file of events; the account has a note */
};
void window_free(struct window *window); /* takes NULL; does not free the store */
static inline void window_freep(struct window **window)
{
	window_free(*window);
}
