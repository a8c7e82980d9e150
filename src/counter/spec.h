/* SPDX-License-Identifier: Apache-2.0 */
/* spec: an event that is to be counted: what the kernel is to be asked for, and what is known of it besides. Plain values. */
#pragma once
#include <stdint.h>

#include <sonde/counter.h>

#include "base/cpus.h"
#include "base/diag.h"
#include "counter/pmu.h"

#define SPEC_MAX_EVENTS 1024u

struct spec {
	struct sonde_event event;
	struct pmu pmu;         /* nr_types: 1 but for several units; its mask says where it can be counted */
	bool is_sum; /* of all kinds of cores: event.type is what all processors have in common, and pmu.types are the PMUs of the kinds of
			cores that count it */
	char json[32], unit[24];
	double unit_scale;
	int err;                /* why this machine has it not: a negative errno, or 0 */
	struct diag diag;
};

struct spec_list {
	struct spec *specs;
	uint32_t nr, max;
	uint32_t last_group;
};

void spec_done(struct spec *spec);
/* One event as sonde_event_parse has it; `modifiers` are those of its group, or "". 0, also when this machine has it not (spec->err);
 * -EINVAL: it makes no sense; -ENOMEM. */
MUST_CHECK int spec_parse(const char *text, const char *modifiers, struct diag *diag, struct spec *ret_spec);
/* By what a caller filled in; its PMU's mask is looked up. The same results. */
MUST_CHECK int spec_of(const struct sonde_event *event, struct diag *diag, struct spec *ret_spec);

/* Where the cores are of several kinds, events that all processors have are counted on each of them (Linux 5.13): this says so in those
 * specs. 0; -ENOMEM. */
MUST_CHECK int spec_sum_kinds(struct spec *specs, uint32_t nr);

void spec_list_done(struct spec_list *list);
/* All events that the options ask for, in their order. -EINVAL, -E2BIG (as of sized.h; too many), -ENODATA: none; -ENOMEM. */
MUST_CHECK int spec_list_fill(struct spec_list *list, const struct sonde_counter_options *options, struct diag *diag);
