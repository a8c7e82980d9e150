// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What Ruby runs in the sampled thread. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/scratch.h"

#include "runtimes/ruby.h"

#define RUNTIME_KIND SONDE_RUNTIME_RUBY
#define RUNTIME_PROGRAM sonde_ruby
#define RUNTIME_STRUCT struct sonde_ruby
#define RUNTIME_ENTER ruby_enter
#define RUNTIME_STEP ruby_step
#define RUNTIME_LOOPS(known) (known)->loops
#define RUNTIME_INNER(known) &(known)->core
#include "lib/runtime_main.h"
