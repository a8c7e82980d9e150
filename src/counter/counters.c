// SPDX-License-Identifier: Apache-2.0
/* A set of counters: from its options to its end. */
#include <errno.h>
#include <string.h>

#include "base/sized.h"
#include "counter/set.h"

#define SET_FLAGS ((SONDE_COUNTER_NO_FALLBACK << 1) - 1)
#define MAX_RING_BYTES (1u << 30)
#define MAX_CALLERS 127u

static int check_options(const struct sonde_counter_options *options, struct diag *diag)
{
	uint32_t page_bytes = (uint32_t)sysconf(_SC_PAGESIZE), ring = options->ring_bytes;

	if (options->flags & ~(uint64_t)SET_FLAGS)
		return diag_errno(diag, EINVAL, "unknown flags: %#llx", (unsigned long long)options->flags);
	if (options->flags & SONDE_COUNTER_ENABLED && options->flags & SONDE_COUNTER_ON_EXEC)
		return diag_errno(diag, EINVAL, "a set counts from its opening on, or from an exec on, not both");
	if (ring && (ring < page_bytes || ring > MAX_RING_BYTES || ring & (ring - 1)))
		return diag_errno(diag, EINVAL, "memory for overflows: want a power of two, from %u to %u bytes", page_bytes,
				  MAX_RING_BYTES);
	if (options->max_callers > MAX_CALLERS)
		return diag_errno(diag, EINVAL, "the kernel records at most %u callers", MAX_CALLERS);
	return 0;
}

/* The kernel gives no memory for overflows to counters of threads on any CPU that are inherited. They need one counter per CPU. */
static bool need_per_cpu(const struct sonde_counters *set, const struct sonde_counter_options *options)
{
	if (!options->ring_bytes)
		return false;
	for (uint32_t i = 0; i < set->nr; i++) {
		const struct sonde_event *event = &set->counters[i].spec.event;

		if ((event->period || event->freq_hz) && !((options->flags | event->flags) & SONDE_COUNTER_NO_INHERIT))
			return true;
	}
	return false;
}

/* The first member of a group leads it. */
static void find_leaders(struct sonde_counters *set)
{
	for (uint32_t i = 0; i < set->nr; i++) {
		uint32_t group = set->counters[i].spec.event.group, first = 0;

		while (first < i && (!group || set->counters[first].spec.event.group != group))
			first++;
		set->counters[i].leader = first;
		/* the kernel allows one reading for the whole group only where nothing is inherited */
		if (first != i)
			set->counters[first].reads_group =
			    (set->flags | set->counters[first].spec.event.flags) & SONDE_COUNTER_NO_INHERIT || set->targets.whole;
	}
}

static int take_specs(struct sonde_counters *set, const struct sonde_counter_options *options)
{
	CLEANUP(spec_list_done) struct spec_list list = { 0 };
	int err = spec_list_fill(&list, options, &set->diag);

	if (err)
		return err;
	set->counters = calloc(list.nr, sizeof(*set->counters));
	set->now = calloc(list.nr, sizeof(*set->now));
	set->base = calloc(list.nr, sizeof(*set->base));
	if (!set->counters || !set->now || !set->base)
		return -ENOMEM;
	for (; set->nr < list.nr; set->nr++) {
		set->counters[set->nr].spec = list.specs[set->nr];
		list.specs[set->nr].pmu.mask = (struct cpus){ 0 };
	}
	return 0;
}

/* A set that failed as a whole has no events to report. */
static void forget(struct sonde_counters *set)
{
	while (set->nr)
		spec_done(&set->counters[--set->nr].spec);
}

static int fill(struct sonde_counters *set, const struct sonde_counter_options *options)
{
	int err = check_options(options, &set->diag);

	if (!err)
		err = take_specs(set, options);
	if (err)
		return err;
	set->flags = options->flags;
	set->max_callers = options->max_callers;
	set->rings.bytes = options->ring_bytes;
	err = counter_targets_fill(&set->targets, options, need_per_cpu(set, options), &set->diag);
	if (err) {
		forget(set);
		return err;
	}
	find_leaders(set);
	for (uint32_t i = 0; !err && i < set->nr; i++)
		err = counter_open(set, i);
	for (uint32_t i = 0; !err && i < set->nr; i++) {
		err = set->counters[i].spec.err;
		if (err)
			set->diag = set->counters[i].spec.diag;
	}
	return err;
}

int sonde_counters_new(const struct sonde_counter_options *given, struct sonde_counters **ret_counters)
{
	CLEANUP(counters_freep) struct sonde_counters *set = calloc(1, sizeof(*set));
	struct sonde_counter_options options;
	int err;

	*ret_counters = NULL;
	if (!set)
		return -ENOMEM;
	set->targets = (struct counter_targets)COUNTER_TARGETS_INIT;
	if (pthread_mutex_init(&set->lock, NULL))
		return -ENOMEM;
	err = sized_options(&options, sizeof(options), given, &set->diag);
	if (!err)
		err = fill(set, &options);
	if (err == -ENOMEM && !set->diag.err)
		return err;
	*ret_counters = MOVE(set);
	return err;
}

int sonde_counters_open(uint32_t type, uint64_t config, int32_t pid, int32_t cpu, uint64_t flags, struct sonde_counters **ret_counters)
{
	struct sonde_event event = { .size = sizeof(event), .type = type, .config = config };
	struct sonde_counter_options options = { .size = sizeof(options), .events = &event, .nr_events = 1, .flags = flags };
	uint32_t target = (uint32_t)pid, where = (uint32_t)cpu;

	if (pid < -1 || cpu < -1)
		options.flags = UINT64_MAX; /* an unknown flag: refused, with the reason in a set as always */
	options.all_cpus = pid == -1 && cpu == -1;
	options.cpus = &where;
	options.nr_cpus = cpu >= 0;
	options.tids = options.tgids = &target;
	options.nr_tgids = pid > 0 && !(flags & SONDE_COUNTER_ONE_THREAD);
	options.nr_tids = pid >= 0 && !options.nr_tgids;
	return sonde_counters_new(&options, ret_counters);
}

void sonde_counters_free(struct sonde_counters *set)
{
	if (!set)
		return;
	rings_done(&set->rings);
	counters_forget_failures(set);
	for (uint32_t i = 0; i < set->nr; i++) {
		counter_close(&set->counters[i]);
		spec_done(&set->counters[i].spec);
	}
	counter_targets_done(&set->targets);
	pthread_mutex_destroy(&set->lock);
	free(set->counters);
	free(set->now);
	free(set->base);
	free(set);
}

bool sonde_counters_has_any(const struct sonde_counters *set)
{
	for (uint32_t i = 0; set && i < set->nr; i++) {
		if (set->counters[i].fds)
			return true;
	}
	return false;
}

uint32_t sonde_counters_nr(const struct sonde_counters *set)
{
	return set ? set->nr : 0;
}

const char *sonde_counters_error(const struct sonde_counters *set)
{
	const char *error = set ? atomic_load(&set->error) : strerror(ENOMEM);

	return error ? error : set->diag.text;
}

int sonde_counters_info(const struct sonde_counters *set, uint32_t i, struct sonde_counter_info *ret_info)
{
	struct sonde_counter_info info = { 0 };
	const struct spec *spec;

	if (!set || i >= set->nr)
		return -EINVAL;
	spec = &set->counters[i].spec;
	info.name = spec->event.name;
	info.json_name = spec->json[0] ? spec->json : NULL;
	info.unit = spec->unit;
	info.unit_scale = spec->unit_scale;
	info.type = spec->event.type;
	info.group = spec->event.group;
	info.config = spec->event.config;
	info.flags = spec->event.flags;
	info.err = spec->err;
	info.error = spec->diag.text;
	info.is_user_only = set->counters[i].is_user_only && !spec->err;
	return sized_fill(ret_info, &info, sizeof(info));
}

int sonde_event_parse(const char *text, struct sonde_event *ret_event, char *error, size_t error_bytes)
{
	CLEANUP(spec_done) struct spec spec = { 0 };
	struct diag diag = { 0 };
	int err = spec_parse(text, "", &diag, &spec);

	if (!err && spec.err) {
		err = spec.err;
		diag = spec.diag;
	}
	if (err && error && error_bytes)
		snprintf(error, error_bytes, "%s", diag.err ? diag.text : strerror(-err));
	return err ? err : sized_fill(ret_event, &spec.event, sizeof(spec.event));
}
