/* SPDX-License-Identifier: Apache-2.0 */
/* offcpu: what threads do while they are off the CPU: they wait for something, or for a CPU. */
#pragma once
#include "engine/measurement.h"

extern const struct measurement_type waiting_measurement, wall_measurement, runq_measurement;
