/* SPDX-License-Identifier: Apache-2.0 */
/* sched_programs: the kernel side of `offcpu` and `wall`, beside the sampler's. Its programs run at the scheduler's events and add up, in
 * the kernel, how long threads are off the CPU. Stacks, wakers, initial off-CPU stacks and events arrive through the sampler's ring
 * (abi/wait.h). One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"

struct sched_options {
	uint64_t max_sums;  /* room for sums, one per thread and stack */
	bool tells_cost;    /* enables sched_programs_cost_ns */
};

struct sched_programs;
/* Loads the programs with the sampler's configuration, targets and maps; borrows the sampler for its life. 0; -EPERM; -EOPNOTSUPP: this
 * kernel cannot (older than 5.12; diag says what is missing). */
MUST_CHECK int sched_programs_new(struct sampler *sampler, const struct sched_options *options, struct diag *diag,
				  struct sched_programs **ret_programs);
void sched_programs_free(struct sched_programs *programs); /* takes NULL */
/* Waits count from *ret_start_ns on (CLOCK_MONOTONIC). A thread that is off the CPU at that time gets an initial stack; its wait begins
 * there. */
MUST_CHECK int sched_programs_start(struct sched_programs *programs, struct diag *diag, uint64_t *ret_start_ns);
struct sched_sink { /* a negative result stops the taking */
	int (*sum)(void *arg, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum);
	int (*slot)(void *arg, const struct sonde_wait_slot *slot, uint64_t nr_waits);
	/* A piece is of the window that ends, whatever its key says. The sink adds it to the histogram itself. */
	int (*piece)(void *arg, const struct sonde_wait_piece *piece);
	void *arg;
};
/* Passes what has been added up so far to the sink; the programs then start from zero. May be called at any time while they run, so a key
 * may appear again. Returns 0 or what the sink or bpf(2) returned. */
MUST_CHECK int sched_programs_take(struct sched_programs *programs, const struct sched_sink *sink);
/* Ends the window at *border_ns (CLOCK_MONOTONIC, rounded down to 256 ns). Call it before that time. False: it was too late, set another
 * border; what happened in between may be in either window. */
bool sched_programs_set_border(struct sched_programs *programs, uint64_t *border_ns);
/* After that time: passes everything of the old window to the sink. A wait or a thread's CPU time that continues is passed as a piece. Data
 * of the new window may be among it. Returns 0 or what the sink or bpf(2) returned. */
MUST_CHECK int sched_programs_cut(struct sched_programs *programs, const struct sched_sink *sink, struct diag *diag);
uint8_t sched_programs_window(const struct sched_programs *programs); /* number of the window that begins at the last border, as in keys */
/* Waits that have not ended are counted up to *ret_end_ns; nothing is added afterwards. Passes everything to the sink. */
MUST_CHECK int sched_programs_stop(struct sched_programs *programs, const struct sched_sink *sink, struct diag *diag, uint64_t *ret_end_ns);
/* True if it is time for sched_programs_take: there will soon be no room. */
bool sched_programs_fill_up(const struct sched_programs *programs);
void sched_programs_counters(const struct sched_programs *programs, struct sonde_wait_counters *ret_counters); /* summed over the CPUs */
/* CPU time of the programs so far, by the kernel's statistics; 0 if the options did not enable it. */
uint64_t sched_programs_cost_ns(const struct sched_programs *programs);
/* For --max-overhead: shorter waits are dropped from now on. No stacks are taken for threads that have many short waits, so a longer wait
 * of such a thread has none: both sides are SONDE_STACK_LOST. */
MUST_CHECK int sched_programs_set_min(struct sched_programs *programs, uint64_t min_off_ns);
uint64_t sched_programs_map_bytes(const struct sched_programs *programs);
