// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What Perl runs in the sampled thread. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/scratch.h"

#include "runtimes/perl.h"

#define RUNTIME_KIND SONDE_RUNTIME_PERL
#define RUNTIME_PROGRAM sonde_perl
#define RUNTIME_STRUCT struct sonde_perl
#define RUNTIME_ENTER perl_enter
#define RUNTIME_STEP perl_step
#define RUNTIME_LOOPS(known) (known)->loops
#include "lib/runtime_main.h"
