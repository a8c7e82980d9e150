/* SPDX-License-Identifier: Apache-2.0 */
/* event: perf's names for countable events, and the perf_event_open(2) attributes they stand for. */
#pragma once
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

enum event_kind { EVENT_RAW, EVENT_HARDWARE, EVENT_SOFTWARE, EVENT_CACHE };

struct event {
	char name[64];    /* as the user wrote it, or the usual name */
	char json[32];    /* name in JSON: "cpu_cycles"; "" for a raw event */
	uint32_t type;    /* PERF_TYPE_* */
	enum event_kind kind;
	uint64_t config;
	bool is_clock;    /* counts nanoseconds */
	bool exclude_user, exclude_kernel; /* :k, :u */
};

/* Parses perf's name or the one in JSON, with an optional :u or :k; rNNN is a raw event. 0; -EINVAL: no such name. */
MUST_CHECK int event_parse(const char *name, struct diag *diag, struct event *ret_event);
/* The i-th named event, each once: hardware, software, cache. Returns false after the last. */
bool event_at(size_t i, struct event *ret_event);
