// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What V8 runs in the sampled thread. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/scratch.h"

#include "runtimes/v8.h"

#define RUNTIME_KIND SONDE_RUNTIME_V8
#define RUNTIME_PROGRAM sonde_v8
#define RUNTIME_STRUCT struct sonde_v8
#define RUNTIME_FRAME v8_frame
#include "lib/owner_main.h"
