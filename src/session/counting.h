/* SPDX-License-Identifier: Apache-2.0 */
/* counting: `stat`, counters without stacks. */
#pragma once
#include "engine/measurement.h"

extern const struct measurement_type counting_measurement;
/* NULL: another measurement, or its counters are not loaded. */
struct sonde_counters *counting_set(struct measurement *measurement);
