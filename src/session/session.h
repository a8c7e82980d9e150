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
#include "base/event.h"
#include "collect/sampler.h"
#include "export/export.h"
#include "model/profile.h"
#include "process/proxy.h"
#include "session/debug_files.h"
#include "session/follow.h"
#include "session/jit_keeper.h"
#include "session/raw_stacks.h"
#include "session/stack_book.h"
#include "session/target.h"
#include "session/tracker.h"
#include "session/waiting.h"

#define MAX_OUTPUTS 16

struct output {
	char *path;
	enum export_format format;
	bool is_written;
};

struct sonde_session {
	struct sonde_profile_options options; /* with the defaults filled in; texts and lists are not kept */
	struct sampler_options sampling;
	struct event event;
	struct export_options export;
	struct diag diag;
	int exit_code;
	bool renews_bodies;                   /* the kernel side may forget which stacks it sent, so that more come */
	bool is_ready;                        /* all was made, and nothing sampled yet */
	uint64_t cost_user_ns, cost_system_ns; /* of the threads in the library's functions; less the start of one that has not returned */
	uint64_t new_ns, start_ns;            /* CLOCK_MONOTONIC */
	uint64_t unix_offset_ns;              /* of CLOCK_REALTIME to it, at the end */
	uint64_t looked_ns;                   /* when the targets and the command were last looked for */
	uint64_t shown_ns;                    /* when the progress was last told */
	struct follow_cpus cpus;
	int nice, nice_before;                /* of our thread, and what it was before the run */
	struct targets targets;
	struct command *command;
	struct parser *parser;
	struct proxy *proxy;
	struct debug_files *debug_files;      /* NULL: none are fetched */
	struct jit_keeper *jit_keeper;
	struct sampler *sampler;
	struct tracker *tracker;
	struct auditor *auditor;              /* NULL: nothing is audited */
	struct raw_stacks *raws;
	struct waiting *waiting;              /* NULL: waits are not asked for */
	struct seeds *seeds;                  /* NULL: what waits is not asked for */
	struct stack_book *book;
	struct profile *profile;
	char *vmlinux;                        /* NULL: not given */
	struct output outputs[MAX_OUTPUTS];
	uint32_t nr_outputs;
	struct buffer account_text;
	uint32_t nr_told_notes;               /* of the account: those that sonde_session_warning gave */
	int stop_fd, epoll_fd;
};

/* Remembers a failure with its exit code; gives `err` back. The first stands. */
int session_fail(struct sonde_session *session, enum sonde_exit code, int err);
/* The same for what the kernel or the machine refused: the error tells the code, and missing rights get a hint. */
int session_fail_setup(struct sonde_session *session, int err);
/* Checks the options and fills in sampling, event, export and targets. */
MUST_CHECK int session_take_options(struct sonde_session *session, const struct sonde_profile_options *options);
static inline bool session_asks_for_waits(const struct sonde_session *session)
{
	return session->options.question != SONDE_ON_CPU;
}
/* Are source lines to be looked up? */
bool session_wants_lines(const struct sonde_session *session);
/* What a function of the library takes of its thread's time: begun, and later ended. */
void session_begin_cost(struct sonde_session *session);
void session_end_cost(struct sonde_session *session);
/* Fills in what the account says of the run as a whole, once the cost has ended. */
void session_fill_account(struct sonde_session *session);
