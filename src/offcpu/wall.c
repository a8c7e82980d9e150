// SPDX-License-Identifier: Apache-2.0
#include "offcpu/wall.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "offcpu/wait_stack.h"
#include "offcpu/wall_table.h"
#include "stacks/sample_labels.h"

struct wall {
	bool kernel_stacks, labels;
	struct profile *profile;
	struct wall_table *table;
	struct wait_kinds kinds;
	struct stack_builder *builder;     /* these two: while the time on CPUs is shared out */
	const struct samples *samples;
};

struct wall *wall_new(bool kernel_stacks, bool labels, struct profile *profile)
{
	const struct profile_value_type type = { .type = profile_string(profile, "wall"),
						 .unit = profile_string(profile, "nanoseconds"),
						 .fold = VALUE_SUM };
	struct wall *wall;

	if (type.type == PROFILE_NONE || type.unit == PROFILE_NONE)
		return NULL;
	wall = calloc(1, sizeof(*wall));
	if (!wall)
		return NULL;
	wall->kernel_stacks = kernel_stacks;
	wall->labels = labels;
	wall->profile = profile;
	wall->table = wall_table_new();
	if (!wall->table) {
		wall_free(wall);
		return NULL;
	}
	profile_set_value_types(profile, &type, 1, 0);
	return wall;
}

void wall_free(struct wall *wall)
{
	if (!wall)
		return;
	wall_table_free(wall->table);
	wait_kinds_done(&wall->kinds);
	free(wall);
}

static struct wall_thread thread_of(uint32_t tgid, uint32_t tid, const char *comm)
{
	struct wall_thread thread = { .tgid = tgid, .tid = tid };

	memcpy(thread.comm, comm, strnlen(comm, sizeof(thread.comm) - 1));
	return thread;
}

static int add_labels(const struct wall *wall, uint32_t tgid, const struct process_labels *labels, uint64_t count,
		      struct profile_sample *stacks)
{
	stacks->tgid = tgid;
	return wall->labels ? sample_labels_add_known(wall->profile, labels, count, stacks) : 0;
}

/* Adds `ns` of the thread to the profile, below `root`; `stacks` has the stacks and the labels. */
static int add(struct wall *wall, const struct wall_thread *thread, const struct profile_sample *stacks, const char *root, uint64_t ns)
{
	struct profile_sample sample = *stacks;
	int err;

	if (!ns)
		return 0;
	sample.tgid = thread->tgid;
	sample.tid = thread->tid;
	sample.cpu = PROFILE_NONE;
	sample.comm = profile_string(wall->profile, thread->comm);
	sample.values[0] = ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
	if (sample.comm == PROFILE_NONE)
		return -ENOMEM;
	if (!wall->kernel_stacks)
		sample.kernel_stack = PROFILE_NONE;
	err = wait_stack_root(wall->profile, root, &sample);
	return err ? err : profile_add(wall->profile, &sample);
}

int wall_sum(struct wall *wall, struct stack_builder *builder, const struct wait_entry *entry)
{
	const struct sonde_wait_key *key = &entry->key;
	const struct sonde_wait_sum *sum = &entry->sum;
	const struct wall_thread thread = thread_of(key->tgid, key->tid, key->comm);
	uint64_t queued_ns = sum->queued_ns < sum->off_ns ? sum->queued_ns : sum->off_ns;
	struct profile_sample stacks = { 0 };
	enum wait_kind kind;
	char root[64];
	int err;

	if (key->what == SONDE_WAIT_RUNNING)
		return wall_table_ran(wall->table, &thread, sum->off_ns);
	err = wait_stack_make(&wall->kinds, builder, wall->profile, key, entry->user_stack, sum->nr_waits, &stacks, &kind);
	if (!err)
		err = add_labels(wall, key->tgid, entry->labels, sum->nr_waits, &stacks);
	if (err)
		return err;
	snprintf(root, sizeof(root), PROFILE_BLOCKED, wait_kind_name(kind));
	err = add(wall, &thread, &stacks, PROFILE_RUNNABLE, queued_ns);
	return err ? err : add(wall, &thread, &stacks, root, sum->off_ns - queued_ns);
}

static int add_share(void *arg, const struct wall_thread *thread, uint32_t number, uint64_t running_ns)
{
	struct wall *wall = arg;
	struct profile_sample stacks = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE };
	const struct sample *sample;
	int err;

	if (number == WALL_NOT_SAMPLED) {
		err = wait_stack_root(wall->profile, WALL_NO_SAMPLE, &stacks);
	} else {
		sample = samples_at(wall->samples, number);
		err = stack_builder_sample(wall->builder, &sample->key.ids, sample->count, &stacks);
		if (!err)
			err = add_labels(wall, sample->key.ids.tgid, sample->key.labels, sample->count, &stacks);
	}
	return err ? err : add(wall, thread, &stacks, PROFILE_ON_CPU, running_ns);
}

int wall_finish(struct wall *wall, struct stack_builder *builder, const struct samples *samples)
{
	int err = 0;

	wall->builder = builder;
	wall->samples = samples;
	for (uint32_t i = 0; !err && i < samples_nr(samples); i++) {
		const struct sample *sample = samples_at(samples, i);
		const struct wall_thread thread = thread_of(sample->key.ids.tgid, sample->key.tid, sample->key.comm);

		err = wall_table_sampled(wall->table, &thread, i, sample->count);
	}
	return err ? err : wall_table_shares(wall->table, add_share, wall);
}
