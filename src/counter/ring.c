// SPDX-License-Identifier: Apache-2.0
#include "counter/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "base/array.h"
#include "base/reader.h"

#define SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
#define MAX_RECORD_BYTES 65536 /* their size has 16 bits */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void rings_cut(struct rings *rings, uint32_t nr)
{
	while (rings->nr > nr)
		munmap(rings->list[--rings->nr].page, page_bytes() + rings->bytes);
}

void rings_done(struct rings *rings)
{
	rings_cut(rings, 0);
	free(rings->list);
	u64_map_done(&rings->ids);
	*rings = (struct rings){ 0 };
}

void rings_attr(struct perf_event_attr *attr, uint32_t max_callers)
{
	attr->sample_type = SAMPLE_TYPE | (max_callers ? PERF_SAMPLE_CALLCHAIN : 0);
	attr->sample_max_stack = (uint16_t)max_callers;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->wakeup_events = 1;
}

static struct ring *find(const struct rings *rings, struct place place)
{
	for (uint32_t i = 0; i < rings->nr; i++) {
		struct place other = rings->list[i].place;

		if (other.cpu == place.cpu && (place.cpu >= 0 || other.pid == place.pid))
			return &rings->list[i];
	}
	return NULL;
}

static int make(struct rings *rings, int fd, struct place place, struct diag *diag)
{
	void *page;

	if (!array_grow(&rings->list, rings->nr, &rings->max, sizeof(*rings->list), 8, PLACES_MAX))
		return -ENOMEM;
	page = mmap(NULL, page_bytes() + rings->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return diag_errno(diag, errno, "no memory for overflows: %s%s", strerror(errno),
				  errno == EPERM ? "; kernel.perf_event_mlock_kb limits it for users" : errno == EINVAL ? "; it must be a power of two of pages" : "");
	rings->list[rings->nr++] = (struct ring){ .page = page, .place = place, .fd = fd };
	return 0;
}

int rings_add(struct rings *rings, uint32_t counter, int fd, struct place place, struct diag *diag)
{
	const struct ring *ring = find(rings, place);
	uint64_t id;
	int err = 0;

	if (!ring)
		err = make(rings, fd, place, diag);
	else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd))
		err = diag_errno(diag, errno, "its overflows cannot be recorded with the others': %s", strerror(errno));
	if (err)
		return err;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &id))
		return diag_errno(diag, errno, "the kernel does not tell its number: %s", strerror(errno));
	return u64_map_add(&rings->ids, id, counter);
}

/* The kernel writes the head while we read. */
static uint64_t head_of(const struct ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

bool rings_have_data(const struct rings *rings)
{
	for (uint32_t i = 0; i < rings->nr; i++) {
		if (head_of(&rings->list[i]) != rings->list[i].page->data_tail)
			return true;
	}
	return false;
}

static void copy_out(const struct rings *rings, const struct ring *ring, uint64_t from, void *to, size_t size)
{
	const uint8_t *data = (const uint8_t *)ring->page + page_bytes();
	size_t off = from & (rings->bytes - 1), first = rings->bytes - off < size ? rings->bytes - off : size;

	memcpy(to, data + off, first);
	memcpy((uint8_t *)to + first, data, size - first);
}

/* A sample as SAMPLE_TYPE has it. False: of a counter that is not ours, or cut. */
static bool parse_sample(const struct rings *rings, const uint8_t *record, size_t size, struct sonde_overflow *overflow)
{
	struct reader r = reader_of(record, size);
	const uint32_t *counter;
	uint64_t nr;

	reader_skip(&r, sizeof(struct perf_event_header));
	counter = u64_map_find(&rings->ids, reader_u64(&r));
	overflow->pc = reader_u64(&r);
	overflow->tgid = reader_u32(&r);
	overflow->tid = reader_u32(&r);
	overflow->time_ns = reader_u64(&r);
	overflow->cpu = reader_u32(&r);
	reader_skip(&r, 4);
	overflow->period = reader_u64(&r);
	if (reader_left(&r)) {
		nr = reader_u64(&r);
		if (nr > reader_left(&r) / sizeof(uint64_t))
			return false;
		overflow->callers = (const uint64_t *)(const void *)r.pos; /* all records, and what is in them, lie at multiples of 8 */
		overflow->nr_callers = (uint32_t)nr;
	}
	if (!counter || r.bad)
		return false;
	overflow->event = *counter;
	return true;
}

static uint64_t lost_of(const uint8_t *record, size_t size)
{
	struct reader r = reader_of(record, size);

	reader_skip(&r, sizeof(struct perf_event_header) + 8); /* and the counter */
	return reader_u64(&r);
}

static void read_ring(struct rings *rings, struct ring *ring, uint8_t *record, void (*callback)(void *arg, const struct sonde_overflow *overflow), void *arg,
		      uint64_t *nr_lost)
{
	uint64_t head = head_of(ring), tail = ring->page->data_tail;
	struct perf_event_header header;

	while (head - tail >= sizeof(header)) {
		struct sonde_overflow overflow = { 0 };

		copy_out(rings, ring, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break; /* never: the kernel writes whole records */
		copy_out(rings, ring, tail, record, header.size);
		tail += header.size;
		if (header.type == PERF_RECORD_LOST)
			*nr_lost += lost_of(record, header.size);
		else if (header.type == PERF_RECORD_SAMPLE && parse_sample(rings, record, header.size, &overflow))
			callback(arg, &overflow);
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

int rings_read(struct rings *rings, void (*callback)(void *arg, const struct sonde_overflow *overflow), void *arg, uint64_t *nr_lost)
{
	CLEANUP(freep) uint8_t *record = malloc(MAX_RECORD_BYTES);

	if (!record)
		return -ENOMEM;
	for (uint32_t i = 0; i < rings->nr; i++)
		read_ring(rings, &rings->list[i], record, callback, arg, nr_lost);
	return 0;
}
