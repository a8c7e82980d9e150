/* SPDX-License-Identifier: Apache-2.0 */
/* auditor: has stacks that the kernel side walked unwound once more (audit/audit.h) by processes without rights (audit_pool.h), and counts
 * the findings. Nobody waits for them but at the end. One thread. */
#pragma once
#include <stdbool.h>

#include "abi/record.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "model/account.h"
#include "naming/location.h"

struct auditor;
/* Borrows both for its life. 0 or as audit_pool_new. */
MUST_CHECK int auditor_new(const struct process_table *processes, struct account *account, struct diag *diag, struct auditor **ret_auditor);
void auditor_free(struct auditor *auditor); /* takes NULL */
void auditor_set_nice(struct auditor *auditor, int nice); /* of its processes; takes NULL */

struct audited { /* a stack that was walked */
	const struct location_table *locations;
	const uint32_t *frames; /* places, leaf first; NULL: the stack is not there */
	uint32_t nr_frames;
	uint32_t switch_frame;  /* libdw cannot see beyond so many, because they go on on another stack; 0: it can */
	enum sonde_stop stop;
};

/* Takes a copy. 0 or -ENOMEM. */
MUST_CHECK int auditor_check(struct auditor *auditor, const struct sonde_deferred_record *record, const struct audited *stack);
/* Takes in what was found. *ret_is_busy: it is to be called again in a moment. Takes NULL, which has nothing to do. 0 or -ENOMEM. */
MUST_CHECK int auditor_step(struct auditor *auditor, bool *ret_is_busy);
/* No more will come: waits for what is on its way, a second at most, and counts the rest. Takes NULL. 0 or -ENOMEM. */
MUST_CHECK int auditor_finish(struct auditor *auditor);
