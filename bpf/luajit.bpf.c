// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What LuaJIT runs in the sampled thread. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/scratch.h"

#include "runtimes/luajit.h"

#define RUNTIME_KIND SONDE_RUNTIME_LUAJIT
#define RUNTIME_PROGRAM sonde_luajit
#define RUNTIME_STRUCT struct sonde_luajit
#define RUNTIME_FRAME luajit_frame
#define RUNTIME_DECLINES
#include "lib/owner_main.h"
