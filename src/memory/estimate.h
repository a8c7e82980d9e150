/* SPDX-License-Identifier: Apache-2.0 */
/* estimate: how much was allocated, from windows in which calls were seen. In a window a thread runs slower, as each call costs it time, so
 * it makes fewer calls than it would; and it may sleep less. So calls are related to CPU time:
 *
 *   allocated by a thread = its CPU time in all * sum over windows of (seen * CPU time / own CPU time) / sum over windows of CPU time
 *
 * where `own` is without what probes cost. The error is a jackknife's over groups of windows, with what is not known of a probe's cost.
 * docs/internals/memory.md. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/alloc.h"
#include "base/cleanup.h"
#include "stacks/stack_ids.h"

struct estimate_window { /* of one thread */
	uint32_t tgid, tid;
	double weight;         /* of the window: the inverse of the part of time that such windows take */
	uint64_t cpu_ns;       /* of the thread, meanwhile; 0: it did not run, or that is not known */
	double cost_ns;        /* of that, for probes */
	double usual_cost_ns;  /* what it would have been by the mean of some windows: by this one, windows are put together */
	double trap_ns;        /* of that, what was measured elsewhere, and may be wrong by ESTIMATE_TRAP_ERROR: its standard deviation */
};

#define ESTIMATE_TRAP_ERROR 0.05 /* measured: docs/internals/memory.md */
#define ESTIMATE_NONE UINT32_MAX
#define ESTIMATE_BY_TIME UINT32_MAX /* as a tid: threads whose CPU time in windows is not known. Their calls count by the weight alone */

struct estimate;
struct estimate *estimate_new(void); /* NULL: no memory */
void estimate_free(struct estimate *estimate); /* takes NULL */
/* Begins a window: the next calls belong to it, until estimate_finish. */
void estimate_begin(struct estimate *estimate);
/* Once for each thread that ran. Its number for estimate_hit, or ESTIMATE_NONE: no memory. */
uint32_t estimate_add(struct estimate *estimate, const struct estimate_window *window);
/* A block that this thread was seen to allocate. 0 or -ENOMEM. */
MUST_CHECK int estimate_hit(struct estimate *estimate, uint32_t number, const struct stack_ids *ids, uint64_t bytes);
/* CPU time that a thread has used, in windows or not. 0 or -ENOMEM. */
MUST_CHECK int estimate_cpu(struct estimate *estimate, uint32_t tgid, uint32_t tid, uint64_t cpu_ns);
void estimate_all_cpu(struct estimate *estimate, uint64_t cpu_ns); /* that all processes have used, with threads that were never seen */

struct estimate_result {
	double objects, bytes;
	double objects_error, bytes_error; /* standard deviations; below 0: there were too few windows to tell */
	double objects_shared, bytes_shared; /* of these, what a wrong cost of traps does: the same in all estimates of a recording */
	double unseen;                     /* part of the CPU time in threads that no window has seen: taken for like the others */
	uint64_t nr_unknown;               /* hits whose stacks were not kept: there were too many */
};

/* Then the sums may be read, and nothing be added. */
void estimate_finish(struct estimate *estimate, struct estimate_result *ret_result);
uint32_t estimate_nr(const struct estimate *estimate);
/* A stack's part; several may be of one stack. False: nothing. */
bool estimate_at(const struct estimate *estimate, uint32_t i, struct stack_ids *ret_ids, struct sonde_alloc_sum *ret_sum);
