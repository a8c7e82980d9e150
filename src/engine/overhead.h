/* SPDX-License-Identifier: Apache-2.0 */
/* overhead: keeps what BPF programs cost below a share of the machine's time: where they cost more, shorter waits are to be left out. Knows
 * neither the programs nor the clock. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define OVERHEAD_LOOK_NS 1000000000u     /* how often */
#define OVERHEAD_FIRST_NS 1000u          /* the first minimum, where there is none */
#define OVERHEAD_RAISE 4                 /* times as long, each time */
#define OVERHEAD_MAX_MIN_NS 100000000u   /* what is longer is never left out */

struct overhead { /* zeros, but for the first three */
	uint32_t max_percent;  /* 0: no limit */
	uint32_t nr_cpus;
	uint64_t min_ns;       /* shorter waits are left out */
	uint64_t looked_ns, cost_ns; /* at the last look */
	uint32_t nr_raised;
	double worst_percent;  /* of a second, before it was raised the last time */
	bool is_at_end;        /* it costs too much, and nothing more may be left out */
};

/* The programs have cost `cost_ns` so far. True: min_ns is longer now. */
bool overhead_look(struct overhead *overhead, uint64_t now_ns, uint64_t cost_ns);
