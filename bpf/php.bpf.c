// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What PHP runs in the sampled thread. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/scratch.h"

#include "runtimes/php.h"

#define RUNTIME_KIND SONDE_RUNTIME_PHP
#define RUNTIME_PROGRAM sonde_php
#define RUNTIME_STRUCT struct sonde_php
#define RUNTIME_ENTER php_enter
#define RUNTIME_STEP php_step
#define RUNTIME_LOOPS(known) (known)->loops
#define RUNTIME_PAIRING RUNTIME_PAIR_BETWEEN
#include "lib/runtime_main.h"
