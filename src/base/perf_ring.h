/* SPDX-License-Identifier: Apache-2.0 */
/* perf_ring: maps and reads the ring in which the kernel writes the records of a perf event (perf_event_open(2)). One reader. */
#pragma once
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct perf_ring {
	struct perf_event_mmap_page *page; /* the records follow it; NULL: not mapped */
	size_t bytes;                      /* of records */
};

/* `bytes`: a power of two of pages. 0 or a negative errno. */
MUST_CHECK int perf_ring_map(int fd, size_t bytes, struct perf_ring *ret_ring);
void perf_ring_unmap(struct perf_ring *ring);
bool perf_ring_has_data(const struct perf_ring *ring);

/* One pass over the records that are there when it begins. */
struct perf_ring_reading {
	const struct perf_ring *ring;
	uint64_t head, tail;
};

struct perf_ring_reading perf_ring_begin(const struct perf_ring *ring); /* if it is not mapped, there are no records */
bool perf_ring_next(const struct perf_ring_reading *reading, struct perf_event_header *ret_header); /* false: no more records */
/* Copies up to `size` bytes of the record, header first, and moves to the next record. */
void perf_ring_take(struct perf_ring_reading *reading, const struct perf_event_header *header, void *to, size_t size);
void perf_ring_end(const struct perf_ring_reading *reading); /* frees the room of the records taken */
