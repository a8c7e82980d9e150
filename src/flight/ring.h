/* SPDX-License-Identifier: Apache-2.0 */
/* ring: the last windows of the flight recorder in memory, compressed, bounded by time and by bytes. The caller locks. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct ring_window {
	uint64_t start_ns, start_unix_ns, duration_ns; /* start_ns: clock_ns() */
	uint64_t nr_samples;
	void *packed;          /* packed_body.h */
	size_t size;
};

/* All zeros: empty, and without room. */
struct ring {
	struct ring_window *list; /* oldest first */
	uint32_t nr, max;
	uint64_t bytes, duration_ns; /* of all */
	uint64_t max_bytes, span_ns; /* the bounds; may be changed at any time */
};

void ring_window_done(struct ring_window *window);
void ring_done(struct ring *ring);
/* Takes over the window, and removes the oldest that are not needed for the span, or for which there is no room. Returns how many there was
 * no room for: the new one itself may be among them. */
MUST_CHECK uint32_t ring_add(struct ring *ring, const struct ring_window *window);
/* Takes the oldest out. False: there is none. */
bool ring_take(struct ring *ring, struct ring_window *ret_window);
