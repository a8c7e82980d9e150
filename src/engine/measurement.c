// SPDX-License-Identifier: Apache-2.0
#include "engine/measurement.h"

#include <errno.h>
#include <stdlib.h>

#include "stacks/sample_labels.h"

int measurement_new(const struct measurement_type *type, const struct measurement_parts *parts, struct sampler_options *sampling,
		    struct diag *diag, struct measurement **ret_measurement)
{
	struct measurement *measurement = calloc(1, type->bytes);

	if (!measurement)
		return -ENOMEM;
	measurement->type = type;
	measurement->parts = *parts;
	measurement->needs_engine = measurement->has_stacks = true;
	*ret_measurement = measurement;
	return type->init(measurement, sampling, diag);
}

void measurement_free(struct measurement *measurement)
{
	if (!measurement)
		return;
	if (measurement->type->done)
		measurement->type->done(measurement);
	free(measurement);
}

static int add_all(struct measurement *measurement, struct window *window, struct resolver *resolver, struct profile *profile)
{
	struct stack_builder *builder;
	int err = resolver_read_files(resolver);

	if (err)
		return err;
	builder = stack_builder_new(window->store, resolver, profile);
	err = builder ? measurement->type->profile(measurement, window, builder, profile) : -ENOMEM;
	stack_builder_free(builder);
	return err;
}

int measurement_profile(struct measurement *measurement, struct window *window, const struct naming *naming, struct profile **ret_profile,
			uint32_t *ret_nr_skipped)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	struct resolver *resolver =
	    profile ? resolver_new(stack_table_locations(window->store->stacks), window->files, naming, profile) : NULL;
	int err = resolver ? 0 : -ENOMEM;

	if (!err) {
		*profile_account(profile) = window->account;
		err = add_all(measurement, window, resolver, profile);
		*ret_nr_skipped = resolver_nr_skipped(resolver);
		if (*ret_nr_skipped)
			account_note(profile_account(profile),
				     "names came too late: %u files were not read; their frames are addresses", *ret_nr_skipped);
	}
	resolver_free(resolver);
	if (!err)
		*ret_profile = MOVE(profile);
	return err;
}

static int add_sample(const struct window *window, const struct sample *from, struct stack_builder *builder, struct profile *profile)
{
	struct profile_sample sample = {
		.tgid = from->key.ids.tgid,
		.tid = from->key.tid,
		.cpu = from->key.cpu,
		.comm = profile_string(profile, from->key.comm),
		.time_ns = from->key.time_ns ? from->key.time_ns + window->unix_offset_ns : 0,
		.values = { from->count > INT64_MAX ? INT64_MAX : (int64_t)from->count },
	};
	int err = sample.comm == PROFILE_NONE ? -ENOMEM : stack_builder_sample(builder, &from->key.ids, from->count, &sample);

	if (!err && window->has_process_labels)
		err = sample_labels_add_known(profile, from->key.labels, from->count, &sample);
	return err ? err : profile_add(profile, &sample);
}

int measurement_add_samples(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < samples_nr(window->samples); i++)
		err = add_sample(window, samples_at(window->samples, i), builder, profile);
	return err;
}

uint64_t measurement_nr_samples(const struct measurement *measurement)
{
	return stack_recorder_nr_samples(measurement->parts.engine->recorder);
}
