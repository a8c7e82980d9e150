/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_resource: the samples of a process by resource. Samples with the same labels of their process (model/process_label.h) are one
 * resource, whose attributes these labels are. A process that executes another program has several. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/u64_map.h"
#include "frames/tracks.h"
#include "model/profile.h"

struct otlp_piece {
	uint32_t resource; /* a number of labels in the profile: the first with these labels of a process */
	uint32_t position, sample;
};

struct otlp_resources {
	const struct profile *profile; /* borrowed */
	struct u64_map of_labels;      /* number of labels in the profile: its resource */
	struct u64_map by_hash;        /* resources */
	struct otlp_piece *pieces;     /* of the last process, sorted by resource; samples of one keep their order */
	uint32_t nr, max;
};

/* Is it an attribute of the resource, and not of the sample? */
bool otlp_is_of_resource(const struct profile *profile, const struct profile_label *label);
/* Fills `pieces` with the samples of these tracks. 0 or -ENOMEM. */
MUST_CHECK int otlp_resources_find(struct otlp_resources *resources, const struct tracks *tracks, const struct track *first,
				   const struct track *end);
void otlp_resources_done(struct otlp_resources *resources);
