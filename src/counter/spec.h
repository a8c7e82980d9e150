/* SPDX-License-Identifier: Apache-2.0 */
/* spec: an event to count: what to request from the kernel, and what else is known about it. Plain values. */
#pragma once
#include <stdint.h>

#include <sonde/counter.h>

#include "base/cpus.h"
#include "base/diag.h"
#include "counter/pmu.h"

#define SPEC_MAX_EVENTS 1024u

struct spec {
	struct sonde_event event;
	struct pmu pmu;         /* nr_types: 1, except for several units; its mask says where it counts */
	bool is_sum; /* of all kinds of cores: event.type is common to all processors; pmu.types are the PMUs of the kinds that count it */
	char json[32], unit[24];
	double unit_scale;
	int err;                /* why this machine does not have it: a negative errno, or 0 */
	struct diag diag;
};

struct spec_list {
	struct spec *specs;
	uint32_t nr, max;
	uint32_t last_group;
};

void spec_done(struct spec *spec);
/* Parses one event, as sonde_event_parse does. `modifiers` are those of its group, or "". 0, also when this machine does not have it
 * (spec->err); -EINVAL: not valid; -ENOMEM. */
MUST_CHECK int spec_parse(const char *text, const char *modifiers, struct diag *diag, struct spec *ret_spec);
/* The same from a caller's struct; looks up the mask of its PMU. The same results. */
MUST_CHECK int spec_of(const struct sonde_event *event, struct diag *diag, struct spec *ret_spec);

/* Marks the specs that are summed over several kinds of cores: events that all processors have are counted on each kind (Linux 5.13). 0;
 * -ENOMEM. */
MUST_CHECK int spec_sum_kinds(struct spec *specs, uint32_t nr);

void spec_list_done(struct spec_list *list);
/* Collects all events that the options request, in their order. -EINVAL; -E2BIG: too many, or a struct of unknown size (sized.h);
 * -ENODATA: none; -ENOMEM. */
MUST_CHECK int spec_list_fill(struct spec_list *list, const struct sonde_counter_options *options, struct diag *diag);
