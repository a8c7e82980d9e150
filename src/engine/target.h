/* SPDX-License-Identifier: Apache-2.0 */
/* target: the processes and threads to measure: do they exist, and have all ended? One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct target {
	uint32_t tgid, tid; /* tid 0: the whole process */
};

struct targets {
	struct target *list;
	uint32_t nr;
};

void targets_done(struct targets *targets);
/* 0; -ESRCH: one does not exist; -EINVAL: one of `tgids` is a thread (diag mentions -L). */
MUST_CHECK int targets_of_tgids(const uint32_t *tgids, uint32_t nr, struct diag *diag, struct targets *ret_targets);
MUST_CHECK int targets_of_tids(const uint32_t *tids, uint32_t nr, struct diag *diag, struct targets *ret_targets);
/* Has the first thread of the process ended, and others live on? The kernel's process filters do not find its memory then. */
bool target_lost_first_thread(uint32_t tgid);
/* A target that has not ended; a zombie has. NULL: all have ended, or there are none. */
const struct target *targets_living(const struct targets *targets);
