/* SPDX-License-Identifier: Apache-2.0 */
/* sampling: `profile`, a sample at each tick of an event. */
#pragma once
#include "engine/measurement.h"

extern const struct measurement_type sampling_measurement;
