/* SPDX-License-Identifier: Apache-2.0 */
/* sample_labels: adds the labels of a sample's process to those that its program gave it. Any thread. */
#pragma once
#include "base/cleanup.h"
#include "model/profile.h"
#include "process/process_labels.h"

/* Of two labels with one key, the process's stays. 0 or -ENOMEM. */
MUST_CHECK int sample_labels_add(struct profile *profile, const struct process_labels *process, struct profile_sample *sample);
/* The same if they are known; else counts so many samples of the process as without them. */
MUST_CHECK int sample_labels_add_known(struct profile *profile, const struct process_labels *process, uint64_t count,
				       struct profile_sample *sample);
