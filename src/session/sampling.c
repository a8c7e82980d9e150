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

static int set_rate(struct measurement *measurement, uint64_t freq_hz)
{
	return ticks_set_rate(&((struct sampling *)measurement)->ticks, measurement->parts.engine->sampler, freq_hz);
}

static void account(const struct measurement *measurement, struct account *account)
{
	ticks_account(&((const struct sampling *)measurement)->ticks, measurement->parts.engine->sampler, account);
}

const struct measurement_type sampling_measurement = {
	.bytes = sizeof(struct sampling),
	.init = init,
	.load = load,
	.set_rate = set_rate,
	.profile = measurement_add_samples,
	.has_labels = true,
	.nr = measurement_nr_samples,
	.account = account,
};
