/* SPDX-License-Identifier: Apache-2.0 */
/* trigger: when the agent's flight recorder freezes what it has, as text: "cpu>80%/10s", "file:/run/web/p99>200/1m", "oom". */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define TRIGGER_MAX	   16
#define TRIGGER_PATH_BYTES 4096
#define TRIGGER_MAX_OVER_S 600

enum trigger_kind {
	TRIGGER_CPU,        /* the machine's CPUs: all that is not idle */
	TRIGGER_PSI_CPU,    /* share of the time in which some thread waits for a CPU, ... */
	TRIGGER_PSI_IO,
	TRIGGER_PSI_MEMORY,
	TRIGGER_RUNQ_P99,   /* of the waits for a CPU */
	TRIGGER_FILE,       /* a number in a file */
	TRIGGER_OOM,
	TRIGGER_CRASH,
	TRIGGER_SIGNAL,
	TRIGGER_KINDS,
};

struct trigger {
	enum trigger_kind kind;
	const char *text;   /* as it was given; borrowed */
	double limit;       /* the condition holds above it: percent, ms, or the file's own unit */
	uint32_t over_s;    /* in the mean over this time; of runq.p99 over it; 0: this kind has no condition */
	char *path;         /* of TRIGGER_FILE */
};

struct triggers {
	struct trigger list[TRIGGER_MAX];
	uint32_t nr;
};

/* 0; -EINVAL with the position and what there is; -ENOMEM. Borrows the text. */
MUST_CHECK int triggers_add(struct triggers *triggers, const char *text, struct diag *diag);
void triggers_done(struct triggers *triggers);
bool triggers_have(const struct triggers *triggers, enum trigger_kind kind);
/* What the mean of this kind is in: "%", or "". */
const char *trigger_unit(enum trigger_kind kind);
