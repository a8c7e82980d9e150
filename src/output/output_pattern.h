/* SPDX-License-Identifier: Apache-2.0 */
/* output_pattern: a path that names a file for each window: in the file's name %n is the window's number and %t the time at which it began
 * (UTC, 20261123T164128Z); %% is a percent sign everywhere. A window that does not begin in a later second than all before it (the one
 * before was full, or the clock was set back) has its number behind the time, 20261123T164128Z-7: no two have one name. Stateless, any
 * thread. */
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

/* Of a window of that number and time. *newest_s: the latest second of those before it, 0: there are none; from now on of this one, too. */
struct output_words output_words_of(uint32_t number, uint64_t start_unix_ns, uint64_t *newest_s);
/* 0; -EINVAL: it does not tell one window from another, or does so in a directory's name; `diag` tells. */
MUST_CHECK int output_pattern_check(const char *pattern, struct diag *diag);
/* Of a sound one. 0; -ENAMETOOLONG. */
MUST_CHECK int output_pattern_path(const char *pattern, const struct output_words *words, char path[PATH_MAX]);
/* Could two sound patterns name one file, in the same window or in two? In doubt: yes. */
bool output_pattern_meet(const char *a, const char *b);
