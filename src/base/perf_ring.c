// SPDX-License-Identifier: Apache-2.0
#include "base/perf_ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int perf_ring_map(int fd, size_t bytes, struct perf_ring *ret_ring)
{
	void *page = mmap(NULL, page_bytes() + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	*ret_ring = (struct perf_ring){ .page = page, .bytes = bytes };
	return 0;
}

void perf_ring_unmap(struct perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, page_bytes() + ring->bytes);
	*ring = (struct perf_ring){ 0 };
}

/* The kernel may advance it while we read. */
static uint64_t head_of(const struct perf_ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

bool perf_ring_has_data(const struct perf_ring *ring)
{
	return ring->page && head_of(ring) != ring->page->data_tail;
}

struct perf_ring_reading perf_ring_begin(const struct perf_ring *ring)
{
	if (!ring->page)
		return (struct perf_ring_reading){ .ring = ring };
	return (struct perf_ring_reading){ .ring = ring, .head = head_of(ring), .tail = ring->page->data_tail };
}

static void copy_out(const struct perf_ring *ring, uint64_t from, void *to, size_t size)
{
	const uint8_t *data = (const uint8_t *)ring->page + page_bytes();
	size_t off = from & (ring->bytes - 1), first = ring->bytes - off < size ? ring->bytes - off : size;

	memcpy(to, data + off, first);
	memcpy((uint8_t *)to + first, data, size - first);
}

/* The kernel writes whole records. */
bool perf_ring_next(const struct perf_ring_reading *reading, struct perf_event_header *ret_header)
{
	if (reading->head - reading->tail < sizeof(*ret_header))
		return false;
	copy_out(reading->ring, reading->tail, ret_header, sizeof(*ret_header));
	return ret_header->size >= sizeof(*ret_header) && ret_header->size <= reading->head - reading->tail;
}

void perf_ring_take(struct perf_ring_reading *reading, const struct perf_event_header *header, void *to, size_t size)
{
	copy_out(reading->ring, reading->tail, to, header->size < size ? header->size : size);
	reading->tail += header->size;
}

void perf_ring_end(const struct perf_ring_reading *reading)
{
	if (reading->ring->page)
		__atomic_store_n(&reading->ring->page->data_tail, reading->tail, __ATOMIC_RELEASE);
}
