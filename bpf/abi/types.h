/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fixed-width types that the kernel and user space share. */
#pragma once
#include <linux/types.h>

#define SONDE_ABI_VERSION 2
