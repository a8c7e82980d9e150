/* SPDX-License-Identifier: Apache-2.0 */
/* ticks: the event that samples running threads on the CPUs, for the measurements that need one. One thread. */
#pragma once
#include <sonde/sonde.h>

#include "base/diag.h"
#include "base/event.h"
#include "collect/sampler.h"
#include "engine/measurement.h"

struct ticks {
	struct sonde_sampling_options options; /* with the defaults filled in; its texts and lists are not kept */
	struct event event;
	uint32_t cpu;
	struct sampler_options opening;        /* borrows from this struct */
};

/* Checks the options and puts the event's settings into `sampling`. 0 or -EINVAL. */
MUST_CHECK int ticks_init(struct ticks *ticks, const struct measurement_parts *parts, struct sampler_options *sampling, struct diag *diag);
/* Opens the event, or cpu-clock instead if this machine does not have it. As sampler_open_events. */
MUST_CHECK int ticks_open(struct ticks *ticks, const struct measurement_parts *parts, struct diag *diag);
/* Of a clock that has a rate: from now on it is this one. 0 or a negative errno; -EINVAL: it has none. */
MUST_CHECK int ticks_set_rate(struct ticks *ticks, struct sampler *sampler, uint64_t freq_hz);
void ticks_account(const struct ticks *ticks, const struct sampler *sampler, struct account *account);
