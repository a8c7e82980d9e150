/* SPDX-License-Identifier: Apache-2.0 */
/* store_path: a store, or a time of it, as an argument of a verb: DIRECTORY[@[FROM][..[TO]][,TYPE]]. A time is a duration before now (-90s,
 * -15m, -1h, -2d), or a date (2026-11-26, 2026-11-26T20:00, 2026-11-26T20:00:30; with Z in UTC, else in local time). */
#pragma once
#include <limits.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "store/store.h"

struct store_path {
	char directory[PATH_MAX];
	uint64_t from_ns, to_ns; /* CLOCK_REALTIME */
	char type[STORE_TYPE_BYTES]; /* "": not said */
};

/* A duration: "90s", "15m", "1h", "7d". 0 or -EINVAL. */
MUST_CHECK int store_duration_parse(const char *text, uint64_t *ret_ns);
/* 1: a store; 0: no directory of a store; -EINVAL: the times are none. */
MUST_CHECK int store_path_parse(const char *path, struct store_path *ret_path, struct diag *diag);
