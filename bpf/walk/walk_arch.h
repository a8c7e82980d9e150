/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of the walk that knows the machine. */
#pragma once
#ifdef SONDE_ARM64
#include "arch_arm64.h"
#else
#include "arch_x86.h"
#include "emulate_x86.h"
#endif
