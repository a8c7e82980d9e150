/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of perf_data share. */
#pragma once
#include "base/buffer.h"
#include "base/reader.h"
#include "base/u64_map.h"
#include "perfdata/perf_data.h"

/* enum perf_event_type, followed by perf's own types (tools/lib/perf/include/perf/event.h). */
enum {
	TYPE_MMAP = 1,
	TYPE_LOST = 2,
	TYPE_COMM = 3,
	TYPE_EXIT = 4,
	TYPE_THROTTLE = 5,
	TYPE_FORK = 7,
	TYPE_SAMPLE = 9,
	TYPE_MMAP2 = 10,
	TYPE_LOST_SAMPLES = 13,
	TYPE_USER_FIRST = 64,
	TYPE_ATTR = 64,
	TYPE_TRACING_DATA = 66,
	TYPE_BUILD_ID = 67,
	TYPE_FINISHED_ROUND = 68,
	TYPE_AUXTRACE = 71,
	TYPE_EVENT_UPDATE = 78,
	TYPE_FEATURE = 80,
	TYPE_COMPRESSED = 81,
	TYPE_COMPRESSED2 = 83,
};

#define RECORD_HEADER_BYTES 8
#define MISC_MODE 7u
#define MISC_COMM_EXEC (1u << 13)
#define MISC_MMAP_DATA (1u << 13)
#define MISC_MMAP_BUILD_ID (1u << 14)
#define MISC_BUILD_ID_SIZE (1u << 15)

/* enum perf_event_sample_format */
#define SAMPLE_IP (1u << 0)
#define SAMPLE_TID (1u << 1)
#define SAMPLE_TIME (1u << 2)
#define SAMPLE_ADDR (1u << 3)
#define SAMPLE_READ (1u << 4)
#define SAMPLE_CALLCHAIN (1u << 5)
#define SAMPLE_ID (1u << 6)
#define SAMPLE_CPU (1u << 7)
#define SAMPLE_PERIOD (1u << 8)
#define SAMPLE_STREAM_ID (1u << 9)
#define SAMPLE_RAW (1u << 10)
#define SAMPLE_BRANCH_STACK (1u << 11)
#define SAMPLE_REGS_USER (1u << 12)
#define SAMPLE_STACK_USER (1u << 13)
#define SAMPLE_IDENTIFIER (1u << 16)
#define ATTR_FREQ (1u << 10)
#define ATTR_SAMPLE_ID_ALL (1u << 18)
#define BRANCH_HW_INDEX (1u << 17)
#define BRANCH_COUNTERS (1u << 19)

#define MAX_IDS (1u << 20)
#define MAX_BUILD_IDS (1u << 17)

struct perf_header {
	uint32_t type;
	uint16_t misc, size;
};

struct order { /* puts records in order of time */
	struct buffer bytes, entries;
	uint64_t newest_ns, round_ns; /* of all records; of the previous round */
	uint64_t delivered_ns;             /* of the last record delivered */
	uint64_t nr;                  /* number of records so far */
};

struct feed { /* a stream of records, the last one incomplete */
	struct buffer bytes;
	size_t done;         /* bytes already processed */
	uint64_t skip;       /* bytes that follow and are not records */
};

struct unpacker; /* zstd's */

struct perf_data {
	struct perf_data_source source;
	bool can_seek;
	uint64_t pos;                     /* position in the source */
	struct perf_data_info info;
	struct perf_data_event events[PERF_DATA_MAX_EVENTS];
	struct u64_map event_by_id;
	uint32_t nr_ids;
	struct buffer build_ids;          /* struct perf_data_build_id each */
	uint64_t data_off, data_bytes;    /* of the records; data_bytes UINT64_MAX: up to the end */
	struct feed feed, unpacked;
	struct unpacker *unpacker;
	struct order order;
	perf_data_fn fn;                  /* set while reading */
	void *arg;
};

/* Reads up to `size` bytes at `pos`. Returns their number, 0 at the end, or a negative errno. */
MUST_CHECK ssize_t perf_data_source_at(struct perf_data *data, uint64_t pos, void *to, size_t size);

/* Adds an event: `attr` is its perf_event_attr, `ids` its ids. 0, -EBADMSG or -ENOMEM. */
MUST_CHECK int perf_data_add_event(struct perf_data *data, struct reader attr, struct reader ids);
/* Read the features: those after the records, and one that is itself a record (`r`: the rest of it). 0 or -ENOMEM: damaged ones are
 * ignored. */
MUST_CHECK int perf_data_features(struct perf_data *data, uint64_t off, const uint64_t *bits);
MUST_CHECK int perf_data_feature(struct perf_data *data, uint32_t feature, struct reader r);
MUST_CHECK int perf_data_build_id(struct perf_data *data, struct reader r, uint16_t misc);

/* The time in a record; 0: none. */
uint64_t perf_data_time(const struct perf_data *data, const uint8_t *bytes, struct perf_header header);
/* Passes the record to data->fn. 0 or what that returned. */
MUST_CHECK int perf_data_deliver(struct perf_data *data, const uint8_t *bytes, struct perf_header header, uint64_t time_ns);

void perf_data_order_done(struct order *order);
MUST_CHECK int perf_data_order_put(struct perf_data *data, const uint8_t *bytes, struct perf_header header, uint64_t time_ns);
/* Ends a round: later records are never older than the newest of the previous round. */
MUST_CHECK int perf_data_order_round(struct perf_data *data);
MUST_CHECK int perf_data_order_rest(struct perf_data *data);

/* Adds bytes to `feed`, one of data's own, and takes its complete records. */
MUST_CHECK int perf_data_take(struct perf_data *data, struct feed *feed, const void *bytes, size_t size, struct diag *diag);
void perf_data_unpacker_free(struct unpacker *unpacker);
/* Unpacks the payload of a compressed record into data->unpacked. */
MUST_CHECK int perf_data_unpack(struct perf_data *data, const void *bytes, size_t size, struct diag *diag);
