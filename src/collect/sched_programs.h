/* SPDX-License-Identifier: Apache-2.0 */
/* sched_programs: the kernel side of `offcpu` and `wall`, beside the sampler's: programs of the scheduler's events, which add up in the
 * kernel how long threads are off the CPU. Stacks come through the sampler's ring, as do wakers, seeds and events (abi/wait.h). One thread.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"

struct sched_options {
	uint64_t max_sums;  /* different sums: threads times stacks */
	bool tells_cost;    /* sched_programs_cost_ns is asked for */
};

struct sched_programs;
/* Loads the programs, with the sampler's knobs, targets and maps; borrows the sampler for its life. 0; -EPERM; -EOPNOTSUPP: this kernel
 * cannot (older than 5.12; diag says what is missing). */
MUST_CHECK int sched_programs_new(struct sampler *sampler, const struct sched_options *options, struct diag *diag,
				  struct sched_programs **ret_programs);
void sched_programs_free(struct sched_programs *programs); /* takes NULL */
/* From *ret_start_ns on (CLOCK_MONOTONIC) each wait counts; threads that are off the CPU then are seeded: their wait begins there. */
MUST_CHECK int sched_programs_start(struct sched_programs *programs, struct diag *diag, uint64_t *ret_start_ns);
struct sched_sink { /* a negative result ends the taking */
	int (*sum)(void *arg, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum);
	int (*slot)(void *arg, const struct sonde_wait_slot *slot, uint64_t nr_waits);
	int (*piece)(void *arg, const struct sonde_wait_piece
				    *piece); /* is of the window that ends, whatever its key says; its histogram is the taker's to make */
	void *arg;
};
/* Gives what was added up so far to the sink, and the programs begin anew: at any time while they run. So one key may come again. 0 or what
 * the sink or bpf(2) gave. */
MUST_CHECK int sched_programs_take(struct sched_programs *programs, const struct sched_sink *sink);
/* The window ends at that time (CLOCK_MONOTONIC; cut to 256 ns): to be told before. False: it was too late, another is to be told; what
 * happened meanwhile may stand in either window. */
bool sched_programs_set_border(struct sched_programs *programs, uint64_t *border_ns);
/* After that time: gives all that is of the old window, in pieces where a wait or a thread's time on its CPU goes on; what is of the new
 * one already may be among it. 0 or what the sink or bpf(2) gave. */
MUST_CHECK int sched_programs_cut(struct sched_programs *programs, const struct sched_sink *sink, struct diag *diag);
uint8_t sched_programs_window(const struct sched_programs *programs); /* as keys have it: of the one that begins at the last border */
/* The waits that have not ended are counted up to *ret_end_ns; nothing is added afterwards. Gives all that there is. */
MUST_CHECK int sched_programs_stop(struct sched_programs *programs, const struct sched_sink *sink, struct diag *diag, uint64_t *ret_end_ns);
/* Is it time for that, as there will soon be no room? */
bool sched_programs_fill_up(const struct sched_programs *programs);
void sched_programs_counters(const struct sched_programs *programs, struct sonde_wait_counters *ret_counters); /* summed over the CPUs */
/* What the programs themselves have cost so far, by the kernel's statistics; 0 where the options did not ask for it. */
uint64_t sched_programs_cost_ns(const struct sched_programs *programs);
/* --max-overhead: shorter waits are left out from now on, and of threads that have many of them no stacks are taken. A longer wait of such
 * a thread has none, its sides are LOST. */
MUST_CHECK int sched_programs_set_min(struct sched_programs *programs, uint64_t min_off_ns);
uint64_t sched_programs_map_bytes(const struct sched_programs *programs);
