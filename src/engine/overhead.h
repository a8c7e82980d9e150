/* SPDX-License-Identifier: Apache-2.0 */
/* overhead: keeps the cost of BPF programs below a share of the machine's CPU time: if they cost more, it leaves out short waits. Depends
 * neither on the programs nor on the clock. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define OVERHEAD_LOOK_NS 1000000000u     /* between two checks */
#define OVERHEAD_FIRST_NS 1000u          /* the first minimum, if there is none */
#define OVERHEAD_RAISE 4                 /* factor of each increase */
#define OVERHEAD_MAX_MIN_NS 100000000u   /* longer waits are never left out */

struct overhead { /* zeros, except for the first three */
	uint32_t max_percent;  /* 0: no limit */
	uint32_t nr_cpus;
	uint64_t min_ns;       /* shorter waits are left out */
	uint64_t looked_ns, cost_ns; /* at the last check */
	uint32_t nr_raised;
	double worst_percent;  /* of one interval before an increase */
	bool is_at_end;        /* it costs too much, and the minimum may not grow further */
};

/* Call with the programs' cost so far. True: min_ns was increased. */
bool overhead_look(struct overhead *overhead, uint64_t now_ns, uint64_t cost_ns);
