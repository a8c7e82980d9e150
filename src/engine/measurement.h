/* SPDX-License-Identifier: Apache-2.0 */
/* measurement: what a session measures: its programs, what they send, and the profile that is made of it. Each mode is one, a file with
 * options of its own; the session calls them, in the order in which they stand here, and has all that they share: the engine, the command,
 * the loop, windows, names and outputs. One thread, but for `profile`. docs/internals/measurements.md */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "engine/engine.h"
#include "engine/target.h"
#include "engine/window.h"
#include "model/account.h"
#include "model/profile.h"
#include "stacks/stack_builder.h"

struct measurement_parts { /* of the session; borrowed for the measurement's life */
	const struct sonde_session_options
	    *options; /* with the defaults filled in; structs of modes, texts and lists in it are there until it is loaded */
	struct engine *engine;                       /* zeros until it is loaded */
	struct account *account;                     /* of the recording: for notes */
};

/* Each begins with one. */
struct measurement {
	const struct measurement_type *type;
	struct measurement_parts parts;
	bool needs_engine;     /* it takes stacks */
	bool watches_all;      /* among them those of threads that were not asked for */
	bool needs_initial_stacks;      /* threads that wait at the start are told of (engine.h) */
	bool prints_windows;   /* `profile` tells what is in a window, as soon as it may: nothing is written to the outputs */
	bool has_stacks, has_histograms; /* in the profile; neither: there is none */
	bool takes_whole_command; /* also what it does when it is to end counts: its end comes before `stop` */
};

struct measurement_type {
	size_t bytes;          /* of its struct, zeros but for what stands above */
	bool finds_targets;      /* by the session's options itself: no filter is made of them. The processes and threads exist */

	/* Checks its options; says in `sampling`, which has what all have in common, what it wants of the engine. 0, -ENOMEM; -EINVAL: the
	 * caller's mistake. */
	int (*init)(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag);
	void (*done)(struct measurement *measurement); /* also after a failure; NULL: nothing */

	/* Loads what triggers it; the engine is there. `targets`: whose, if tgids or tids were asked for; borrowed for the call.
	 * `command_tgid`: of the command, which waits to begin; 0: there is none. 0; -EPERM; -EOPNOTSUPP. */
	int (*load)(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag);
	/* From *ret_start_ns (CLOCK_MONOTONIC; the session has filled it in) on it counts. */
	int (*start)(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns);
	/* A record that came through the ring and that is not the stack_recorder's: abi/record.h. Copied. NULL: there are none. */
	int (*record)(struct measurement *measurement, const void *record);
	/* While it runs, about each 100 ms. 0 or an error that ends the run. NULL: nothing. */
	int (*step)(struct measurement *measurement, uint64_t now_ns, struct diag *diag);
	/* Readable when there is something for `step`, beside the ring; borrowed; -1 or NULL: never. */
	int (*fd)(const struct measurement *measurement);
	/* With `every_ns`: an interval has ended. NULL: a window is what it has. */
	int (*interval)(struct measurement *measurement, uint64_t border_ns);
	/* Nothing from *ret_end_ns (the session has filled it in) on counts. */
	int (*stop)(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns);
	/* What it has beside the windows; NULL: nothing, the profile is the last window's. *ret_profile is the caller's. */
	int (*finish)(struct measurement *measurement, uint64_t start_ns, uint64_t end_ns, struct profile **ret_profile);

	/* Windows, of those that need the engine; docs/internals/windows.md. NULL: nothing is to be done. */
	bool (*is_due)(const struct measurement *measurement);   /* a window is to end now; NULL: each `every_ns` */
	bool (*set_border)(struct measurement *measurement, uint64_t *border_ns); /* as sched_programs_set_border */
	int (*cut)(struct measurement *measurement, struct diag *diag);
	int (*close)(struct measurement *measurement, const struct process_table *processes,
		     struct window *window); /* all that was sent before the border has come: what the window has of it */
	size_t (*window_bytes)(const struct measurement *measurement); /* of the open window, beside those of the book */
	/* Makes samples of what the window has. In another thread, while the measurement goes on: what changes there is not to be looked
	 * at. 0 or -ENOMEM. */
	int (*profile)(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile);

	/* What was observed, up to now. */
	uint64_t (*nr)(const struct measurement *measurement);
	void (*account)(const struct measurement *measurement, struct account *account);
	void (*summary)(const struct measurement *measurement,
			struct buffer *lines); /* in words, in place of the account's; NULL: these do */
};

/* 0; as init. */
MUST_CHECK int measurement_new(const struct measurement_type *type, const struct measurement_parts *parts, struct sampler_options *sampling,
			       struct diag *diag, struct measurement **ret_measurement);
void measurement_free(struct measurement *measurement); /* takes NULL */
/* What there is to a window, with names. In any thread, one at a time. *ret_nr_skipped: files that were not read in haste. 0 or -ENOMEM, or
 * what `profile` gave. */
MUST_CHECK int measurement_profile(struct measurement *measurement, struct window *window, const struct naming *naming,
				   struct profile **ret_profile, uint32_t *ret_nr_skipped);
