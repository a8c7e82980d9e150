/* SPDX-License-Identifier: Apache-2.0 */
/* arming: probes allocators in short windows with pauses drawn at random, in a thread of its own, as each waits for the kernel, and makes
 * an estimate of what it sees. The functions may be called by one other thread. docs/internals/memory.md */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "memory/estimate.h"
#include "programs/alloc_programs.h"

struct arming_counts {
	uint64_t nr_windows, nr_hits;
	uint64_t open_ns, armed_ns, paid_ns; /* of all windows; CPU time that the probes took */
	uint64_t nr_lost;          /* hits beyond SONDE_ALLOC_HITS of a window */
	uint64_t nr_untimed;       /* hits of threads whose CPU time in the window is not known: they count by the time alone */
	uint64_t nr_left_out;      /* hits of threads whose clocks were not read, as there are too many: the others stand for them */
	uint64_t nr_failed;        /* calls that returned no block */
	double trap_ns;            /* what the probes of a call cost, besides the programs */
	bool is_wide;              /* probes are in all processes, as the first thread of one has ended */
	int err;                   /* it ended by this; 0 */
};

struct arming;
/* Borrows all for its life. `programs` has windows. 0; -ENOMEM; or the error of alloc_programs_try. */
MUST_CHECK int arming_new(struct alloc_programs *programs, const uint32_t *tgids, uint32_t nr_tgids, struct diag *diag,
			  struct arming **ret_arming);
void arming_free(struct arming *arming); /* takes NULL; ends it */
MUST_CHECK int arming_start(struct arming *arming);
void arming_end(struct arming *arming); /* disarms; waits for some 50 ms */
/* Moves out what was seen since the last call. 0 or -ENOMEM. */
MUST_CHECK int arming_take(struct arming *arming, struct estimate **ret_estimate);
void arming_get_counts(struct arming *arming, struct arming_counts *ret_counts);
