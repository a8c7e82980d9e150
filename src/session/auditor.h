/* SPDX-License-Identifier: Apache-2.0 */
/* auditor: has stacks that the kernel side walked unwound once more (audit/audit.h) and counts the findings. One thread. */
#pragma once
#include "abi/record.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "model/account.h"
#include "session/place.h"

struct auditor;
/* Borrows both for its life. */
MUST_CHECK int auditor_new(const struct process_table *processes, struct account *account, struct diag *diag, struct auditor **ret_auditor);
void auditor_free(struct auditor *auditor); /* takes NULL */

struct audited { /* a stack that was walked */
	const struct place_table *places;
	const uint32_t *frames; /* places, leaf first; NULL: the stack is not there */
	uint32_t nr_frames;
	uint32_t switch_frame;  /* libdw cannot see beyond so many, because they go on on another stack; 0: it can */
	enum sonde_stop stop;
};

/* 0 or -ENOMEM. */
MUST_CHECK int auditor_check(struct auditor *auditor, const struct sonde_raw_record *record, const struct audited *stack);
