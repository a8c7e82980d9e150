/* SPDX-License-Identifier: Apache-2.0 */
/* output: results to stdout, checked; talk to stderr. The only place, with signals.c, that prints. */
#pragma once
#include <stdbool.h>

#include "base/buffer.h"
#include "cli/option.h"

/* Makes file descriptors 0 to 2 exist, so that no file of ours becomes "stdout"; a closed one stays unusable. Call first. */
void output_guard_standard_fds(void);
/* The text, whole, to stdout. enum sonde_exit: 1 with a message when it cannot be written or when the buffer failed. */
MUST_CHECK int output_result(const struct buffer *buffer);
MUST_CHECK int output_result_text(const char *text);
/* "sonde: ...\n" on stderr: one line whatever the arguments hold. */
__attribute__((format(printf, 1, 2))) void output_say(const char *fmt, ...);
/* Says so; SONDE_EXIT_FAILED. */
int output_no_memory(void);
/* As it is, to stderr. */
void output_talk(const char *text);
/* A line on stderr that the next one, or output_progress_done, takes the place of; for terminals only. */
bool output_progress_wanted(void);
__attribute__((format(printf, 1, 2))) void output_progress(const char *fmt, ...);
void output_progress_done(void);
/* Says what is wrong with the command line and where help is. Returns SONDE_EXIT_USAGE. `verb` may be NULL. */
int output_usage(const struct verb *verb, const char *text);
/* What --help or --version of a verb prints. enum sonde_exit. */
int output_help(const struct verb *verb, const struct option_result *result);
/* May terminal escapes be written to this file descriptor? */
bool output_colour(int fd);
