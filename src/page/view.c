// SPDX-License-Identifier: Apache-2.0
#include "page/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/u64_map.h"
#include "frames/process_names.h"

struct builder {
	const struct profile *profile;
	const uint32_t *processes;
	struct view view;
	struct u64_map thread_index, sample_index;
};

/* Returns the thread's index, or PROFILE_NONE: no memory. */
static uint32_t add_thread(struct builder *builder, const struct profile_sample *sample, uint32_t process)
{
	struct view_thread thread = { .comm = sample->comm, .process = process, .tgid = sample->tgid, .tid = sample->tid };
	uint64_t hash = hash_bytes(&thread, sizeof(thread), 0);
	uint32_t cursor = 0, *found;

	while ((found = u64_map_each(&builder->thread_index, hash, &cursor))) {
		if (!memcmp(&builder->view.threads[*found], &thread, sizeof(thread)))
			return *found;
	}
	if (u64_map_add(&builder->thread_index, hash, builder->view.nr_threads))
		return PROFILE_NONE;
	builder->view.threads[builder->view.nr_threads] = thread;
	return builder->view.nr_threads++;
}

static bool ends_alike(const struct view_sample *one, const struct view_sample *other)
{
	return one->node == other->node && one->thread == other->thread && one->labels == other->labels;
}

/* Returns the sample without a time that ends in the same node, or NULL. */
static struct view_sample *find_sample(struct builder *builder, const struct view_sample *sample, uint64_t hash)
{
	uint32_t cursor = 0, *found;

	while ((found = u64_map_each(&builder->sample_index, hash, &cursor))) {
		if (ends_alike(&builder->view.samples[*found], sample))
			return &builder->view.samples[*found];
	}
	return NULL;
}

static int add_sample(struct builder *builder, uint32_t number)
{
	const struct profile_sample *from = profile_sample_at(builder->profile, number);
	struct view_sample sample = { .node = builder->view.tree.leaves[number], .cpu = from->cpu, .labels = from->labels,
				      .time_ns = from->time_ns };
	struct view_sample *found;
	uint64_t hash;

	sample.thread = add_thread(builder, from, builder->processes[number]);
	if (sample.thread == PROFILE_NONE)
		return -ENOMEM;
	memcpy(sample.values, from->values, sizeof(sample.values));
	hash = hash_bytes((uint32_t[]){ sample.node, sample.thread, sample.labels }, 3 * sizeof(uint32_t), 0);
	found = sample.time_ns ? NULL : find_sample(builder, &sample, hash);
	if (found) {
		for (int i = 0; i < PROFILE_MAX_VALUES; i++)
			found->values[i] = number_sum(found->values[i], sample.values[i]);
		return 0;
	}
	if (!sample.time_ns && u64_map_add(&builder->sample_index, hash, builder->view.nr_samples))
		return -ENOMEM;
	builder->view.samples[builder->view.nr_samples++] = sample;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct view_sample *one = a, *other = b;

	if (one->time_ns != other->time_ns)
		return one->time_ns < other->time_ns ? -1 : 1;
	if (one->node != other->node)
		return one->node < other->node ? -1 : 1;
	if (one->thread != other->thread)
		return one->thread < other->thread ? -1 : 1;
	return one->labels < other->labels ? -1 : one->labels > other->labels;
}

static void builder_done(struct builder *builder)
{
	view_done(&builder->view);
	u64_map_done(&builder->thread_index);
	u64_map_done(&builder->sample_index);
}

int view_build(const struct profile *profile, bool threads, struct view *ret_view)
{
	CLEANUP(freep) uint32_t *processes = process_names(profile);
	CLEANUP(builder_done) struct builder builder = { .profile = profile, .processes = processes };
	size_t nr_samples = profile_nr_samples(profile);
	int err = processes ? tree_build(profile, processes, threads, &builder.view.tree) : -ENOMEM;

	if (err)
		return err;
	builder.view.threads = calloc(nr_samples + 1, sizeof(*builder.view.threads));
	builder.view.samples = calloc(nr_samples + 1, sizeof(*builder.view.samples));
	if (!builder.view.threads || !builder.view.samples)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_samples; i++) {
		err = add_sample(&builder, i);
		if (err)
			return err;
	}
	qsort(builder.view.samples, builder.view.nr_samples, sizeof(*builder.view.samples), by_time);
	*ret_view = builder.view;
	builder.view = (struct view){ 0 };
	return 0;
}

void view_done(struct view *view)
{
	tree_done(&view->tree);
	free(view->threads);
	free(view->samples);
	*view = (struct view){ 0 };
}
