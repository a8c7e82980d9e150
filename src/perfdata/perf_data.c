// SPDX-License-Identifier: Apache-2.0
#include "perfdata/perf_data_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define STREAM_HEADER_BYTES 16
#define FILE_HEADER_BYTES 104
#define SMALLEST_ATTR_BYTES 64 /* PERF_ATTR_SIZE_VER0 */
#define LARGEST_ATTR_BYTES 4096
#define READ_BYTES (256u << 10)
#define FEED_BYTES_MAX (1u << 20)
#define IDS_BYTES_MAX ((size_t)MAX_IDS * 8)

static const char magic[] = "PERFILE2", other_magic[] = "2ELIFREP";

bool perf_data_is(const void *bytes, size_t size)
{
	return size >= 8 && (!memcmp(bytes, magic, 8) || !memcmp(bytes, other_magic, 8));
}

ssize_t perf_data_source_at(struct perf_data *data, uint64_t pos, void *to, size_t size)
{
	const struct perf_data_source *source = &data->source;
	ssize_t got;

	if (pos < source->nr_bytes && !data->can_seek) {
		size_t left = source->nr_bytes - pos;

		size = size < left ? size : left;
		memcpy(to, (const char *)source->bytes + pos, size);
		return (ssize_t)size;
	}
	if (source->fd < 0)
		return 0;
	do
		got = data->can_seek ? pread(source->fd, to, size, (off_t)pos) : read(source->fd, to, size);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/* Reads exactly `size` bytes. 0, -EBADMSG: too few; or the error of the read. */
static int read_whole(struct perf_data *data, uint64_t pos, void *to, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = perf_data_source_at(data, pos + done, (char *)to + done, size - done);

		if (got <= 0)
			return got ? (int)got : -EBADMSG;
		done += (size_t)got;
	}
	return 0;
}

/* --- events --------------------------------------------------------------------------------------------------------------------------- */

int perf_data_add_event(struct perf_data *data, struct reader r, struct reader ids)
{
	struct perf_data_event *event = &data->events[data->info.nr_events];
	uint32_t number = data->info.nr_events;

	if (number == PERF_DATA_MAX_EVENTS || reader_left(&r) < SMALLEST_ATTR_BYTES)
		return -EBADMSG;
	*event = (struct perf_data_event){ .type = reader_u32(&r) };
	reader_skip(&r, 4);
	event->config = reader_u64(&r);
	event->period_or_freq = reader_u64(&r);
	event->sample_type = reader_u64(&r);
	event->read_format = reader_u64(&r);
	event->flags = reader_u64(&r);
	event->is_freq = event->flags & ATTR_FREQ;
	reader_skip(&r, 4 + 4 + 8); /* wake-up, breakpoint type, config1 */
	if (reader_left(&r) >= 40) { /* else from an older kernel */
		reader_skip(&r, 8);
		event->branch_sample_type = reader_u64(&r);
		event->sample_regs_user = reader_u64(&r);
		event->stack_bytes = reader_u32(&r);
		reader_skip(&r, 4 + 8); /* clock, registers of the kernel */
	}
	if (reader_left(&r) >= 6) {
		reader_skip(&r, 4);
		event->max_stack = reader_u16(&r);
	}
	snprintf(event->name, sizeof(event->name), "event %u", number + 1);
	data->info.nr_events++;
	while (reader_left(&ids) >= 8) {
		if (data->nr_ids++ == MAX_IDS)
			return -EBADMSG;
		if (u64_map_add(&data->event_by_id, reader_u64(&ids), number))
			return -ENOMEM;
	}
	return 0;
}

static int read_event(struct perf_data *data, const uint8_t *entry, size_t entry_bytes)
{
	CLEANUP(freep) void *ids = NULL;
	struct reader place = reader_of(entry + entry_bytes - 16, 16);
	uint64_t off = reader_u64(&place), size = reader_u64(&place);
	int err;

	if (size > IDS_BYTES_MAX)
		return -EBADMSG;
	ids = malloc(size + 1);
	if (!ids)
		return -ENOMEM;
	err = read_whole(data, off, ids, size);
	return err ? err : perf_data_add_event(data, reader_of(entry, entry_bytes - 16), reader_of(ids, size));
}

static int read_events(struct perf_data *data, uint64_t entry_bytes, uint64_t off, uint64_t size)
{
	uint8_t entry[LARGEST_ATTR_BYTES];

	if (entry_bytes < SMALLEST_ATTR_BYTES + 16 || entry_bytes > sizeof(entry) || size / entry_bytes > PERF_DATA_MAX_EVENTS ||
	    !(size / entry_bytes))
		return -EBADMSG;
	for (uint64_t i = 0; i < size / entry_bytes; i++) {
		int err = read_whole(data, off + i * entry_bytes, entry, entry_bytes);

		if (!err)
			err = read_event(data, entry, entry_bytes);
		if (err)
			return err;
	}
	return 0;
}

/* --- the header ----------------------------------------------------------------------------------------------------------------------- */

static int open_file(struct perf_data *data, struct diag *diag)
{
	uint8_t header[FILE_HEADER_BYTES] = { 0 };
	uint64_t entry_bytes, events_off, events_bytes, bits[4];
	struct reader r = reader_of(header, sizeof(header));
	int err = read_whole(data, 0, header, sizeof(header));

	reader_skip(&r, 16);
	entry_bytes = reader_u64(&r);
	events_off = reader_u64(&r);
	events_bytes = reader_u64(&r);
	data->data_off = reader_u64(&r);
	data->data_bytes = reader_u64(&r);
	reader_skip(&r, 16);
	for (int i = 0; i < 4; i++)
		bits[i] = reader_u64(&r);
	if (!err)
		err = read_events(data, entry_bytes, events_off, events_bytes);
	if (err)
		return diag_errno(diag, -err,
				  err == -ENOMEM ? "no memory" : "the perf.data file is damaged: its header does not list the events");
	if (!data->data_bytes) { /* perf writes the size last */
		data->data_bytes = UINT64_MAX;
		data->info.is_cut = true;
		return 0;
	}
	if (data->data_off + data->data_bytes < data->data_off)
		return diag_errno(diag, EBADMSG, "the perf.data file is damaged: it has no records");
	return perf_data_features(data, data->data_off + data->data_bytes, bits);
}

static int open_source(struct perf_data *data, struct diag *diag)
{
	struct stat st;
	uint8_t head[STREAM_HEADER_BYTES] = { 0 };
	struct reader r = reader_of(head + 8, 8);
	int err;

	data->can_seek = data->source.fd >= 0 && !fstat(data->source.fd, &st) && S_ISREG(st.st_mode);
	err = read_whole(data, 0, head, sizeof(head));
	if (!err && !memcmp(head, other_magic, 8))
		return diag_errno(diag, ENOTSUP, "the perf.data file is from a machine of the other byte order");
	if (err || memcmp(head, magic, 8))
		return diag_errno(diag, ENOEXEC, "not a perf.data file");
	data->pos = sizeof(head);
	if (reader_u64(&r) == STREAM_HEADER_BYTES) {
		data->info.is_stream = true;
		data->data_off = STREAM_HEADER_BYTES;
		data->data_bytes = UINT64_MAX;
		return 0;
	}
	if (!data->can_seek && data->source.fd >= 0)
		return diag_errno(diag, ESPIPE, "a perf.data file has to be read from the file, not through a pipe");
	return open_file(data, diag);
}

int perf_data_open(const struct perf_data_source *source, struct diag *diag, struct perf_data **ret_data)
{
	CLEANUP(perf_data_freep) struct perf_data *data = calloc(1, sizeof(*data));
	int err;

	if (!data)
		return -ENOMEM;
	data->source = *source;
	data->info.events = data->events;
	data->build_ids = BUFFER_INIT(MAX_BUILD_IDS * sizeof(struct perf_data_build_id));
	data->feed.bytes = data->unpacked.bytes = BUFFER_INIT(FEED_BYTES_MAX);
	data->order.bytes = data->order.entries = BUFFER_INIT((size_t)1 << 30);
	err = open_source(data, diag);
	if (!err)
		*ret_data = MOVE(data);
	return err;
}

void perf_data_free(struct perf_data *data)
{
	if (!data)
		return;
	for (uint32_t i = 0; i < data->info.nr_build_ids; i++)
		free((char *)((struct perf_data_build_id *)data->build_ids.data)[i].path);
	buffer_done(&data->build_ids);
	u64_map_done(&data->event_by_id);
	buffer_done(&data->feed.bytes);
	buffer_done(&data->unpacked.bytes);
	perf_data_unpacker_free(data->unpacker);
	perf_data_order_done(&data->order);
	free(data);
}

const struct perf_data_info *perf_data_info(const struct perf_data *data)
{
	return &data->info;
}

/* --- the records ---------------------------------------------------------------------------------------------------------------------- */

/* Takes an event of a stream: the attribute gives its own size, and the ids follow it. */
static int take_attr(struct perf_data *data, struct reader body)
{
	struct reader size = body, attr;
	uint32_t bytes;

	reader_skip(&size, 4);
	bytes = reader_u32(&size);
	attr = reader_sub(&body, bytes);
	return attr.bad ? -EBADMSG : perf_data_add_event(data, attr, body);
}

static void take_update(struct perf_data *data, struct reader body)
{
	uint64_t type = reader_u64(&body);
	const uint32_t *event = u64_map_find(&data->event_by_id, reader_u64(&body));
	const char *name = type == 2 ? reader_text(&body) : ""; /* PERF_EVENT_UPDATE__NAME */

	if (event && name[0])
		snprintf(data->events[*event].name, sizeof(data->events[*event].name), "%s", name);
}

/* Takes a record of perf itself, not of the kernel. */
static int take_user_record(struct perf_data *data, struct feed *feed, struct reader body, struct perf_header header, struct diag *diag)
{
	switch (header.type) {
	case TYPE_ATTR:
		return data->info.is_stream ? take_attr(data, body) : 0;
	case TYPE_BUILD_ID:
		return perf_data_build_id(data, body, header.misc);
	case TYPE_EVENT_UPDATE:
		take_update(data, body);
		return 0;
	case TYPE_FEATURE:
		return perf_data_feature(data, (uint32_t)reader_u64(&body), body);
	case TYPE_FINISHED_ROUND:
		return perf_data_order_round(data);
	case TYPE_AUXTRACE:
		feed->skip = reader_u64(&body);
		return 0;
	case TYPE_TRACING_DATA:
		feed->skip = reader_u32(&body);
		return 0;
	case TYPE_COMPRESSED2:
		body = reader_sub(&body, reader_u64(&body));
		break;
	case TYPE_COMPRESSED:
		break;
	default:
		return 0;
	}
	return feed == &data->unpacked || body.bad ? -EBADMSG : perf_data_unpack(data, body.pos, reader_left(&body), diag);
}

static int take_record(struct perf_data *data, struct feed *feed, const uint8_t *bytes, struct perf_header header, struct diag *diag)
{
	uint64_t time_ns;

	if (header.type >= TYPE_USER_FIRST)
		return take_user_record(data, feed, reader_of(bytes + RECORD_HEADER_BYTES, header.size - RECORD_HEADER_BYTES), header,
					diag);
	time_ns = perf_data_time(data, bytes, header);
	return time_ns ? perf_data_order_put(data, bytes, header, time_ns) : perf_data_deliver(data, bytes, header, 0);
}

/* Takes all complete records. */
static int take_records(struct perf_data *data, struct feed *feed, struct diag *diag)
{
	for (;;) {
		const uint8_t *bytes = (const uint8_t *)feed->bytes.data + feed->done;
		size_t left = feed->bytes.size - feed->done;
		struct reader r = reader_of(bytes, left);
		struct perf_header header = { 0 };
		int err;

		if (feed->skip) {
			size_t skipped = feed->skip < left ? feed->skip : left;

			feed->skip -= skipped;
			feed->done += skipped;
			if (feed->skip || skipped == left)
				return 0;
			continue;
		}
		if (left < RECORD_HEADER_BYTES)
			return 0;
		header.type = reader_u32(&r);
		header.misc = reader_u16(&r);
		header.size = reader_u16(&r);
		if (header.size < RECORD_HEADER_BYTES)
			return diag_errno(diag, EBADMSG, "the perf.data file is damaged: a record of %u bytes", header.size);
		if (header.size > left)
			return 0;
		feed->done += header.size;
		err = take_record(data, feed, bytes, header, diag);
		if (err)
			return err;
	}
}

int perf_data_take(struct perf_data *data, struct feed *feed, const void *bytes, size_t size, struct diag *diag)
{
	int err;

	if (feed->done) {
		memmove(feed->bytes.data, feed->bytes.data + feed->done, feed->bytes.size - feed->done);
		feed->bytes.size -= feed->done;
		feed->done = 0;
	}
	buffer_append(&feed->bytes, bytes, size);
	err = feed->bytes.err ? feed->bytes.err : take_records(data, feed, diag);
	return err == -EBADMSG ? diag_errno(diag, EBADMSG, "the perf.data file is damaged") : err;
}

static int read_records(struct perf_data *data, struct diag *diag)
{
	CLEANUP(freep) char *bytes = malloc(READ_BYTES);
	uint64_t left = data->data_bytes;
	int err = bytes ? 0 : -ENOMEM;

	data->pos = data->data_off;
	while (!err && left) {
		ssize_t got = perf_data_source_at(data, data->pos, bytes, left < READ_BYTES ? (size_t)left : READ_BYTES);

		if (got < 0)
			return diag_errno(diag, (int)-got, "cannot read the perf.data file: %s", strerror((int)-got));
		if (!got)
			break;
		data->pos += (uint64_t)got;
		if (left != UINT64_MAX)
			left -= (uint64_t)got;
		err = perf_data_take(data, &data->feed, bytes, (size_t)got, diag);
	}
	if ((left && left != UINT64_MAX) || data->feed.done < data->feed.bytes.size || data->feed.skip ||
	    data->unpacked.done < data->unpacked.bytes.size)
		data->info.is_cut = true;
	return err;
}

int perf_data_read(struct perf_data *data, perf_data_fn fn, void *arg, struct diag *diag)
{
	struct diag cause = { 0 };
	int err;

	data->fn = fn;
	data->arg = arg;
	err = read_records(data, &cause);
	if (err == -EBADMSG && data->order.nr) { /* the records before it are complete */
		data->info.is_cut = true;
		err = 0;
	}
	if (err && cause.err)
		return diag_errno(diag, -err, "%s", cause.text);
	return err ? err : perf_data_order_rest(data);
}
