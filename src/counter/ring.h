/* SPDX-License-Identifier: Apache-2.0 */
/* ring: memory shared with the kernel, in which the kernel records overflows. One ring per CPU, or per thread where threads are counted on
 * any CPU. One thread at a time. */
#pragma once
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include <sonde/counter.h>

#include "base/diag.h"
#include "base/perf_ring.h"
#include "base/u64_map.h"
#include "counter/targets.h"

struct ring {
	struct perf_ring records;
	struct target target;
	int fd;            /* of the counter that it was created for; borrowed */
	bool is_over;      /* its threads have ended */
};

struct rings {
	struct ring *list;
	uint32_t nr, max;
	size_t bytes;        /* of data in each ring; 0: there are no rings */
	struct u64_map ids;  /* the kernel's id of a counter -> its number in the set */
};

void rings_done(struct rings *rings);
/* Sets the attributes of a counter whose overflows are recorded. */
void rings_attr(struct perf_event_attr *attr, uint32_t max_callers);
/* Records a counter's overflows in the ring of the target. Creates the ring if there is none. */
MUST_CHECK int rings_add(struct rings *rings, uint32_t counter, int fd, struct target target, struct diag *diag);
/* Removes all rings after the first `nr`, before their counter is closed. */
void rings_cut(struct rings *rings, uint32_t nr);
/* Passes all recorded overflows to the callback. 0; -ENOMEM. */
MUST_CHECK int rings_read(struct rings *rings, void (*callback)(void *arg, const struct sonde_overflow *overflow), void *arg,
			  uint64_t *nr_lost);
bool rings_have_data(const struct rings *rings);
