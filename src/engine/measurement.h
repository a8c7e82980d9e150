/* SPDX-License-Identifier: Apache-2.0 */
/* measurement: what a session measures: its programs, their records, and the profile made of them. Each mode is one, a file with its own
 * options. The session calls its functions in the order below, and provides what all modes share: the engine, the command, the loop,
 * windows, names and outputs. One thread, except for `profile`. docs/internals/measurements.md */
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
	/* with the defaults filled in; mode structs, texts and lists in it are valid until it is loaded */
	const struct sonde_session_options *options;
	struct engine *engine;                       /* zeros until it is loaded */
	struct account *account;                     /* of the recording: for notes */
};

/* Each measurement's struct begins with one. */
struct measurement {
	const struct measurement_type *type;
	struct measurement_parts parts;
	bool needs_engine;     /* it takes stacks */
	bool watches_all;      /* also stacks of threads outside the targets */
	bool needs_initial_stacks;      /* threads that wait at the start are reported (engine.h) */
	bool prints_windows;   /* `profile` prints a window's contents at once; nothing is written to the outputs */
	bool has_stacks, has_histograms; /* in the profile; neither: there is none */
	bool may_be_empty;     /* to see nothing is a result: not SONDE_EXIT_NO_SAMPLES */
	bool takes_whole_command; /* records what the command does after the request to end it: its end comes before `stop` */
};

struct measurement_type {
	size_t bytes;          /* of its struct; zeros except for the members above */
	bool has_labels;       /* of processes, where the session asks for them */
	bool finds_targets; /* handles the session's target options itself: no filter is made of them. The processes and threads exist */

	/* Checks its options; sets its requirements in `sampling`, which has the common ones. 0, -ENOMEM; -EINVAL: the caller's mistake. */
	int (*init)(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag);
	void (*done)(struct measurement *measurement); /* also after a failure; NULL: nothing to do */

	/* Loads its trigger; the engine exists. `targets`: the requested tgids or tids, if any; borrowed for the call. `command_tgid`: of
	 * the command, which waits to begin; 0: none. 0; -EPERM; -EOPNOTSUPP. */
	int (*load)(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag);
	/* It measures from *ret_start_ns on (CLOCK_MONOTONIC; preset by the session). */
	int (*start)(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns);
	/* Takes a record from the ring buffer that is not the stack_recorder's: abi/record.h. Copied. NULL: there are none. */
	int (*record)(struct measurement *measurement, const void *record);
	/* About every 100 ms while it runs. 0 or an error that ends the run. NULL: nothing to do. */
	int (*step)(struct measurement *measurement, uint64_t now_ns, struct diag *diag);
	/* Readable when `step` has work, besides the ring buffer; borrowed; -1 or NULL: never. */
	int (*fd)(const struct measurement *measurement);
	/* With `every_ns`: an interval has ended. NULL: each interval is a window. */
	int (*interval)(struct measurement *measurement, uint64_t border_ns);
	/* Nothing counts from *ret_end_ns on (preset by the session). */
	int (*stop)(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns);
	/* Its result besides the windows; NULL: none, the profile is the last window's. *ret_profile is the caller's. */
	int (*finish)(struct measurement *measurement, uint64_t start_ns, uint64_t end_ns, struct profile **ret_profile);

	/* Windows, for measurements that need the engine; docs/internals/windows.md. NULL: nothing to do. */
	bool (*is_due)(const struct measurement *measurement);   /* end the window now? NULL: every `every_ns` */
	bool (*set_border)(struct measurement *measurement, uint64_t *border_ns); /* as sched_programs_set_border */
	int (*cut)(struct measurement *measurement, struct diag *diag);
	/* everything sent before the border has arrived: moves its part into the window */
	int (*close)(struct measurement *measurement, const struct process_table *processes,
		     struct window *window);
	/* Between two windows: samples at this rate from now on. 0 or a negative errno. NULL: it has no rate. */
	int (*set_rate)(struct measurement *measurement, uint64_t freq_hz);
	size_t (*window_bytes)(const struct measurement *measurement); /* of the open window, besides the recorder's */
	/* Makes samples of the window's contents. Runs in another thread while the measurement continues, so it must not read what changes
	 * there. 0 or -ENOMEM. */
	int (*profile)(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile);

	/* Number of observations so far. */
	uint64_t (*nr)(const struct measurement *measurement);
	void (*account)(const struct measurement *measurement, struct account *account);
	/* in words, instead of the account's summary; NULL: use that */
	void (*summary)(const struct measurement *measurement, struct buffer *lines);
};

/* 0; as init. */
MUST_CHECK int measurement_new(const struct measurement_type *type, const struct measurement_parts *parts, struct sampler_options *sampling,
			       struct diag *diag, struct measurement **ret_measurement);
void measurement_free(struct measurement *measurement); /* takes NULL */
/* The profile of a window, with names. Any thread, one at a time. *ret_nr_skipped: files not read for lack of time. 0 or -ENOMEM, or the
 * error of `profile`. */
MUST_CHECK int measurement_profile(struct measurement *measurement, struct window *window, const struct naming *naming,
				   struct profile **ret_profile, uint32_t *ret_nr_skipped);

/* For measurements that consist of the window's samples alone: their `profile` and `nr`. */
MUST_CHECK int measurement_add_samples(struct measurement *measurement, struct window *window, struct stack_builder *builder,
				       struct profile *profile);
uint64_t measurement_nr_samples(const struct measurement *measurement);
