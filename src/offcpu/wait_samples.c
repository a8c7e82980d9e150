// SPDX-License-Identifier: Apache-2.0
#include "offcpu/wait_samples.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/interned.h"
#include "offcpu/wait_stack.h"
#include "stacks/sample_labels.h"
#include "stacks/stack_ids.h"

#define SUMS_BYTES_MAX ((size_t)4 << 30)

/* What a sum became in the profile: its histogram belongs to that. */
struct kept_sum {
	struct sonde_wait_key key;
	struct profile_histogram histogram; /* an empty one */
};

struct wait_samples {
	struct wait_samples_options options;
	struct profile *profile;
	struct interned sums; /* of struct kept_sum, for histograms */
	uint64_t whole_ns;    /* sum of their whole_ns */
	struct profile_histogram whole; /* an empty one */
	struct wait_kinds kinds;
};

struct wait_samples *wait_samples_new(const struct wait_samples_options *options, struct profile *profile)
{
	static const struct {
		const char *type, *unit;
		enum value_fold fold;
	} values[WAIT_VALUE_COUNT] = {
		[WAIT_VALUE_WAITS] = { "waits", "count", VALUE_SUM },
		[WAIT_VALUE_BLOCKED] = { "blocked", "nanoseconds", VALUE_SUM },
		[WAIT_VALUE_SHORTEST] = { "shortest", "nanoseconds", VALUE_MIN },
		[WAIT_VALUE_LONGEST] = { "longest", "nanoseconds", VALUE_MAX },
	};
	struct profile_value_type types[WAIT_VALUE_COUNT];
	struct wait_samples *samples;

	for (uint32_t i = 0; i < WAIT_VALUE_COUNT; i++) {
		types[i] = (struct profile_value_type){ profile_string(profile, values[i].type), profile_string(profile, values[i].unit),
							values[i].fold };
		if (types[i].type == PROFILE_NONE || types[i].unit == PROFILE_NONE)
			return NULL;
	}
	samples = calloc(1, sizeof(*samples));
	if (!samples)
		return NULL;
	samples->options = *options;
	samples->profile = profile;
	samples->sums = INTERNED_INIT(struct kept_sum, sizeof(struct sonde_wait_key), SUMS_BYTES_MAX);
	samples->whole = (struct profile_histogram){ .name = profile_string(profile, WAIT_SAMPLES_HISTOGRAM),
						     .unit = profile_string(profile, "us"),
						     .user_stack = PROFILE_NONE,
						     .kernel_stack = PROFILE_NONE };
	if (samples->whole.name == PROFILE_NONE || samples->whole.unit == PROFILE_NONE) {
		wait_samples_free(samples);
		return NULL;
	}
	profile_set_value_types(profile, types, WAIT_VALUE_COUNT, options->show_count ? WAIT_VALUE_WAITS : WAIT_VALUE_BLOCKED);
	return samples;
}

void wait_samples_free(struct wait_samples *samples)
{
	if (!samples)
		return;
	wait_kinds_done(&samples->kinds);
	interned_done(&samples->sums);
	free(samples);
}

static uint32_t comm_of(const struct wait_samples *samples, const struct sonde_wait_key *key)
{
	char comm[SONDE_COMM_BYTES];

	memcpy(comm, key->comm, sizeof(comm));
	comm[sizeof(comm) - 1] = '\0';
	return profile_string(samples->profile, comm);
}

/* Puts the waker's stacks behind those of the wait: at the leaf end, where a flame graph continues upwards. */
static int join_waker(const struct wait_samples *samples, struct stack_builder *builder, uint64_t hash, uint64_t count,
		      struct profile_sample *sample)
{
	const struct waker *known = waker_table_find(stack_builder_store(builder)->wakers, hash);
	const struct sonde_wait_key *key = known && !known->is_disputed ? &known->key : NULL;
	struct profile_sample waker = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE, .comm = PROFILE_NONE };
	struct stack_ids ids;
	int err;

	profile_account(samples->profile)->missed_collided += known && !key ? count : 0;
	if (!key) /* its record found no room */
		return wait_stack_join(samples->profile, NULL, sample);
	ids = wait_ids(key);
	err = stack_builder_sample(builder, &ids, 0, &waker);
	if (err)
		return err;
	waker.tgid = key->tgid;
	waker.tid = key->tid;
	waker.comm = comm_of(samples, key);
	if (waker.comm == PROFILE_NONE)
		return -ENOMEM;
	if (!samples->options.kernel_stacks)
		waker.kernel_stack = PROFILE_NONE;
	return wait_stack_join(samples->profile, &waker, sample);
}

static int64_t value_of(uint64_t count)
{
	return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

/* The slots follow later; the sum of their values is known now. */
static int keep_sum(struct wait_samples *samples, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum,
		    const struct profile_sample *sample)
{
	struct kept_sum kept = { .key = *key, .histogram = samples->whole };
	struct profile_histogram whole = samples->whole;

	/* so that the rounding error of all together is less than one */
	whole.histogram.sum = (samples->whole_ns + sum->whole_ns) / NS_PER_US - samples->whole_ns / NS_PER_US;
	samples->whole_ns += sum->whole_ns;
	kept.histogram.user_stack = sample->user_stack;
	kept.histogram.kernel_stack = sample->kernel_stack;
	kept.histogram.comm = sample->comm;
	kept.histogram.tgid = sample->tgid;
	kept.histogram.tid = sample->tid;
	if (interned_add(&samples->sums, &kept) == INTERNED_NONE)
		return -ENOMEM;
	kept.histogram.histogram.sum = (sum->whole_ns + NS_PER_US / 2) / NS_PER_US;
	return profile_histogram(samples->profile, &whole) == PROFILE_NONE ||
		       profile_histogram(samples->profile, &kept.histogram) == PROFILE_NONE
		   ? -ENOMEM
		   : 0;
}

int wait_samples_slot(struct wait_samples *samples, const struct wait_slot_entry *entry)
{
	const struct sonde_wait_slot *slot = &entry->slot;
	uint32_t kept = interned_find(&samples->sums, &slot->key);
	struct profile_histogram whole = samples->whole, of_stack;
	uint64_t number = slot->slot < HISTOGRAM_SLOTS ? slot->slot : HISTOGRAM_SLOTS - 1;

	whole.histogram.slots[number] = entry->nr_waits;
	if (profile_histogram(samples->profile, &whole) == PROFILE_NONE)
		return -ENOMEM;
	if (kept == INTERNED_NONE)
		return 0;
	of_stack = ((const struct kept_sum *)interned_at(&samples->sums, kept))->histogram;
	of_stack.histogram.slots[number] = entry->nr_waits;
	return profile_histogram(samples->profile, &of_stack) == PROFILE_NONE ? -ENOMEM : 0;
}

int wait_samples_sum(struct wait_samples *samples, struct stack_builder *builder, const struct wait_entry *entry)
{
	const struct sonde_wait_key *key = &entry->key;
	const struct sonde_wait_sum *sum = &entry->sum;
	struct profile_sample sample = {
		.tgid = key->tgid,
		.tid = key->tid,
		.cpu = PROFILE_NONE,
		.comm = comm_of(samples, key),
		.values = { [WAIT_VALUE_WAITS] = value_of(sum->nr_waits),
			    [WAIT_VALUE_BLOCKED] = value_of(sum->off_ns),
			    [WAIT_VALUE_SHORTEST] = value_of(sum->min_ns),
			    [WAIT_VALUE_LONGEST] = value_of(sum->max_ns) },
	};
	enum wait_kind kind;
	int err = sample.comm == PROFILE_NONE
		      ? -ENOMEM
		      : wait_stack_make(&samples->kinds, builder, samples->profile, key, entry->user_stack, sum->nr_waits, &sample, &kind);

	if (err)
		return err;
	if (!samples->options.kernel_stacks)
		sample.kernel_stack = PROFILE_NONE;
	err = wait_stack_mark(samples->profile, kind, &sample);
	if (!err && samples->options.labels)
		err = sample_labels_add_known(samples->profile, entry->labels, sum->nr_waits, &sample);
	if (!err && samples->options.wake && key->waker)
		err = join_waker(samples, builder, key->waker, sum->nr_waits, &sample);
	if (!err && samples->options.histograms)
		err = keep_sum(samples, key, sum, &sample);
	return err ? err : profile_add(samples->profile, &sample);
}
