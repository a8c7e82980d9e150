// SPDX-License-Identifier: Apache-2.0
/* Parses the kernel's records (include/uapi/linux/perf_event.h, enum perf_event_type). */
#include <errno.h>
#include <stdlib.h>

#include "perfdata/perf_data_private.h"

#define BRANCH_ENTRY_BYTES 24
#define MMAP_IDENTITY_BYTES 24 /* device and inode, or the build id */
#define MMAP_BUILD_ID_MAX 20
#define PROT_CODE 4

static struct reader body_of(const uint8_t *bytes, struct perf_header header)
{
	return reader_of(bytes + RECORD_HEADER_BYTES, header.size - RECORD_HEADER_BYTES);
}

/* --- fields that come first in all samples and last in all other records -------------------------------------------------------------- */

struct identity {
	uint64_t time_ns, id;
	uint32_t tgid, tid, cpu;
	bool has_id;
};

/* The event of a record; NULL: unknown. If the events of a recording have different sample types, the event's id comes first in samples and
 * last in other records. */
static const struct perf_data_event *event_of(const struct perf_data *data, const uint8_t *bytes, struct perf_header header,
					      uint32_t *ret_number)
{
	struct reader r = body_of(bytes, header);
	const struct perf_data_event *first = data->events;
	const uint32_t *known = NULL;
	uint64_t types = first->sample_type;

	*ret_number = 0;
	if (data->info.nr_events < 2)
		return data->info.nr_events ? first : NULL;
	if (types & SAMPLE_IDENTIFIER) {
		if (header.type != TYPE_SAMPLE && reader_left(&r) >= 8)
			reader_skip(&r, reader_left(&r) - 8);
	} else if (types & SAMPLE_ID && header.type == TYPE_SAMPLE) {
		reader_skip(&r, 8u * (unsigned)__builtin_popcountll(types & (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR)));
	} else {
		return header.type == TYPE_SAMPLE ? NULL : first;
	}
	known = u64_map_find(&data->event_by_id, reader_u64(&r));
	if (!known)
		return header.type == TYPE_SAMPLE ? NULL : first;
	*ret_number = *known;
	return &data->events[*known];
}

/* Parses the fields at the end of a record that is not a sample. */
static struct identity trailer_of(const struct perf_data_event *event, struct reader r)
{
	uint64_t types = event->sample_type;
	struct identity found = { .cpu = PERF_DATA_NO_CPU };
	size_t size = 8u * (unsigned)__builtin_popcountll(
			       types & (SAMPLE_TID | SAMPLE_TIME | SAMPLE_ID | SAMPLE_STREAM_ID | SAMPLE_CPU | SAMPLE_IDENTIFIER));

	if (!(event->flags & ATTR_SAMPLE_ID_ALL) || reader_left(&r) < size)
		return found;
	reader_skip(&r, reader_left(&r) - size);
	if (types & SAMPLE_TID) {
		found.tgid = reader_u32(&r);
		found.tid = reader_u32(&r);
	}
	if (types & SAMPLE_TIME)
		found.time_ns = reader_u64(&r);
	return found;
}

uint64_t perf_data_time(const struct perf_data *data, const uint8_t *bytes, struct perf_header header)
{
	struct reader r = body_of(bytes, header);
	const struct perf_data_event *event;
	uint64_t time_ns;
	uint32_t number;

	event = event_of(data, bytes, header, &number);
	if (!event || !(event->sample_type & SAMPLE_TIME))
		return 0;
	if (header.type == TYPE_SAMPLE) {
		reader_skip(&r, 8u * (unsigned)__builtin_popcountll(event->sample_type & (SAMPLE_IDENTIFIER | SAMPLE_IP | SAMPLE_TID)));
		time_ns = reader_u64(&r);
	} else {
		time_ns = trailer_of(event, r).time_ns;
	}
	return time_ns == UINT64_MAX ? 0 : time_ns;
}

/* --- samples -------------------------------------------------------------------------------------------------------------------------- */

static void skip_counts(struct reader *r, uint64_t format)
{
	uint64_t nr_times = (format & 1) + (format >> 1 & 1), nr_each = 1 + (format >> 2 & 1) + (format >> 4 & 1), nr = 1;

	if (format & 8) /* a group */
		nr = reader_u64(r);
	if (nr > reader_left(r) / 8)
		reader_fail(r);
	else
		reader_skip(r, 8 * (nr_times + nr_each * nr));
}

static void skip_branches(struct reader *r, uint64_t format)
{
	uint64_t nr = reader_u64(r), each = BRANCH_ENTRY_BYTES + (format & BRANCH_COUNTERS ? 8 : 0);

	if (nr > reader_left(r) / each)
		reader_fail(r);
	else
		reader_skip(r, nr * each + (format & BRANCH_HW_INDEX ? 8 : 0));
}

static void take_callchain(struct reader *r, struct perf_data_sample *sample)
{
	uint64_t nr = reader_u64(r);

	if (nr > reader_left(r) / 8) {
		reader_fail(r);
		return;
	}
	sample->callchain = r->pos;
	sample->nr_callchain = nr;
	reader_skip(r, nr * 8);
}

static void take_regs(struct reader *r, const struct perf_data_event *event, struct perf_data_sample *sample)
{
	sample->regs_abi = reader_u64(r);
	if (!sample->regs_abi)
		return;
	sample->regs_mask = event->sample_regs_user;
	sample->regs = r->pos;
	reader_skip(r, 8u * (unsigned)__builtin_popcountll(sample->regs_mask));
}

static void take_stack(struct reader *r, struct perf_data_sample *sample)
{
	uint64_t size = reader_u64(r), filled;

	if (!size)
		return;
	sample->stack = r->pos;
	reader_skip(r, size);
	filled = reader_u64(r);
	if (r->bad || filled > size)
		reader_fail(r);
	else
		sample->stack_bytes = (uint32_t)filled;
}

/* Parses up to the stack; the fields after it are not used. */
static bool take_sample(struct reader *r, const struct perf_data_event *event, struct perf_data_record *record)
{
	struct perf_data_sample *sample = &record->sample;
	uint64_t types = event->sample_type;

	sample->cpu = PERF_DATA_NO_CPU;
	reader_skip(r, types & SAMPLE_IDENTIFIER ? 8 : 0);
	sample->has_ip = types & SAMPLE_IP;
	sample->ip = sample->has_ip ? reader_u64(r) : 0;
	record->tgid = types & SAMPLE_TID ? reader_u32(r) : UINT32_MAX;
	record->tid = types & SAMPLE_TID ? reader_u32(r) : UINT32_MAX;
	reader_skip(r, 8u * (unsigned)__builtin_popcountll(types & (SAMPLE_TIME | SAMPLE_ADDR | SAMPLE_ID | SAMPLE_STREAM_ID)));
	if (types & SAMPLE_CPU) {
		sample->cpu = reader_u32(r);
		reader_skip(r, 4);
	}
	sample->has_period = types & SAMPLE_PERIOD;
	sample->period = sample->has_period ? reader_u64(r) : 0;
	if (types & SAMPLE_READ)
		skip_counts(r, event->read_format);
	if (types & SAMPLE_CALLCHAIN)
		take_callchain(r, sample);
	if (types & SAMPLE_RAW)
		reader_skip(r, reader_u32(r));
	if (types & SAMPLE_BRANCH_STACK)
		skip_branches(r, event->branch_sample_type);
	if (types & SAMPLE_REGS_USER)
		take_regs(r, event, sample);
	if (types & SAMPLE_STACK_USER)
		take_stack(r, sample);
	return !r->bad;
}

/* --- processes ------------------------------------------------------------------------------------------------------------------------ */

static bool take_mmap(struct reader *r, struct perf_header header, struct perf_data_record *record)
{
	struct perf_data_mmap *mmap = &record->mmap;

	record->tgid = reader_u32(r);
	record->tid = reader_u32(r);
	mmap->start_pc = reader_u64(r);
	mmap->size_bytes = reader_u64(r);
	mmap->file_off = reader_u64(r);
	mmap->is_code = !(header.misc & MISC_MMAP_DATA);
	if (header.type == TYPE_MMAP2) {
		struct reader identity = reader_sub(r, MMAP_IDENTITY_BYTES);

		if (header.misc & MISC_MMAP_BUILD_ID) {
			uint8_t size = reader_u8(&identity);

			reader_skip(&identity, 3);
			mmap->build_id.size = size < MMAP_BUILD_ID_MAX ? size : MMAP_BUILD_ID_MAX;
			reader_copy(&identity, mmap->build_id.bytes, mmap->build_id.size);
		} else {
			mmap->device_major = reader_u32(&identity);
			mmap->device_minor = reader_u32(&identity);
			mmap->inode = reader_u64(&identity);
		}
		mmap->is_code = reader_u32(r) & PROT_CODE;
		reader_skip(r, 4);
	}
	mmap->path = reader_text(r);
	return !r->bad;
}

static bool take_task(struct reader *r, struct perf_header header, struct perf_data_record *record)
{
	record->tgid = reader_u32(r);
	if (header.type == TYPE_COMM) {
		record->tid = reader_u32(r);
		record->comm.name = reader_text(r);
		record->comm.is_exec = header.misc & MISC_COMM_EXEC;
	} else {
		record->parent.tgid = reader_u32(r);
		record->tid = reader_u32(r);
		record->parent.tid = reader_u32(r);
	}
	return !r->bad;
}

static bool take_apart(struct reader *r, const struct perf_data_event *event, struct perf_header header, struct perf_data_record *record)
{
	switch (record->kind) {
	case PERF_DATA_SAMPLE:
		return take_sample(r, event, record);
	case PERF_DATA_MMAP:
		return take_mmap(r, header, record);
	case PERF_DATA_COMM:
	case PERF_DATA_FORK:
	case PERF_DATA_EXIT:
		return take_task(r, header, record);
	case PERF_DATA_LOST:
		reader_skip(r, 8);
		record->nr_lost = reader_u64(r);
		return !r->bad;
	case PERF_DATA_LOST_SAMPLES:
		record->nr_lost = reader_u64(r);
		return !r->bad;
	case PERF_DATA_THROTTLE:
		return true;
	}
	return false;
}

/* Is it a kind of record that is passed on? */
static bool kind_of(uint32_t type, enum perf_data_kind *ret_kind)
{
	static const struct {
		uint32_t type;
		enum perf_data_kind kind;
	} kinds[] = {
		{ TYPE_SAMPLE, PERF_DATA_SAMPLE }, { TYPE_MMAP, PERF_DATA_MMAP },	{ TYPE_MMAP2, PERF_DATA_MMAP },
		{ TYPE_COMM, PERF_DATA_COMM },	   { TYPE_FORK, PERF_DATA_FORK },	{ TYPE_EXIT, PERF_DATA_EXIT },
		{ TYPE_LOST, PERF_DATA_LOST },	   { TYPE_LOST_SAMPLES, PERF_DATA_LOST_SAMPLES }, { TYPE_THROTTLE, PERF_DATA_THROTTLE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].type == type) {
			*ret_kind = kinds[i].kind;
			return true;
		}
	}
	return false;
}

int perf_data_deliver(struct perf_data *data, const uint8_t *bytes, struct perf_header header, uint64_t time_ns)
{
	struct perf_data_record record = { .mode = header.misc & MISC_MODE, .time_ns = time_ns, .tgid = UINT32_MAX, .tid = UINT32_MAX };
	struct reader r = body_of(bytes, header);
	const struct perf_data_event *event;
	uint32_t number;

	if (!kind_of(header.type, &record.kind))
		return 0;
	event = event_of(data, bytes, header, &number);
	if (!event) {
		data->info.nr_unknown_event += record.kind == PERF_DATA_SAMPLE;
		if (record.kind == PERF_DATA_SAMPLE)
			return 0;
		event = data->events; /* no event is known: all zero */
	}
	if (!take_apart(&r, event, header, &record)) {
		data->info.nr_refused++;
		return 0;
	}
	if (record.kind == PERF_DATA_SAMPLE)
		record.sample.event = number;
	return data->fn(data->arg, &record);
}
