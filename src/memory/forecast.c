// SPDX-License-Identifier: Apache-2.0
#include "memory/forecast.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "memory/own_function.h"
#include "memory/thread_clocks.h"

#define STEP_NS (10 * NS_PER_MS)
#define ENOUGH_NS (10 * NS_PER_MS) /* of CPU time */
#define MAX_STEPS 20               /* of a process that uses none */
#define TRIAL_CALLS 2000
#define TRIALS 5
/* What a call costs, in counted calls: of malloc and free with all that is done, measured by the loop of docs/internals/memory.md. */
#define COST_OF_CALL 3.1
#define LEAST_PART 0.1 /* of a counted call: calls closer to each other cannot be told from the counting */

/* What counting costs a call on this machine now, in ns: the least of some trials. 0: not known. */
static double counting_ns(struct alloc_programs *programs)
{
	char path[OWN_FUNCTION_PATH];
	uint64_t least_ns = UINT64_MAX, off = own_function_off(path, sizeof(path));
	const struct alloc_probe probe = { .entry_off = off, .probe_off = off, .call = SONDE_ALLOC_MALLOC };

	if (!off || alloc_programs_count(programs, path, (uint32_t)getpid(), &probe, 1))
		return 0;
	for (int trial = 0; trial < TRIALS; trial++) {
		uint64_t start_ns = clock_ns(), took_ns;

		for (int i = 0; i < TRIAL_CALLS; i++)
			own_function();
		took_ns = clock_ns() - start_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	alloc_programs_end_count(programs);
	return (double)least_ns / TRIAL_CALLS;
}

/* CPU time of all threads of the processes; those that have ended have none. */
static uint64_t cpu_time_ns(const uint32_t *tgids, uint32_t nr)
{
	uint64_t sum_ns = 0;

	for (uint32_t i = 0; i < nr; i++)
		sum_ns += process_cpu_time(tgids[i]);
	return sum_ns;
}

int forecast_make(struct allocator_probes *probes, struct alloc_programs *programs, const uint32_t *tgids, uint32_t nr_tgids,
		  struct diag *diag, struct forecast *ret_forecast)
{
	double cost_ns = counting_ns(programs), own_ns, call_ns;
	uint64_t before_ns, used_ns = 0, start_ns, took_ns, calls;
	struct forecast forecast = { .slow_down = 1 };
	int err = cost_ns > 0 ? allocator_probes_count(probes, diag) : -ENODATA;

	if (err)
		return err;
	calls = alloc_programs_nr_calls(programs);
	before_ns = cpu_time_ns(tgids, nr_tgids);
	start_ns = clock_ns();
	for (int i = 0; i < MAX_STEPS && used_ns < ENOUGH_NS; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = STEP_NS }, NULL);
		used_ns = cpu_time_ns(tgids, nr_tgids) - before_ns;
	}
	calls = alloc_programs_nr_calls(programs) - calls;
	took_ns = clock_ns() - start_ns;
	alloc_programs_end_count(programs);
	if (used_ns > (uint64_t)1 << 62) /* one has ended */
		return -ENODATA;
	if (calls) {
		call_ns = (double)used_ns / (double)calls;
		own_ns = call_ns - cost_ns;
		forecast.is_least = own_ns < cost_ns * LEAST_PART;
		own_ns = forecast.is_least ? cost_ns * LEAST_PART : own_ns;
		forecast.slow_down = 1 + COST_OF_CALL * cost_ns / own_ns;
		forecast.calls_per_s = (double)used_ns / (double)took_ns * (double)NS_PER_S / own_ns;
	}
	*ret_forecast = forecast;
	return 0;
}
