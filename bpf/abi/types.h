/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* types: the fixed-width types that the kernel side and user space share. */
#pragma once
#include <linux/types.h>

/* The profiled machine: a BPF object gets it by a macro, a program is compiled for it. */
#if defined(__TARGET_ARCH_arm64) || (!defined(__TARGET_ARCH_x86) && defined(__aarch64__))
#define SONDE_ARM64 1
#endif

#define SONDE_ABI_VERSION 14
