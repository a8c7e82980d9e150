/* SPDX-License-Identifier: Apache-2.0 */
/* modes: the measurement of each mode. */
#pragma once
#include <sonde/sonde.h>

#include "engine/measurement.h"

/* NULL: there is no such mode. */
const struct measurement_type *measurement_type_of(enum sonde_mode mode);
