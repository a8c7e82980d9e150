// SPDX-License-Identifier: Apache-2.0
#include "counter/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/array.h"
#include "base/reader.h"

#define SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
#define MAX_RECORD_BYTES 65536 /* a record's size has 16 bits */

void rings_cut(struct rings *rings, uint32_t nr)
{
	while (rings->nr > nr)
		perf_ring_unmap(&rings->list[--rings->nr].records);
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

static struct ring *find(const struct rings *rings, struct target target)
{
	for (uint32_t i = 0; i < rings->nr; i++) {
		struct target other = rings->list[i].target;

		if (other.cpu == target.cpu && (target.cpu >= 0 || other.pid == target.pid))
			return &rings->list[i];
	}
	return NULL;
}

static int make(struct rings *rings, int fd, struct target target, struct diag *diag)
{
	struct perf_ring records;
	int err;

	if (!array_grow(&rings->list, rings->nr, &rings->max, sizeof(*rings->list), 8, TARGETS_MAX))
		return -ENOMEM;
	err = perf_ring_map(fd, rings->bytes, &records);
	if (err)
		return diag_errno(diag, -err, "no memory for overflows: %s%s", strerror(-err),
				  err == -EPERM	   ? "; kernel.perf_event_mlock_kb limits it for users"
				  : err == -EINVAL ? "; it must be a power of two of pages"
						   : "");
	rings->list[rings->nr++] = (struct ring){ .records = records, .target = target, .fd = fd };
	return 0;
}

int rings_add(struct rings *rings, uint32_t counter, int fd, struct target target, struct diag *diag)
{
	const struct ring *ring = find(rings, target);
	uint64_t id;
	int err = 0;

	if (!ring)
		err = make(rings, fd, target, diag);
	else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd))
		err = diag_errno(diag, errno, "its overflows cannot be recorded with the others': %s", strerror(errno));
	if (err)
		return err;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &id))
		return diag_errno(diag, errno, "the kernel does not tell its number: %s", strerror(errno));
	return u64_map_add(&rings->ids, id, counter);
}

bool rings_have_data(const struct rings *rings)
{
	for (uint32_t i = 0; i < rings->nr; i++) {
		if (perf_ring_has_data(&rings->list[i].records))
			return true;
	}
	return false;
}

/* Parses a sample with the fields of SAMPLE_TYPE. False: of a counter not in the set, or truncated. */
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
		overflow->callers = (const uint64_t *)(const void *)r.pos; /* aligned: records and all their fields are at multiples of 8 */
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

	reader_skip(&r, sizeof(struct perf_event_header) + 8); /* and the counter's id */
	return reader_u64(&r);
}

static void read_ring(struct rings *rings, struct ring *ring, uint8_t *record,
		      void (*callback)(void *arg, const struct sonde_overflow *overflow), void *arg, uint64_t *nr_lost)
{
	struct perf_ring_reading reading = perf_ring_begin(&ring->records);
	struct perf_event_header header;

	while (perf_ring_next(&reading, &header)) {
		struct sonde_overflow overflow = { 0 };

		perf_ring_take(&reading, &header, record, header.size);
		if (header.type == PERF_RECORD_LOST)
			*nr_lost += lost_of(record, header.size);
		else if (header.type == PERF_RECORD_SAMPLE && parse_sample(rings, record, header.size, &overflow))
			callback(arg, &overflow);
	}
	perf_ring_end(&reading);
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
