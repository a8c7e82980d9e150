/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* otel: what the kernel side knows about a process whose threads publish their contexts (struct sonde_thread_context). */
#pragma once
#include "runtime.h"

struct sonde_otel {
	struct sonde_runtime_process process; /* root: the thread's variable otel_thread_ctx_v1, a pointer to the context */
};
_Static_assert(sizeof(struct sonde_otel) == 48, "layout changed: bump SONDE_ABI_VERSION");
