// SPDX-License-Identifier: Apache-2.0
/* sampling: the measurement of what runs on the CPUs. It consists of the samples alone. */
#include "session/sampling.h"

#include <errno.h>

#include "engine/ticks.h"

struct sampling {
	struct measurement base;
	struct ticks ticks;
};

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	return ticks_init(&((struct sampling *)measurement)->ticks, &measurement->parts, sampling, diag);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	return ticks_open(&((struct sampling *)measurement)->ticks, &measurement->parts, diag);
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

	return err ? err : profile_add(profile, &sample);
}

static int add_samples(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < samples_nr(window->samples); i++)
		err = add_sample(window, samples_at(window->samples, i), builder, profile);
	return err;
}

static uint64_t nr(const struct measurement *measurement)
{
	return stack_recorder_nr_samples(measurement->parts.engine->recorder);
}

static void account(const struct measurement *measurement, struct account *account)
{
	ticks_account(&((const struct sampling *)measurement)->ticks, measurement->parts.engine->sampler, account);
}

const struct measurement_type sampling_measurement = {
	.bytes = sizeof(struct sampling),
	.init = init,
	.load = load,
	.profile = add_samples,
	.nr = nr,
	.account = account,
};
