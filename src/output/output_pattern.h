/* SPDX-License-Identifier: Apache-2.0 */
/* output_pattern: a path pattern that gives each window a file of its own. In the file's name %n is the window's number and %t its start
 * time (UTC, 20261123T164128Z); %% is a percent sign everywhere. A window may begin in the same second as an earlier one or before it (the
 * one before was full, or the clock was set back). Then its number follows the time, 20261123T164128Z-7, so that all names differ.
 * Stateless, any thread. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define OUTPUT_TIME_BYTES 48

struct output_words {
	uint32_t number;
	char time[OUTPUT_TIME_BYTES];
};

/* Returns the words for a window. *newest_s: the latest second of the windows before it, 0: none; updated with this window's. */
struct output_words output_words_of(uint32_t number, uint64_t start_unix_ns, uint64_t *newest_s);
/* 0; -EINVAL: the pattern has no valid %n or %t, or has one in a directory's name; `diag` is set. */
MUST_CHECK int output_pattern_check(const char *pattern, struct diag *diag);
/* Writes the path for a window; the pattern must be valid. 0; -ENAMETOOLONG. */
MUST_CHECK int output_pattern_path(const char *pattern, const struct output_words *words, char path[PATH_MAX]);
/* Could two valid patterns give the same path, for one window or for two? In doubt: true. */
bool output_pattern_meet(const char *a, const char *b);
