/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options: the same in each program, filled in before it is loaded. */
#pragma once
#include "../abi/config.h"

const volatile struct sonde_config cfg = {};
