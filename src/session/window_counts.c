// SPDX-License-Identifier: Apache-2.0
#include "session/window_counts.h"

#include <string.h>

#include "runtime/runtime.h"

static void add(struct window_counts *counts, const char *group, const char *name, uint64_t nr)
{
	counts->list[counts->nr++] = (struct sonde_window_count){ .group = group, .name = name, .nr = nr };
}

static void add_samples(const struct account *account, struct window_counts *counts)
{
	add(counts, "samples", "recorded", account_nr_recorded(account));
	add(counts, "samples", "expected", account->expected);
	add(counts, "samples", "late", account->late);
	for (int i = 0; i < SONDE_FILTER_COUNT; i++)
		add(counts, "filtered", filter_name(i), account->filtered[i]);
	for (int i = 0; i < SONDE_DROP_COUNT; i++)
		add(counts, "lost", drop_name(i), account->dropped[i]);
}

static void add_waits(const struct account *account, struct window_counts *counts)
{
	add(counts, "lost", "sums_full", account->waits.sums_full);
	add(counts, "lost", "no_storage", account->waits.no_storage);
}

static void add_stacks(const struct account *account, struct window_counts *counts)
{
	for (int i = 0; i < SONDE_STOP_COUNT; i++)
		add(counts, "stacks", stop_name(i), account->stopped[i]);
	add(counts, "missed", "user", account->missed_user);
	add(counts, "missed", "kernel", account->missed_kernel);
	add(counts, "missed", "runtime", account->runtime_missed);
	add(counts, "missed", "labels", account->labels_missed);
	add(counts, "events_lost", "sideband", account->lost_sideband);
}

static void add_audit(const struct account *account, struct window_counts *counts)
{
	add(counts, "audit", "agreed", account->audit_agreed);
	add(counts, "audit", "differed", account->audit_differed);
	add(counts, "audit", "not_comparable", account->audited - account->audit_agreed - account->audit_differed);
}

/* All versions of a runtime together. */
static void add_processes(const struct account *account, struct window_counts *counts)
{
	uint32_t first = counts->nr, nr_other = 0;

	for (uint32_t kind = SONDE_RUNTIME_NONE + 1; kind < SONDE_RUNTIME_COUNT; kind++)
		add(counts, "processes", runtime_name(kind), 0);
	for (uint32_t i = 0; i < account->nr_runtimes; i++) {
		uint32_t at = first;

		while (at < counts->nr && strcmp(counts->list[at].name, account->runtimes[i].name) != 0)
			at++;
		if (at < counts->nr)
			counts->list[at].nr += account->runtimes[i].nr_processes;
		else
			nr_other += account->runtimes[i].nr_processes;
	}
	add(counts, "processes", "other", nr_other);
	for (uint32_t i = first; i < counts->nr; i++)
		counts->list[i].is_level = true;
}

void window_counts_fill(const struct account *account, struct window_counts *ret_counts)
{
	ret_counts->nr = 0;
	add_samples(account, ret_counts);
	if (account->has_waits)
		add_waits(account, ret_counts);
	add_stacks(account, ret_counts);
	add_audit(account, ret_counts);
	add_processes(account, ret_counts);
}
