/* SPDX-License-Identifier: Apache-2.0 */
/* wait_samples: turns the sums of the scheduler's programs into samples of a profile: how often a thread waited with a stack, how long in
 * all, the shortest and the longest wait. One thread. */
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
	bool kernel_stacks; /* the report has them; else they only decide the kind of wait */
	bool wake;
	bool histograms;
	bool labels;       /* of processes */
};

#define WAIT_SAMPLES_HISTOGRAM "blocked time"

struct wait_samples;
/* Sets the value types of the profile, which is borrowed until wait_samples_free. NULL: no memory. */
struct wait_samples *wait_samples_new(const struct wait_samples_options *options, struct profile *profile);
void wait_samples_free(struct wait_samples *samples); /* takes NULL */
static inline void wait_samples_freep(struct wait_samples **samples)
{
	wait_samples_free(*samples);
}
/* Call when all stacks and wakers have arrived: adds the sum to the profile. 0 or -ENOMEM. */
MUST_CHECK int wait_samples_sum(struct wait_samples *samples, struct stack_builder *builder, const struct wait_entry *entry);
/* Call after all sums: adds the number of waits of a length. If the sum is not known, they count only in the whole histogram. 0 or
 * -ENOMEM. */
MUST_CHECK int wait_samples_slot(struct wait_samples *samples, const struct wait_slot_entry *entry);
