// SPDX-License-Identifier: Apache-2.0
#include "collect/event.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

#define CACHE(cache, op, result) (PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 | PERF_COUNT_HW_CACHE_RESULT_##result << 16)

struct named_event {
	const char *name;
	uint32_t type;
	uint64_t config;
	bool is_clock;
};

static const struct named_event named_events[] = {
	{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true },
	{ "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true },
	{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false },
	{ "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false },
	{ "minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, false },
	{ "major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, false },
	{ "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, false },
	{ "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, false },
	{ "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, false },
	{ "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, false },
	{ "alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS, false },
	{ "emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS, false },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false },
	{ "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false },
	{ "cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, false },
	{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false },
	{ "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false },
	{ "branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false },
	{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false },
	{ "bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, false },
	{ "ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, false },
	{ "stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, false },
	{ "stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, false },
	{ "L1-dcache-loads", PERF_TYPE_HW_CACHE, CACHE(L1D, READ, ACCESS), false },
	{ "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS), false },
	{ "L1-icache-load-misses", PERF_TYPE_HW_CACHE, CACHE(L1I, READ, MISS), false },
	{ "LLC-loads", PERF_TYPE_HW_CACHE, CACHE(LL, READ, ACCESS), false },
	{ "LLC-load-misses", PERF_TYPE_HW_CACHE, CACHE(LL, READ, MISS), false },
	{ "LLC-stores", PERF_TYPE_HW_CACHE, CACHE(LL, WRITE, ACCESS), false },
	{ "LLC-store-misses", PERF_TYPE_HW_CACHE, CACHE(LL, WRITE, MISS), false },
	{ "dTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, MISS), false },
	{ "iTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE(ITLB, READ, MISS), false },
	{ "branch-load-misses", PERF_TYPE_HW_CACHE, CACHE(BPU, READ, MISS), false },
	{ "node-load-misses", PERF_TYPE_HW_CACHE, CACHE(NODE, READ, MISS), false },
};

/* rNNN, hexadecimal as perf has it. */
static int parse_raw(const char *stem, struct event *event)
{
	const char *pos = stem + 1, *end = stem + strlen(stem);

	if (stem[0] != 'r' || number_hex(&pos, end, &event->config) || pos != end)
		return -EINVAL;
	event->type = PERF_TYPE_RAW;
	return 0;
}

static int parse_stem(const char *stem, struct event *event)
{
	for (size_t i = 0; i < ARRAY_SIZE(named_events); i++) {
		if (!strcmp(stem, named_events[i].name)) {
			event->type = named_events[i].type;
			event->config = named_events[i].config;
			event->is_clock = named_events[i].is_clock;
			return 0;
		}
	}
	return parse_raw(stem, event);
}

static int parse_modifier(const char *modifier, struct event *event)
{
	if (!strcmp(modifier, "u"))
		event->exclude_kernel = true;
	else if (!strcmp(modifier, "k"))
		event->exclude_user = true;
	else
		return -EINVAL;
	return 0;
}

int event_parse(const char *name, struct diag *diag, struct event *ret_event)
{
	struct event event = { 0 };
	const char *colon = strchr(name, ':');
	size_t stem_size = colon ? (size_t)(colon - name) : strlen(name);
	char stem[sizeof(event.name)];

	if (strlen(name) >= sizeof(event.name))
		return diag_errno(diag, EINVAL, "no such event: '%.60s...'", name);
	memcpy(event.name, name, strlen(name));
	memcpy(stem, name, stem_size);
	stem[stem_size] = '\0';
	if (parse_stem(stem, &event) || (colon && parse_modifier(colon + 1, &event)))
		return diag_errno(diag, EINVAL, "no such event: '%s' (perf's names: cpu-clock, cycles, page-faults, ..., rNNN; :u or :k behind it)", name);
	*ret_event = event;
	return 0;
}
