/* SPDX-License-Identifier: Apache-2.0 */
/* output: results to stdout, with errors checked; messages to stderr. Only this module and signals.c print. */
#pragma once
#include <stdbool.h>

#include "base/buffer.h"
#include "cli/option.h"

/* Makes file descriptors 0 to 2 exist, so that no file we open becomes "stdout". A closed one stays unusable. Call this first. */
void output_guard_standard_fds(void);
/* Writes the whole text to stdout. Returns enum sonde_exit: 1 with a message when the write failed or the buffer has an error. */
MUST_CHECK int output_result(const struct buffer *buffer);
MUST_CHECK int output_result_text(const char *text);
/* Prints "sonde: ...\n" on stderr: always one line, whatever the arguments hold. */
__attribute__((format(printf, 1, 2))) void output_say(const char *fmt, ...);
/* Says so; returns SONDE_EXIT_FAILED. */
int output_no_memory(void);
/* Writes the text unchanged to stderr. */
void output_talk(const char *text);
/* A progress line on stderr. The next one, or output_progress_done, replaces it. For terminals only. */
bool output_progress_wanted(void);
__attribute__((format(printf, 1, 2))) void output_progress(const char *fmt, ...);
void output_progress_done(void);
/* Prints what is wrong with the command line and where to find help. Returns SONDE_EXIT_USAGE. `verb` may be NULL. */
int output_usage(const struct verb *verb, const char *text);
/* Prints what --help or --version of a verb asks for. Returns enum sonde_exit. */
int output_help(const struct verb *verb, const struct option_result *result);
/* True when terminal escapes may be written to this file descriptor. */
bool output_colour(int fd);
