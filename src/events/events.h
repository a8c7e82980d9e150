/* SPDX-License-Identifier: Apache-2.0 */
/* events: what threads do, call by call: files that they open, bytes that they read and write. */
#pragma once
#include "engine/measurement.h"

extern const struct measurement_type opens_measurement, transfers_measurement, tracing_measurement, traced_stacks_measurement;

/* The requested ids, each a tid or a tgid: the caller's. NULL: no memory. */
uint32_t *targets_ids(const struct targets *targets);
/* Makes a profile without samples that holds the recording's account. 0 or -ENOMEM. */
MUST_CHECK int events_account(const struct measurement *measurement, uint64_t start_unix_ns, uint64_t duration_ns,
			      struct profile **ret_profile);
