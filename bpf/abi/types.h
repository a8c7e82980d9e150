/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fixed-width types that the kernel and user space share. */
#pragma once
#include <linux/types.h>

/* The machine that is profiled: a BPF object is told, a program runs on it. */
#if defined(__TARGET_ARCH_arm64) || (!defined(__TARGET_ARCH_x86) && defined(__aarch64__))
#define SONDE_ARM64 1
#endif

#define SONDE_ABI_VERSION 10
