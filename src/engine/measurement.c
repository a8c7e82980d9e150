// SPDX-License-Identifier: Apache-2.0
#include "engine/measurement.h"

#include <errno.h>
#include <stdlib.h>

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
