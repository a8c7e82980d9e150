/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk_arch: selects the machine-dependent part of the walk. */
#pragma once
#ifdef SONDE_ARM64
#include "arch_arm64.h"
#else
#include "arch_x86.h"
#include "emulate_x86.h"
#endif
