/* SPDX-License-Identifier: Apache-2.0 */
/* session: the members of struct sonde_session, private to this folder. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "base/buffer.h"
#include "base/command.h"
#include "base/diag.h"
#include "engine/engine.h"
#include "engine/measurement.h"
#include "engine/perf_maps.h"
#include "engine/target.h"
#include "engine/window.h"
#include "identity/environment.h"
#include "model/profile.h"
#include "naming/debug_files.h"
#include "naming/jit_file_cache.h"
#include "output/outputs.h"
#include "session/naming_thread.h"

/* Of the windows that the naming thread has finished. */
struct window_totals {
	uint32_t nr, nr_failed, nr_in_haste;
	int err;                              /* of the first that failed */
	struct account_counts counts;
};

struct sonde_session {
	struct sonde_session_options options; /* with the defaults filled in; without the texts, lists and mode structs */
	struct sampler_options sampling;
	struct outputs outputs;
	struct diag diag;
	int exit_code;
	bool renews_payloads;                   /* as in the engine */
	uint32_t runtimes_off;                  /* as in the engine */
	bool is_ready;                        /* everything is set up, nothing sampled yet */
	uint64_t cost_user_ns, cost_system_ns; /* of threads in the library's functions; while one is inside: minus its time at entry */
	uint64_t new_ns, start_ns, end_ns;    /* CLOCK_MONOTONIC; end_ns: the latest end */
	uint64_t looked_ns;                   /* when the targets and the command were last checked */
	uint32_t watched;                     /* the command, or a living target: the loop wakes when it ends; 0: none */
	int watched_fd;                       /* its pidfd; -1: none */
	uint64_t rest_ns, rested_ns;          /* how long the loop may rest between two steps; until when it does */
	uint64_t shown_ns;                    /* when the progress was last reported */
	int nice, nice_before;                /* of our thread: now, and before the run */
	struct targets targets;
	struct command *command;
	bool command_goes_on;                 /* still running, though it was asked to end */
	struct debug_files *debug_files;      /* NULL: debuginfod is not used */
	struct jit_file_cache *jit_file_cache;
	struct perf_maps *perf_maps;          /* with options.perf_map, while it measures */
	struct engine engine;                 /* zeros: the measurement needs none */
	struct measurement *measurement;
	/* of the recording, when the last window closed: counts of all windows, notes made since then */
	struct account account;
	struct account_counts reported;           /* the counts already in windows */
	uint64_t noted[ACCOUNT_MAX_NOTES];    /* hashes of the last window's notes, including those dropped as not new */
	uint32_t nr_noted;
	uint64_t window_ns;                   /* when the open window began */
	uint64_t border_ns;                   /* when it ends; 0: not set yet */
	uint64_t interval_ns;                 /* when the interval ends; UINT64_MAX: no intervals */
	uint32_t nr_windows;                  /* closed so far */
	uint64_t next_freq_hz;                /* of the next window; 0: as it is */
	uint64_t next_unwind_bytes;           /* likewise */
	struct naming_thread *naming;         /* NULL: no windows, or a single one, resolved at the end of the recording */
	struct profile *profile;              /* of the last finished window; NULL: none yet */
	struct window_totals totals;
	struct diag totals_failure;           /* the reason for totals.err */
	char *vmlinux;                        /* NULL: not given */
	struct environment_names label_names; /* with options.process_labels */
	struct buffer account_text;
	uint32_t nr_reported_notes;               /* notes of the account returned by sonde_session_warning */
	int stop_fd, epoll_fd;
	uint32_t nr_stops;                    /* atomic: stop requests */
	uint64_t haste_ns;                    /* after this time no more names are looked up in files (clock_is_past) */
};

/* Stores the exit code of a failure, unless one is stored already; returns `err`. */
int session_fail(struct sonde_session *session, enum sonde_exit code, int err);
/* The same for an error of the kernel or the machine: derives the code from it, and adds a hint if rights are missing. */
int session_fail_setup(struct sonde_session *session, int err);
/* Checks the options and fills in sampling, outputs, targets and the measurement. */
MUST_CHECK int session_take_options(struct sonde_session *session, const struct sonde_session_options *options);
/* For options.profile. 0 or -EINVAL. */
MUST_CHECK int session_set_receiver(struct sonde_session *session);
/* Must source lines be looked up? */
bool session_wants_lines(const struct sonde_session *session);
/* Measure the CPU time of the calling thread in a function of the library, from its begin to its end. */
void session_begin_cost(struct sonde_session *session);
void session_end_cost(struct sonde_session *session);
/* Fills in the account of a window that has ended. */
void session_account_window(struct sonde_session *session, const struct window *window, struct account *ret_account);
/* Fills in the recording's own cost, after its only window was resolved. */
void session_account_cost(struct sonde_session *session);
/* Returns the account in which warnings are noted, and from which they are reported. */
struct account *session_account(struct sonde_session *session);
/* Closes the window that ends at `end_ns`. The recorder and the measurement know that border, and everything sent before it has arrived.
 * *ret_window is the caller's. 0 or -ENOMEM. */
MUST_CHECK int session_close_window(struct sonde_session *session, uint64_t end_ns, struct window **ret_window);

/* For a measurement that needs the engine (recording.c). session_load_engine loads the engine and its helpers. session_scan, called after
 * the triggers are loaded, reads the running processes. 0 or a negative errno. */
MUST_CHECK int session_load_engine(struct sonde_session *session);
MUST_CHECK int session_scan(struct sonde_session *session);
void session_want_lines(struct sonde_session *session); /* enables source lines if needed; call it before the start */
MUST_CHECK int session_read(struct sonde_session *session); /* takes the records that have arrived, up to ENGINE_STEP_RECORDS */
MUST_CHECK int session_collect(struct sonde_session *session); /* the same with a higher limit, MANY_RECORDS */
MUST_CHECK int session_step_engine(struct sonde_session *session, uint64_t now_ns); /* after session_read and the measurement's step */
/* Resolves the last window: makes the session's profile of it, or with a naming thread passes it on there. 0 or a negative errno. */
MUST_CHECK int session_name_last(struct sonde_session *session, uint64_t end_ns);

/* With a naming thread: takes the finished windows, and ends the open one when it is due. Call it regularly. 0 or a negative errno. */
MUST_CHECK int session_step_windows(struct sonde_session *session, uint64_t now_ns);
uint64_t session_next_border(const struct sonde_session *session); /* the latest time for the next step; UINT64_MAX: any */
/* Passes on the last window and waits until all are finished. */
MUST_CHECK int session_finish_windows(struct sonde_session *session, struct window *last);
