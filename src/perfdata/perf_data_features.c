// SPDX-License-Identifier: Apache-2.0
/* Reads perf's features, which describe the recording: host, machine, event names, build ids (tools/perf/util/header.h, HEADER_*). Damaged
 * features are ignored. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "perfdata/perf_data_private.h"

#define MAX_FEATURES 256
#define FEATURE_BYTES_MAX (64u << 20)
#define BUILD_ID_BYTES 20

enum {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_CLOCK_DATA = 29,
};

/* Takes a text with its length; the text is padded with NULs. */
static const char *take_text(struct reader *r)
{
	struct reader text = reader_sub(r, reader_u32(r));

	return reader_text(&text);
}

static void take_command_line(struct perf_data *data, struct reader *r)
{
	uint32_t nr = reader_u32(r);
	char *to = data->info.command_line;
	size_t room = sizeof(data->info.command_line), used = 0;

	for (uint32_t i = 0; i < nr && !r->bad && used < room; i++)
		used += (size_t)snprintf(to + used, room - used, "%s%s", i ? " " : "", take_text(r));
}

/* Takes the event names; the attributes are known already. An event is found by its ids or, if it has none, by its index. */
static void take_event_names(struct perf_data *data, struct reader *r)
{
	uint32_t nr = reader_u32(r), attr_bytes = reader_u32(r);

	for (uint32_t i = 0; i < nr && !r->bad; i++) {
		uint32_t nr_ids, number = i;
		const char *name;

		reader_skip(r, attr_bytes);
		nr_ids = reader_u32(r);
		name = take_text(r);
		for (uint32_t j = 0; j < nr_ids && !r->bad; j++) {
			const uint32_t *known = u64_map_find(&data->event_by_id, reader_u64(r));

			number = known ? *known : number;
		}
		if (number < data->info.nr_events && name[0])
			snprintf(data->events[number].name, sizeof(data->events[number].name), "%s", name);
	}
}

static void take_clock(struct perf_data *data, struct reader *r)
{
	uint32_t version = reader_u32(r);
	uint64_t unix_ns, clock_ns;

	reader_skip(r, 4); /* clock id */
	unix_ns = reader_u64(r);
	clock_ns = reader_u64(r);
	if (version != 1 || r->bad)
		return;
	data->info.has_clock = true;
	data->info.unix_offset_ns = unix_ns - clock_ns;
}

int perf_data_build_id(struct perf_data *data, struct reader r, uint16_t misc)
{
	struct perf_data_build_id entry = { .id.size = BUILD_ID_BYTES };
	const char *path;
	uint8_t size;

	reader_skip(&r, 4); /* pid */
	reader_copy(&r, entry.id.bytes, BUILD_ID_BYTES);
	size = reader_u8(&r);
	if (misc & MISC_BUILD_ID_SIZE && size <= BUILD_ID_BYTES)
		entry.id.size = size;
	reader_skip(&r, 3);
	path = reader_text(&r);
	if (r.bad || !path[0] || !entry.id.size || data->info.nr_build_ids == MAX_BUILD_IDS)
		return 0;
	entry.path = strdup(path);
	buffer_append(&data->build_ids, &entry, sizeof(entry));
	if (!entry.path || data->build_ids.err) {
		free((char *)entry.path);
		return -ENOMEM;
	}
	data->info.build_ids = (const struct perf_data_build_id *)data->build_ids.data;
	data->info.nr_build_ids++;
	return 0;
}

static int take_build_ids(struct perf_data *data, struct reader *r)
{
	int err = 0;

	while (!err && reader_left(r) >= RECORD_HEADER_BYTES) {
		uint16_t misc, size;

		reader_skip(r, 4);
		misc = reader_u16(r);
		size = reader_u16(r);
		if (size < RECORD_HEADER_BYTES)
			return 0;
		err = perf_data_build_id(data, reader_sub(r, size - RECORD_HEADER_BYTES), misc);
	}
	return err;
}

int perf_data_feature(struct perf_data *data, uint32_t feature, struct reader r)
{
	struct perf_data_info *info = &data->info;

	switch (feature) {
	case FEATURE_BUILD_ID:
		return take_build_ids(data, &r);
	case FEATURE_HOSTNAME:
		snprintf(info->host, sizeof(info->host), "%s", take_text(&r));
		break;
	case FEATURE_OSRELEASE:
		snprintf(info->kernel, sizeof(info->kernel), "%s", take_text(&r));
		break;
	case FEATURE_ARCH:
		snprintf(info->arch, sizeof(info->arch), "%s", take_text(&r));
		break;
	case FEATURE_NRCPUS:
		reader_skip(&r, 4); /* available CPUs; the online ones follow */
		info->nr_cpus = reader_u32(&r);
		break;
	case FEATURE_CMDLINE:
		take_command_line(data, &r);
		break;
	case FEATURE_EVENT_DESC:
		take_event_names(data, &r);
		break;
	case FEATURE_SAMPLE_TIME:
		info->first_ns = reader_u64(&r);
		info->last_ns = reader_u64(&r);
		break;
	case FEATURE_CLOCK_DATA:
		take_clock(data, &r);
		break;
	default:
		break;
	}
	return 0;
}

static int read_feature(struct perf_data *data, uint32_t feature, uint64_t off, uint64_t size)
{
	CLEANUP(freep) char *bytes = NULL;
	size_t done = 0;

	if (size > FEATURE_BYTES_MAX)
		return 0;
	bytes = malloc(size + 1);
	if (!bytes)
		return -ENOMEM;
	while (done < size) {
		ssize_t got = perf_data_source_at(data, off + done, bytes + done, size - done);

		if (got <= 0)
			return 0;
		done += (size_t)got;
	}
	return perf_data_feature(data, feature, reader_of(bytes, size));
}

int perf_data_features(struct perf_data *data, uint64_t off, const uint64_t *bits)
{
	int err = 0;

	for (uint32_t feature = 0; !err && feature < MAX_FEATURES; feature++) {
		uint8_t place[16];
		struct reader r = reader_of(place, sizeof(place));
		uint64_t at;

		if (!(bits[feature / 64] >> feature % 64 & 1))
			continue;
		if (perf_data_source_at(data, off, place, sizeof(place)) != sizeof(place))
			return 0;
		off += sizeof(place);
		at = reader_u64(&r);
		err = read_feature(data, feature, at, reader_u64(&r));
	}
	return err;
}
