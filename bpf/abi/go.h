/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel side knows of a Go process. */
#pragma once
#include "runtime.h"

struct sonde_go {
	struct sonde_runtime_process process;
};
