// SPDX-License-Identifier: Apache-2.0
#include "collect/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/cpus.h"
#include "base/perf_ring.h"
#include "base/reader.h"

#define RING_BYTES (128u << 10)          /* per CPU; a power of two */
#define BATCH_BYTES_MAX (64u << 20)      /* all rings of a big machine, read at once */
#define MAX_ROUNDS 8                     /* in one reading: records that arrive faster than they are read wait for the next */

struct cpu_ring {
	uint32_t cpu;
	int fd;
	struct perf_ring ring;
};

struct sideband {
	struct cpu_ring *rings;
	uint32_t nr_rings, max_rings;
	int epoll_fd;
	struct buffer batch;    /* records one after the other: of this reading, and the rest of the last one */
	struct buffer order;    /* struct record_key, one per record */
};

struct record_key {
	uint64_t time_ns;
	uint64_t off;           /* in the batch; also the order of records with equal times */
};

/* The sample id behind each record: TID, TIME, CPU, as requested in the attributes. */
#define SAMPLE_ID_BYTES 24
#define SAMPLE_ID_TIME_OFF 8

static int open_ring(struct sideband *sideband, uint32_t cpu, struct diag *diag)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.watermark = 1,
		.wakeup_watermark = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	struct epoll_event interest = { .events = EPOLLIN };
	struct cpu_ring *ring;
	int err;

	if (!array_grow(&sideband->rings, sideband->nr_rings, &sideband->max_rings, sizeof(*ring), 8, CPUS_MAX))
		return -ENOMEM;
	ring = &sideband->rings[sideband->nr_rings];
	ring->cpu = cpu;
	ring->fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring->fd < 0 && errno == ENODEV)
		return 0; /* went offline since the list was read */
	if (ring->fd < 0)
		return diag_errno(diag, errno, "cannot open the side-band of process events on CPU %u: %s", cpu, strerror(errno));
	err = perf_ring_map(ring->fd, RING_BYTES, &ring->ring);
	if (!err && epoll_ctl(sideband->epoll_fd, EPOLL_CTL_ADD, ring->fd, &interest)) {
		err = -errno;
		perf_ring_unmap(&ring->ring);
	}
	if (err) {
		close(ring->fd);
		return diag_errno(diag, -err, "cannot map the side-band of process events: %s", strerror(-err));
	}
	sideband->nr_rings++;
	return 0;
}

static int open_new(struct sideband *sideband, const struct cpus *online, struct diag *diag)
{
	uint32_t nr_before = sideband->nr_rings;
	int err = 0;

	for (uint32_t i = 0; !err && i < online->nr; i++) {
		bool is_open = false;

		for (uint32_t k = 0; k < nr_before; k++)
			is_open |= sideband->rings[k].cpu == online->ids[i];
		if (!is_open)
			err = open_ring(sideband, online->ids[i], diag);
	}
	return err;
}

static void close_ring(struct cpu_ring *ring)
{
	perf_ring_unmap(&ring->ring);
	close(ring->fd);
}

static void sideband_freep(struct sideband **sideband)
{
	sideband_free(*sideband);
}

int sideband_new(struct diag *diag, struct sideband **ret_sideband)
{
	CLEANUP(sideband_freep) struct sideband *sideband = calloc(1, sizeof(*sideband));
	CLEANUP(cpus_done) struct cpus cpus = { 0 };
	int err = cpus_read("online", diag, &cpus);

	if (!sideband)
		return -ENOMEM;
	sideband->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	sideband->batch = BUFFER_INIT(BATCH_BYTES_MAX);
	sideband->order = BUFFER_INIT(BATCH_BYTES_MAX);
	if (err)
		return err;
	if (sideband->epoll_fd < 0)
		return -ENOMEM;
	err = open_new(sideband, &cpus, diag);
	if (err)
		return err;
	*ret_sideband = MOVE(sideband);
	return 0;
}

void sideband_free(struct sideband *sideband)
{
	if (!sideband)
		return;
	for (uint32_t i = 0; i < sideband->nr_rings; i++)
		close_ring(&sideband->rings[i]);
	free(sideband->rings);
	buffer_done(&sideband->batch);
	buffer_done(&sideband->order);
	closep(&sideband->epoll_fd);
	free(sideband);
}

int sideband_fd(const struct sideband *sideband)
{
	return sideband->epoll_fd;
}

/* Appends all whole records of a ring to the batch, and frees their room. */
static void drain_ring(struct sideband *sideband, const struct cpu_ring *ring)
{
	struct perf_ring_reading reading = perf_ring_begin(&ring->ring);
	struct perf_event_header header;

	while (perf_ring_next(&reading, &header)) {
		struct record_key key = { .off = sideband->batch.size };
		uint8_t *record = buffer_reserve(&sideband->batch, header.size);

		if (!record)
			break;
		perf_ring_take(&reading, &header, record, header.size);
		if (header.size >= sizeof(header) + SAMPLE_ID_BYTES)
			memcpy(&key.time_ns, record + header.size - SAMPLE_ID_BYTES + SAMPLE_ID_TIME_OFF, sizeof(key.time_ns));
		buffer_append(&sideband->order, &key, sizeof(key));
	}
	perf_ring_end(&reading);
}

/* The kernel does not restore an event when its CPU returns, so the event is opened again. */
int sideband_follow(struct sideband *sideband, const struct cpus *online, struct diag *diag)
{
	uint32_t nr_before;
	int err;

	for (uint32_t i = sideband->nr_rings; i-- > 0;) {
		if (cpus_has(online, sideband->rings[i].cpu))
			continue;
		drain_ring(sideband, &sideband->rings[i]); /* reported with the next reading */
		close_ring(&sideband->rings[i]);
		sideband->rings[i] = sideband->rings[--sideband->nr_rings];
	}
	nr_before = sideband->nr_rings;
	err = open_new(sideband, online, diag);
	return err ? err : (int)(sideband->nr_rings - nr_before);
}

static int compare_keys(const void *a, const void *b)
{
	const struct record_key *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* The parent's tid and the time follow; the time is taken from the sample id. */
static void read_task(struct reader *r, struct sideband_event *event)
{
	event->tgid = reader_u32(r);
	event->parent_tgid = reader_u32(r);
	event->tid = reader_u32(r);
}

static void read_mmap2(struct reader *r, struct sideband_event *event)
{
	uint32_t major;

	event->tgid = reader_u32(r);
	event->tid = reader_u32(r);
	event->start_pc = reader_u64(r);
	event->size_bytes = reader_u64(r);
	event->file_off = reader_u64(r);
	major = reader_u32(r);
	event->device = makedev(major, reader_u32(r));
	event->inode = reader_u64(r);
	reader_skip(r, 16); /* the inode's generation; protection and flags: the kernel sends only executable mappings */
	event->path = reader_text(r);
}

/* Returns false for records that are not reported. */
static bool parse_record(const uint8_t *record, uint64_t time_ns, struct sideband_event *event)
{
	struct perf_event_header header;
	struct reader r;

	memcpy(&header, record, sizeof(header));
	r = reader_of(record + sizeof(header), header.size - sizeof(header));
	*event = (struct sideband_event){ .time_ns = time_ns };
	switch (header.type) {
	case PERF_RECORD_FORK:
		event->type = SIDEBAND_FORK;
		read_task(&r, event);
		break;
	case PERF_RECORD_EXIT:
		event->type = SIDEBAND_EXIT;
		read_task(&r, event);
		break;
	case PERF_RECORD_COMM:
		event->type = SIDEBAND_EXEC;
		event->tgid = reader_u32(&r);
		event->tid = reader_u32(&r);
		if (!(header.misc & PERF_RECORD_MISC_COMM_EXEC))
			return false;
		break;
	case PERF_RECORD_MMAP2:
		event->type = SIDEBAND_MMAP;
		read_mmap2(&r, event);
		break;
	case PERF_RECORD_LOST:
		event->type = SIDEBAND_LOST;
		reader_skip(&r, 8); /* id */
		event->nr_lost = reader_u64(&r);
		break;
	default:
		return false;
	}
	return !r.bad;
}

/* Drops all records before the first-th key. */
static int keep_from(struct sideband *sideband, size_t first)
{
	CLEANUP(buffer_done) struct buffer batch = BUFFER_INIT(BATCH_BYTES_MAX), order = BUFFER_INIT(BATCH_BYTES_MAX);
	const struct record_key *keys = (const struct record_key *)sideband->order.data;
	size_t nr_keys = sideband->order.size / sizeof(*keys);

	for (size_t i = first; i < nr_keys; i++) {
		const char *record = sideband->batch.data + keys[i].off;
		struct record_key key = { .time_ns = keys[i].time_ns, .off = batch.size };
		struct perf_event_header header;

		memcpy(&header, record, sizeof(header));
		buffer_append(&batch, record, header.size);
		buffer_append(&order, &key, sizeof(key));
	}
	if (batch.err || order.err)
		return batch.err ? batch.err : order.err;
	if (first == nr_keys) { /* nearly always: their memory is reused */
		sideband->batch.size = sideband->order.size = 0;
		return 0;
	}
	buffer_done(&sideband->batch);
	buffer_done(&sideband->order);
	sideband->batch = batch;
	sideband->order = order;
	batch = order = (struct buffer){ 0 };
	return 0;
}

/* Reports what happened up to `limit_ns`. *ret_nr_left: number of later records. */
static int tell(struct sideband *sideband, uint64_t limit_ns, sideband_event_fn fn, void *arg, size_t *ret_nr_left)
{
	size_t nr_keys = sideband->order.size / sizeof(struct record_key), i;
	const struct record_key *keys = (const struct record_key *)sideband->order.data;
	struct sideband_event event;
	int err = 0;

	if (nr_keys)
		qsort(sideband->order.data, nr_keys, sizeof(*keys), compare_keys);
	for (i = 0; !err && i < nr_keys && keys[i].time_ns <= limit_ns; i++) {
		if (parse_record((const uint8_t *)sideband->batch.data + keys[i].off, keys[i].time_ns, &event))
			err = fn(arg, &event);
	}
	*ret_nr_left = nr_keys - i;
	return err ? err : keep_from(sideband, i);
}

/* The rings are read one after the other. Meanwhile a process may move from a CPU that was read to one that was not: then its later records
 * are here and its earlier ones are not. So only records older than the reading are reported, the rest after the next one. */
int sideband_read(struct sideband *sideband, sideband_event_fn fn, void *arg, uint64_t *ret_known_ns)
{
	size_t nr_left = 1;
	int err = 0;

	for (int round = 0; !err && nr_left && round < MAX_ROUNDS; round++) {
		uint64_t limit_ns = clock_ns();

		for (uint32_t i = 0; i < sideband->nr_rings; i++)
			drain_ring(sideband, &sideband->rings[i]);
		err = sideband->batch.err ? sideband->batch.err : sideband->order.err;
		if (!err)
			err = tell(sideband, limit_ns, fn, arg, &nr_left);
		*ret_known_ns = limit_ns;
	}
	return err;
}
