/* SPDX-License-Identifier: Apache-2.0 */
/* session: the inside of struct sonde_session, for the files of this folder. */
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
#include "engine/target.h"
#include "engine/window.h"
#include "model/profile.h"
#include "naming/debug_files.h"
#include "naming/jit_file_cache.h"
#include "output/outputs.h"
#include "session/naming_thread.h"

/* Of the windows that were named. */
struct window_totals {
	uint32_t nr, nr_failed, nr_in_haste;
	int err;                              /* the first of those that failed */
	struct account_counts counts;
};

struct sonde_session {
	struct sonde_session_options options; /* with the defaults filled in; texts, lists and structs of modes are not kept */
	struct sampler_options sampling;
	struct outputs outputs;
	struct diag diag;
	int exit_code;
	bool renews_payloads;                   /* as of the engine */
	bool is_ready;                        /* all was made, and nothing sampled yet */
	uint64_t cost_user_ns, cost_system_ns; /* of the threads in the library's functions; less the start of one that has not returned */
	uint64_t new_ns, start_ns, end_ns;    /* CLOCK_MONOTONIC; it ends at the latest then */
	uint64_t looked_ns;                   /* when the targets and the command were last looked for */
	uint32_t watched;                     /* the command, or one of the targets that live: the loop wakes when it ends; 0: none */
	int watched_fd;                       /* of it; -1: the kernel does not tell */
	uint64_t shown_ns;                    /* when the progress was last told */
	int nice, nice_before;                /* of our thread, and what it was before the run */
	struct targets targets;
	struct command *command;
	bool command_goes_on;                 /* at the end, though it was asked to end */
	struct debug_files *debug_files;      /* NULL: none are fetched */
	struct jit_file_cache *jit_file_cache;
	struct engine engine;                 /* zeros: the measurement needs none */
	struct measurement *measurement;
	struct account
	    account; /* of the recording, up to the last window: the notes are those that came since, the counts those of all windows */
	struct account_counts reported;           /* that windows have */
	uint64_t noted[ACCOUNT_MAX_NOTES];    /* hashes of the notes that the window before has, or would have if they had been new */
	uint32_t nr_noted;
	uint64_t window_ns;                   /* when the open window began */
	uint64_t border_ns;                   /* when it ends; 0: not told yet */
	uint64_t interval_ns;                 /* when the interval ends; UINT64_MAX: the measurement has none */
	uint32_t nr_windows;                  /* that were closed */
	struct naming_thread *naming;         /* NULL: there is one window, which is named when the recording is over, or none */
	struct profile *profile;              /* of the last window that was named; NULL: there is none yet */
	struct window_totals totals;          /* of those that were named */
	struct diag totals_failure;           /* the first of them */
	char *vmlinux;                        /* NULL: not given */
	struct buffer account_text;
	uint32_t nr_reported_notes;               /* of the account: those that sonde_session_warning gave */
	int stop_fd, epoll_fd;
	uint32_t nr_stops;                    /* atomic: that were asked for */
	uint64_t haste_ns;                    /* from then on names are not waited for: clock_is_past */
};

/* Remembers a failure with its exit code; gives `err` back. The first stands. */
int session_fail(struct sonde_session *session, enum sonde_exit code, int err);
/* The same for what the kernel or the machine refused: the error tells the code, and missing rights get a hint. */
int session_fail_setup(struct sonde_session *session, int err);
/* Checks the options and fills in sampling, outputs, targets and the measurement. */
MUST_CHECK int session_take_options(struct sonde_session *session, const struct sonde_session_options *options);
/* Are source lines to be looked up? */
bool session_wants_lines(const struct sonde_session *session);
/* What a function of the library takes of its thread's time: begun, and later ended. */
void session_begin_cost(struct sonde_session *session);
void session_end_cost(struct sonde_session *session);
/* What the account says of a window that has ended. */
void session_account_window(struct sonde_session *session, const struct window *window, struct account *ret_account);
/* The recording's own cost, when it has ended and its only window is named. */
void session_account_cost(struct sonde_session *session);
/* The account that warnings go to, and come from. */
struct account *session_account(struct sonde_session *session);
/* Closes the window that ends at a time, which was told to the book and to the measurement; all that was sent before has come. *ret_window
 * is the caller's. 0 or -ENOMEM. */
MUST_CHECK int session_close_window(struct sonde_session *session, uint64_t end_ns, struct window **ret_window);

/* Of a measurement that needs the engine (recording.c): loads it, and all that works beside it; then, with the triggers loaded, reads what
 * runs. 0 or a negative errno. */
MUST_CHECK int session_load_engine(struct sonde_session *session);
MUST_CHECK int session_scan(struct sonde_session *session);
void session_want_lines(struct sonde_session *session); /* source lines, if an output has them; before it starts */
MUST_CHECK int session_read(struct sonde_session *session); /* takes in what has come, up to a number of records */
MUST_CHECK int session_collect(struct sonde_session *session); /* the same, until there is no more or a great deal */
MUST_CHECK int session_step_engine(struct sonde_session *session, uint64_t now_ns); /* behind that, and behind the measurement's step */
/* All that was recorded, or its last window, becomes a profile, or goes where those before it went. 0 or a negative errno. */
MUST_CHECK int session_name_last(struct sonde_session *session, uint64_t end_ns);

/* With a naming thread, from time to time: takes the windows that are named, and ends the open one when its time has come. 0 or a negative
 * errno. */
MUST_CHECK int session_step_windows(struct sonde_session *session, uint64_t now_ns);
uint64_t session_next_border(const struct sonde_session *session); /* when the loop is to turn at the latest; UINT64_MAX: no matter */
/* Hands over the last one, and waits for all. */
MUST_CHECK int session_finish_windows(struct sonde_session *session, struct window *last);
