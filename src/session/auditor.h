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
/* `frames`: the places of the stack that was walked, leaf first; NULL: it is not there. 0 or -ENOMEM. */
MUST_CHECK int auditor_check(struct auditor *auditor, const struct sonde_raw_record *record, const struct place_table *places, const uint32_t *frames, uint32_t nr_frames,
			     enum sonde_stop stop);
