/* SPDX-License-Identifier: Apache-2.0 */
/* forecast: how much slower probes will make processes: counts the calls of their allocators for a moment, by probes that only count,
 * beside the CPU time that the processes use meanwhile. One thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "memory/allocator_probes.h"
#include "programs/alloc_programs.h"

struct forecast {
	double calls_per_s; /* without probes */
	double slow_down;   /* times as much CPU time; 1: none */
	bool is_least;      /* it may be more: the calls take most of the time already */
};

/* `tgids`: of the processes. 0; -ENODATA: nothing was measured, as nothing was probed or the processes have ended; or the error of
 * allocator_probes_count. */
MUST_CHECK int forecast_make(struct allocator_probes *probes, struct alloc_programs *programs, const uint32_t *tgids, uint32_t nr_tgids,
			     struct diag *diag, struct forecast *ret_forecast);
