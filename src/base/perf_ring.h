/* SPDX-License-Identifier: Apache-2.0 */
/* perf_ring: the memory that the kernel writes records of a perf event into, and the reading of them (perf_event_open(2)). One reader. */
#pragma once
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct perf_ring {
	struct perf_event_mmap_page *page; /* the records follow; NULL: it is not mapped */
	size_t bytes;                      /* of records */
};

/* `bytes`: a power of two of pages. 0 or a negative errno. */
MUST_CHECK int perf_ring_map(int fd, size_t bytes, struct perf_ring *ret_ring);
void perf_ring_unmap(struct perf_ring *ring);
bool perf_ring_has_data(const struct perf_ring *ring);

/* One reading, of what is there when it begins. */
struct perf_ring_reading {
	const struct perf_ring *ring;
	uint64_t head, tail;
};

struct perf_ring_reading perf_ring_begin(const struct perf_ring *ring); /* of one that is not mapped: there is nothing */
bool perf_ring_next(const struct perf_ring_reading *reading, struct perf_event_header *ret_header); /* false: that was all */
void perf_ring_take(struct perf_ring_reading *reading, const struct perf_event_header *header, void *to,
		    size_t size);			     /* so many bytes of the record, header first, and on to the next one */
void perf_ring_end(const struct perf_ring_reading *reading); /* gives the room back of all that were taken */
