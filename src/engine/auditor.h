/* SPDX-License-Identifier: Apache-2.0 */
/* auditor: has stacks that the kernel side walked unwound again (audit/audit.h) by processes without privileges (audit_pool.h), and counts
 * the findings. Nobody waits for them except at the end. One thread. */
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
	const uint32_t *frames; /* location numbers, leaf first; NULL: the stack is not available */
	uint32_t nr_frames;
	uint32_t switch_frame;  /* libdw cannot see beyond this many frames, because the rest is on another stack; 0: it can */
	enum sonde_stop stop;
};

/* Copies the stack. 0 or -ENOMEM. */
MUST_CHECK int auditor_check(struct auditor *auditor, const struct sonde_deferred_record *record, const struct audited *stack);
/* Takes the answers that have arrived. *ret_is_busy: call again soon. Takes NULL and then does nothing. 0 or -ENOMEM. */
MUST_CHECK int auditor_step(struct auditor *auditor, bool *ret_is_busy);
/* No more stacks will be checked: waits at most one second for the remaining answers, and counts the rest as unanswered. Takes NULL. 0 or
 * -ENOMEM. */
MUST_CHECK int auditor_finish(struct auditor *auditor);
