// SPDX-License-Identifier: Apache-2.0
#include "offcpu/wall_table.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/u64_map.h"

#define NONE UINT32_MAX
#define MAX_ENTRIES (1u << 30)

struct sampled {
	uint64_t count;
	uint32_t sample;
	uint32_t next; /* of the same thread, or NONE */
};

struct ran {
	struct wall_thread thread;
	uint64_t running_ns;
	uint64_t count;                 /* of its samples, in all */
	uint32_t first_sampled, last_sampled; /* or NONE */
	uint32_t next_name;             /* another name of the same thread, or NONE */
};

struct wall_table {
	struct ran *rans;
	struct sampled *sampleds;
	uint32_t nr_rans, max_rans, nr_sampleds, max_sampleds;
	struct u64_map by_tid; /* tgid and tid -> its first name */
};

struct wall_table *wall_table_new(void)
{
	return calloc(1, sizeof(struct wall_table));
}

void wall_table_free(struct wall_table *table)
{
	if (!table)
		return;
	free(table->rans);
	free(table->sampleds);
	u64_map_done(&table->by_tid);
	free(table);
}

/* Returns the entry of the thread, created if necessary. NULL: no memory. */
static struct ran *ran_of(struct wall_table *table, const struct wall_thread *thread)
{
	uint64_t key = (uint64_t)thread->tgid << 32 | thread->tid;
	const uint32_t *first = u64_map_find(&table->by_tid, key);
	uint32_t last = NONE;

	for (uint32_t i = first ? *first : NONE; i != NONE; i = table->rans[i].next_name) {
		if (!memcmp(&table->rans[i].thread, thread, sizeof(*thread)))
			return &table->rans[i];
		last = i;
	}
	if (!array_grow(&table->rans, table->nr_rans, &table->max_rans, sizeof(*table->rans), 256, MAX_ENTRIES) ||
	    (last == NONE && u64_map_add(&table->by_tid, key, table->nr_rans)))
		return NULL;
	if (last != NONE)
		table->rans[last].next_name = table->nr_rans;
	table->rans[table->nr_rans] = (struct ran){ .thread = *thread, .first_sampled = NONE, .last_sampled = NONE, .next_name = NONE };
	return &table->rans[table->nr_rans++];
}

int wall_table_ran(struct wall_table *table, const struct wall_thread *thread, uint64_t running_ns)
{
	struct ran *ran = ran_of(table, thread);

	if (!ran)
		return -ENOMEM;
	ran->running_ns += running_ns;
	return 0;
}

int wall_table_sampled(struct wall_table *table, const struct wall_thread *thread, uint32_t sample, uint64_t count)
{
	struct ran *ran = ran_of(table, thread);

	if (!ran || !array_grow(&table->sampleds, table->nr_sampleds, &table->max_sampleds, sizeof(*table->sampleds), 256, MAX_ENTRIES))
		return -ENOMEM;
	table->sampleds[table->nr_sampleds] = (struct sampled){ .count = count, .sample = sample, .next = NONE };
	if (ran->last_sampled == NONE)
		ran->first_sampled = table->nr_sampleds;
	else
		table->sampleds[ran->last_sampled].next = table->nr_sampleds;
	ran->last_sampled = table->nr_sampleds++;
	ran->count += count;
	return 0;
}

/* The name under which the thread ran most; `from` itself if it did not run at all. */
static struct ran *busiest(struct wall_table *table, struct ran *from)
{
	uint32_t i = *u64_map_find(&table->by_tid, (uint64_t)from->thread.tgid << 32 | from->thread.tid);
	struct ran *best = from;

	for (; i != NONE; i = table->rans[i].next_name) {
		if (table->rans[i].running_ns > best->running_ns)
			best = &table->rans[i];
	}
	return best;
}

static void move_samples(struct wall_table *table, struct ran *from, struct ran *to)
{
	if (to->last_sampled == NONE)
		to->first_sampled = from->first_sampled;
	else
		table->sampleds[to->last_sampled].next = from->first_sampled;
	to->last_sampled = from->last_sampled;
	to->count += from->count;
	from->first_sampled = from->last_sampled = NONE;
	from->count = 0;
}

/* Divides the sums so far, so that the remainder of one division goes to the next. */
static int share(const struct wall_table *table, const struct ran *ran, wall_share_fn fn, void *arg)
{
	uint64_t count = 0, given_ns = 0;
	int err = 0;

	for (uint32_t i = ran->first_sampled; !err && i != NONE; i = table->sampleds[i].next) {
		uint64_t until_ns;

		count += table->sampleds[i].count;
		until_ns = (uint64_t)((unsigned __int128)ran->running_ns * count / ran->count);
		if (until_ns > given_ns)
			err = fn(arg, &ran->thread, table->sampleds[i].sample, until_ns - given_ns);
		given_ns = until_ns;
	}
	return err;
}

int wall_table_shares(struct wall_table *table, wall_share_fn fn, void *arg)
{
	int err = 0;

	for (uint32_t i = 0; i < table->nr_rans; i++) {
		struct ran *ran = &table->rans[i], *to = ran->running_ns || !ran->count ? ran : busiest(table, ran);

		if (to != ran)
			move_samples(table, ran, to);
	}
	for (uint32_t i = 0; !err && i < table->nr_rans; i++) {
		const struct ran *ran = &table->rans[i];

		if (ran->count)
			err = share(table, ran, fn, arg);
		else if (ran->running_ns)
			err = fn(arg, &ran->thread, WALL_NOT_SAMPLED, ran->running_ns);
	}
	return err;
}
