// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What CPython runs in the sampled thread. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/scratch.h"

#include "runtimes/python.h"

#define RUNTIME_KIND SONDE_RUNTIME_PYTHON
#define RUNTIME_PROGRAM sonde_python
#define RUNTIME_STRUCT struct sonde_python
#define RUNTIME_ENTER python_enter
#define RUNTIME_STEP python_step
#define RUNTIME_LOOPS(known) ((known)->kind == SONDE_PYTHON_FRAMES ? (known)->loops : 0)
#define RUNTIME_COPY python_copy
#define RUNTIME_PAIRING RUNTIME_PAIR_ONE
#include "lib/runtime_main.h"
