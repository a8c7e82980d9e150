// SPDX-License-Identifier: Apache-2.0
#include "base/event.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

struct named_event {
	const char *name, *alias, *json;
	uint32_t type;
	uint64_t config;
	bool is_clock;
};

#define HARDWARE(id) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id
#define SOFTWARE(id) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id

static const struct named_event named_events[] = {
	{ "cycles", "cpu-cycles", "cpu_cycles", HARDWARE(CPU_CYCLES), false },
	{ "instructions", NULL, "instructions", HARDWARE(INSTRUCTIONS), false },
	{ "cache-references", NULL, "cache_refs", HARDWARE(CACHE_REFERENCES), false },
	{ "cache-misses", NULL, "cache_misses", HARDWARE(CACHE_MISSES), false },
	{ "branches", "branch-instructions", "branch_instr", HARDWARE(BRANCH_INSTRUCTIONS), false },
	{ "branch-misses", NULL, "branch_misses", HARDWARE(BRANCH_MISSES), false },
	{ "bus-cycles", NULL, "bus_cycles", HARDWARE(BUS_CYCLES), false },
	{ "stalled-cycles-frontend", "idle-cycles-frontend", "stalled_cycles_frontend", HARDWARE(STALLED_CYCLES_FRONTEND), false },
	{ "stalled-cycles-backend", "idle-cycles-backend", "stalled_cycles_backend", HARDWARE(STALLED_CYCLES_BACKEND), false },
	{ "ref-cycles", NULL, "ref_cpu_cycles", HARDWARE(REF_CPU_CYCLES), false },
	{ "cpu-clock", NULL, "cpu_clock", SOFTWARE(CPU_CLOCK), true },
	{ "task-clock", NULL, "task_clock", SOFTWARE(TASK_CLOCK), true },
	{ "page-faults", "faults", "page_faults", SOFTWARE(PAGE_FAULTS), false },
	{ "context-switches", "cs", "context_switches", SOFTWARE(CONTEXT_SWITCHES), false },
	{ "cpu-migrations", "migrations", "cpu_migrations", SOFTWARE(CPU_MIGRATIONS), false },
	{ "minor-faults", NULL, "minor_page_faults", SOFTWARE(PAGE_FAULTS_MIN), false },
	{ "major-faults", NULL, "major_page_faults", SOFTWARE(PAGE_FAULTS_MAJ), false },
	{ "alignment-faults", NULL, "alignment_faults", SOFTWARE(ALIGNMENT_FAULTS), false },
	{ "emulation-faults", NULL, "emulation_faults", SOFTWARE(EMULATION_FAULTS), false },
};

/* Caches, operations and results; the index of each is the kernel's number for it. */
#define OP(id) (1u << PERF_COUNT_HW_CACHE_OP_##id)
static const struct {
	const char *name, *json;
	unsigned int ops; /* operations that it supports */
} caches[PERF_COUNT_HW_CACHE_MAX] = {
	[PERF_COUNT_HW_CACHE_L1D] = { "L1-dcache", "l1_data", OP(READ) | OP(WRITE) | OP(PREFETCH) },
	[PERF_COUNT_HW_CACHE_L1I] = { "L1-icache", "l1_instr", OP(READ) | OP(PREFETCH) },
	[PERF_COUNT_HW_CACHE_LL] = { "LLC", "last_level", OP(READ) | OP(WRITE) | OP(PREFETCH) },
	[PERF_COUNT_HW_CACHE_DTLB] = { "dTLB", "data_tlb", OP(READ) | OP(WRITE) | OP(PREFETCH) },
	[PERF_COUNT_HW_CACHE_ITLB] = { "iTLB", "instr_tlb", OP(READ) },
	[PERF_COUNT_HW_CACHE_BPU] = { "branch", "bpu", OP(READ) },
	[PERF_COUNT_HW_CACHE_NODE] = { "node", "node", OP(READ) | OP(WRITE) | OP(PREFETCH) },
};
static const struct {
	const char *names[PERF_COUNT_HW_CACHE_RESULT_MAX], *json;
} cache_ops[PERF_COUNT_HW_CACHE_OP_MAX] = {
	[PERF_COUNT_HW_CACHE_OP_READ] = { { "loads", "load-misses" }, "read" },
	[PERF_COUNT_HW_CACHE_OP_WRITE] = { { "stores", "store-misses" }, "write" },
	[PERF_COUNT_HW_CACHE_OP_PREFETCH] = { { "prefetches", "prefetch-misses" }, "prefetch" },
};
static const char *const cache_results[PERF_COUNT_HW_CACHE_RESULT_MAX] = { "hit", "miss" }; /* a "hit" is any access */

/* The i-th valid combination. */
static bool cache_event_at(size_t i, struct event *event)
{
	for (unsigned int cache = 0; cache < ARRAY_SIZE(caches); cache++) {
		for (unsigned int op = 0; op < ARRAY_SIZE(cache_ops); op++) {
			for (unsigned int result = 0; result < ARRAY_SIZE(cache_results); result++) {
				if (!(caches[cache].ops >> op & 1) || i--)
					continue;
				*event = (struct event){ .type = PERF_TYPE_HW_CACHE,
							 .kind = EVENT_CACHE,
							 .config = cache | op << 8 | result << 16 };
				snprintf(event->name, sizeof(event->name), "%s-%s", caches[cache].name, cache_ops[op].names[result]);
				snprintf(event->json, sizeof(event->json), "%s_%s_%s", caches[cache].json, cache_ops[op].json,
					 cache_results[result]);
				return true;
			}
		}
	}
	return false;
}

static void take_named(const struct named_event *named, struct event *event)
{
	*event = (struct event){ .type = named->type, .config = named->config, .is_clock = named->is_clock,
				 .kind = named->type == PERF_TYPE_HARDWARE ? EVENT_HARDWARE : EVENT_SOFTWARE };
	snprintf(event->name, sizeof(event->name), "%s", named->name);
	snprintf(event->json, sizeof(event->json), "%s", named->json);
}

bool event_at(size_t i, struct event *ret_event)
{
	if (i >= ARRAY_SIZE(named_events))
		return cache_event_at(i - ARRAY_SIZE(named_events), ret_event);
	take_named(&named_events[i], ret_event);
	return true;
}

/* rNNN, in hexadecimal as in perf. */
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
	struct event named;

	for (size_t i = 0; i < ARRAY_SIZE(named_events); i++) {
		if (named_events[i].alias && !strcmp(stem, named_events[i].alias)) {
			take_named(&named_events[i], event);
			return 0;
		}
	}
	for (size_t i = 0; event_at(i, &named); i++) {
		if (!strcmp(stem, named.name) || !strcmp(stem, named.json)) {
			*event = named;
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
	memcpy(stem, name, stem_size);
	stem[stem_size] = '\0';
	if (parse_stem(stem, &event) || (colon && parse_modifier(colon + 1, &event)))
		return diag_errno(diag, EINVAL,
				  "no such event: '%s' (perf's names: cpu-clock, cycles, page-faults, ..., rNNN; :u or :k behind it)",
				  name);
	snprintf(event.name, sizeof(event.name), "%s", name);
	*ret_event = event;
	return 0;
}
