/* SPDX-License-Identifier: Apache-2.0 */
/* event: perf's names for what can be counted, and the perf_event_open(2) attributes that they stand for. */
#pragma once
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct event {
	char name[64];    /* as the user wrote it */
	uint32_t type;    /* PERF_TYPE_* */
	uint64_t config;
	bool is_clock;    /* counts nanoseconds */
	bool exclude_user, exclude_kernel; /* :k, :u */
};

/* By perf's name, with :u or :k behind it; rNNN is a raw one. 0; -EINVAL: no such name. */
MUST_CHECK int event_parse(const char *name, struct diag *diag, struct event *ret_event);
