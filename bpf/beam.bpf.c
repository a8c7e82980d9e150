// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What Erlang's BEAM runs in the sampled thread. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/scratch.h"

#include "runtimes/beam.h"

#define RUNTIME_KIND SONDE_RUNTIME_BEAM
#define RUNTIME_PROGRAM sonde_beam
#define RUNTIME_STRUCT struct sonde_beam
#define RUNTIME_FRAME beam_frame
#include "lib/owner_main.h"
