/* SPDX-License-Identifier: Apache-2.0 */
/* counting: `stat`, counters without stacks. */
#pragma once
#include "engine/measurement.h"

extern const struct measurement_type counting_measurement;
/* NULL: it has none, or counts nothing. */
struct sonde_counters *counting_set(struct measurement *measurement);
