// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What HotSpot runs in the sampled thread. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/scratch.h"

#include "runtimes/java.h"

#define RUNTIME_KIND SONDE_RUNTIME_JAVA
#define RUNTIME_PROGRAM sonde_java
#define RUNTIME_STRUCT struct sonde_java
#define RUNTIME_FRAME java_frame
#define RUNTIME_BRIDGE java_bridge
#include "lib/owner_main.h"
