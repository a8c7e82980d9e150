// SPDX-License-Identifier: Apache-2.0
/* Puts records in order of time. perf reads the buffers of the CPUs in rounds. Within a round, one CPU's records follow another's, whatever
 * their times. At the end of a round, records up to the newest of the previous round can be delivered; the rest waits. Sorting once per
 * round costs n log n in all. */
#include <errno.h>
#include <stdlib.h>

#include "perfdata/perf_data_private.h"

#define MAX_WAITING_BYTES ((size_t)256 << 20) /* beyond this the older half is delivered early */
#define MAX_WAITING (8u << 20)

struct entry {
	uint64_t time_ns, nr; /* nr: order of arrival */
	uint64_t off;
};

void perf_data_order_done(struct order *order)
{
	buffer_done(&order->bytes);
	buffer_done(&order->entries);
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->nr < y->nr ? -1 : x->nr > y->nr;
}

static struct perf_header header_at(const uint8_t *bytes)
{
	struct reader r = reader_of(bytes, RECORD_HEADER_BYTES);
	struct perf_header header = { .type = reader_u32(&r) };

	header.misc = reader_u16(&r);
	header.size = reader_u16(&r);
	return header;
}

static int tell(struct perf_data *data, const struct entry *entry)
{
	struct order *order = &data->order;
	const uint8_t *bytes = (const uint8_t *)order->bytes.data + entry->off;

	if (entry->time_ns < order->delivered_ns)
		data->info.nr_disordered++;
	else
		order->delivered_ns = entry->time_ns;
	return perf_data_deliver(data, bytes, header_at(bytes), entry->time_ns);
}

/* Keeps only the records that still wait: copies them into a new buffer. */
static int keep(struct order *order, struct entry *entries, size_t nr)
{
	struct buffer kept = BUFFER_INIT(order->bytes.max);

	for (size_t i = 0; i < nr; i++) {
		const uint8_t *bytes = (const uint8_t *)order->bytes.data + entries[i].off;

		entries[i].off = kept.size;
		buffer_append(&kept, bytes, header_at(bytes).size);
	}
	if (kept.err) {
		buffer_done(&kept);
		return -ENOMEM;
	}
	buffer_done(&order->bytes);
	order->bytes = kept;
	memmove(order->entries.data, entries, nr * sizeof(*entries));
	order->entries.size = nr * sizeof(*entries);
	return 0;
}

/* Delivers the records up to a time, and at least `nr_least` of them. */
static int flush(struct perf_data *data, uint64_t up_to_ns, size_t nr_least)
{
	struct order *order = &data->order;
	struct entry *entries = (struct entry *)order->entries.data;
	size_t nr = order->entries.size / sizeof(*entries), i;
	int err = 0;

	if (!nr)
		return 0;
	qsort(entries, nr, sizeof(*entries), by_time);
	for (i = 0; !err && i < nr && (i < nr_least || entries[i].time_ns <= up_to_ns); i++)
		err = tell(data, &entries[i]);
	if (!err && i == nr)
		order->bytes.size = order->entries.size = 0;
	else if (!err && i)
		err = keep(order, entries + i, nr - i);
	return err;
}

int perf_data_order_put(struct perf_data *data, const uint8_t *bytes, struct perf_header header, uint64_t time_ns)
{
	struct order *order = &data->order;
	struct entry entry = { .time_ns = time_ns, .nr = order->nr++, .off = order->bytes.size };
	size_t nr = order->entries.size / sizeof(entry);

	buffer_append(&order->bytes, bytes, header.size);
	buffer_append(&order->entries, &entry, sizeof(entry));
	if (order->bytes.err || order->entries.err)
		return -ENOMEM;
	if (time_ns > order->newest_ns)
		order->newest_ns = time_ns;
	return order->bytes.size > MAX_WAITING_BYTES || nr >= MAX_WAITING ? flush(data, 0, nr / 2 + 1) : 0;
}

int perf_data_order_round(struct perf_data *data)
{
	struct order *order = &data->order;
	int err = flush(data, order->round_ns, 0);

	order->round_ns = order->newest_ns;
	return err;
}

int perf_data_order_rest(struct perf_data *data)
{
	return flush(data, UINT64_MAX, 0);
}
