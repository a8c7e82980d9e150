// SPDX-License-Identifier: Apache-2.0
#include "engine/overhead.h"

bool overhead_look(struct overhead *overhead, uint64_t now_ns, uint64_t cost_ns)
{
	uint64_t elapsed_ns = now_ns - overhead->looked_ns;
	double percent;

	if (!overhead->max_percent || elapsed_ns < OVERHEAD_LOOK_NS)
		return false;
	percent = 100.0 * (double)(cost_ns - overhead->cost_ns) / ((double)elapsed_ns * overhead->nr_cpus);
	overhead->looked_ns = now_ns;
	overhead->cost_ns = cost_ns;
	if (percent <= overhead->max_percent)
		return false;
	if (percent > overhead->worst_percent)
		overhead->worst_percent = percent;
	overhead->is_at_end = overhead->min_ns >= OVERHEAD_MAX_MIN_NS;
	if (overhead->is_at_end)
		return false;
	overhead->min_ns = overhead->min_ns * OVERHEAD_RAISE > OVERHEAD_FIRST_NS ? overhead->min_ns * OVERHEAD_RAISE : OVERHEAD_FIRST_NS;
	if (overhead->min_ns > OVERHEAD_MAX_MIN_NS)
		overhead->min_ns = OVERHEAD_MAX_MIN_NS;
	overhead->nr_raised++;
	return true;
}
