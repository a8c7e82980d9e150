// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What HotSpot runs in the sampled thread. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/scratch.h"

#include "runtimes/java.h"

static __always_inline int java_enter(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	return java_heap_of(j, w->pc) < SONDE_JAVA_MAX_HEAPS ? RUNTIME_GOES_ON : RUNTIME_ENDED;
}

static __always_inline int java_step(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	return java_frame(w, r, j) == WALK_GOES_ON ? RUNTIME_GOES_ON : RUNTIME_ENDED;
}

#define RUNTIME_KIND SONDE_RUNTIME_JAVA
#define RUNTIME_STRUCT struct sonde_java
#define RUNTIME_ENTER java_enter
#define RUNTIME_STEP java_step
#define RUNTIME_LOOPS(known) 0
#include "lib/runtime_main.h"
