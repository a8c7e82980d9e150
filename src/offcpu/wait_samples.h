/* SPDX-License-Identifier: Apache-2.0 */
/* wait_samples: makes samples of a profile of the sums that the scheduler's programs kept: how often a thread waited with a stack, how long
 * in all, the shortest and the longest. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"
#include "model/profile.h"
#include "stacks/stack_builder.h"
#include "stacks/wait_sums.h"

/* The values of a sample of waits. */
enum wait_value { WAIT_VALUE_WAITS, WAIT_VALUE_BLOCKED, WAIT_VALUE_SHORTEST, WAIT_VALUE_LONGEST, WAIT_VALUE_COUNT };

struct wait_samples_options {
	bool show_count;   /* formats with room for one value write the number of waits, not their time */
	bool kernel_stacks; /* the report has them: else they only tell the kind of wait */
	bool wake;
	bool histograms;
};

#define WAIT_SAMPLES_HISTOGRAM "blocked time"

struct wait_samples;
/* Sets the profile's value types, which is borrowed for the book's life. NULL: no memory. */
struct wait_samples *wait_samples_new(const struct wait_samples_options *options, struct profile *profile);
void wait_samples_free(struct wait_samples *samples); /* takes NULL */
static inline void wait_samples_freep(struct wait_samples **samples)
{
	wait_samples_free(*samples);
}
/* After all stacks and wakers have come: adds the sum to the profile. 0 or -ENOMEM. */
MUST_CHECK int wait_samples_sum(struct wait_samples *samples, struct stack_builder *builder, const struct wait_entry *entry);
/* After all sums: so many of its waits were so long. One whose sum is not known counts in the whole histogram alone. 0 or -ENOMEM. */
MUST_CHECK int wait_samples_slot(struct wait_samples *samples, const struct wait_slot_entry *entry);
