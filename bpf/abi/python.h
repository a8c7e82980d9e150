/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel side knows of a CPython process. */
#pragma once
#include "runtime.h"

struct sonde_python {
	struct sonde_runtime_process process;
};
