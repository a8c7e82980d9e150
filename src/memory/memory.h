/* SPDX-License-Identifier: Apache-2.0 */
/* memory: the measurement of memory that was allocated and is not free. */
#pragma once
#include "engine/measurement.h"

extern const struct measurement_type leak_measurement;
