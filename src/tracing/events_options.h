/* SPDX-License-Identifier: Apache-2.0 */
/* events_options: what the verbs of this folder have in common: intervals, sums, and the way from the command line to the report. */
#pragma once
#include <sonde/sonde.h>

#include "cli/option_rows.h"
#include "cli/target_options.h"

struct events_options {
	struct target_options targets;
	uint64_t interval_s, nr_intervals; /* 0: not given */
	const char *by_text, *format_text;
	uint64_t top; /* EVENTS_DEFAULT_TOP: not given */
	bool timestamps;
	char *const *command;	 /* NULL: none */
	uint32_t by;		 /* bits of enum sonde_by, from by_text */
	enum sonde_lines format; /* from format_text */
};

#define EVENTS_DEFAULT_TOP UINT64_MAX
#define EVENTS_TOP	   20 /* rows of a report that is one of many */

/* Rows of an option table. `type` is that of the verb's arguments, `field` its struct events_options. */
#define EVENTS_INTERVAL_OPTIONS(type, field, text) \
	OPTION_ROWS_INTERVALS(offsetof(type, field.interval_s), offsetof(type, field.nr_intervals), text)
/* What is shown, and how: `words` are those of --by. */
#define EVENTS_SHOWN_OPTIONS(type, field, words, by_help, formats, format_help) \
	OPTION_ROW_BY(offsetof(type, field.by_text), words, "[,WHAT...]", by_help), \
	    { .name = "top", \
	      .metavar = "N", \
	      .kind = OPTION_NUMBER, \
	      .offset = offsetof(type, field.top), \
	      .max = UINT32_MAX, \
	      .help = "with sums, the largest N; 20 if there are several intervals, else all. 0: all" }, \
	    OPTION_ROW_TIMESTAMP(offsetof(type, field.timestamps), "with sums, the time before each report"), \
	    OPTION_ROW_FORMAT(offsetof(type, field.format_text), formats, format_help)

/* Checks targets, `by` (words of `by_at`, in the order of enum sonde_by) and `format`. 0; -EINVAL with a line. */
MUST_CHECK int events_check(struct events_options *options, char *const *command, const char *(*by_at)(uint32_t i),
			    const char *(*format_at)(uint32_t i), struct diag *diag);
/* How many rows a report has; 0: all. */
uint32_t events_top(const struct events_options *options);
/* The library's options; the verb adds its mode's. */
struct sonde_session_options events_session_options(const struct events_options *options, const char *command_line);
/* Measures; lines go to standard output. `nothing`: what did not happen, if nothing did. Returns the exit code. */
int events_run(const struct verb *verb, const struct events_options *options, const struct sonde_session_options *session_options,
	       const char *measuring, const char *nothing);
