// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a recording of perf's: what is reported lies in its record, is in order of time, and is meaningful. Read as a file
 * (random access) and, where the bytes are a stream, also as a pipe: both give the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perfdata/perf_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	const struct perf_data_info *info;
	uint64_t newest_ns, nr, sum;
};

static void add(struct seen *seen, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) /* reads each byte: it must be accessible */
		seen->sum = seen->sum * 31 + bytes[i];
}

static int look(void *arg, const struct perf_data_record *record)
{
	const struct perf_data_sample *sample = &record->sample;
	struct seen *seen = arg;

	seen->nr++;
	if (record->time_ns && record->time_ns < seen->newest_ns && !seen->info->nr_disordered)
		abort();
	if (record->time_ns > seen->newest_ns)
		seen->newest_ns = record->time_ns;
	if (record->kind == PERF_DATA_MMAP) {
		if (record->mmap.build_id.size > BUILD_ID_MAX)
			abort();
		add(seen, (const uint8_t *)record->mmap.path, strlen(record->mmap.path));
	} else if (record->kind == PERF_DATA_COMM) {
		add(seen, (const uint8_t *)record->comm.name, strlen(record->comm.name));
	} else if (record->kind == PERF_DATA_SAMPLE) {
		if (sample->event >= seen->info->nr_events)
			abort();
		add(seen, sample->callchain, sample->nr_callchain * 8);
		if (sample->regs)
			add(seen, sample->regs, 8u * (unsigned)__builtin_popcountll(sample->regs_mask));
		if (sample->stack)
			add(seen, sample->stack, sample->stack_bytes);
	}
	return 0;
}

static int read_all(const struct perf_data_source *source, struct seen *seen)
{
	CLEANUP(perf_data_freep) struct perf_data *data = NULL;
	struct diag diag = { 0 };
	int err = perf_data_open(source, &diag, &data);

	if (err)
		return err;
	seen->info = perf_data_info(data);
	err = perf_data_read(data, look, seen, &diag);
	for (uint32_t i = 0; i < seen->info->nr_events; i++)
		add(seen, (const uint8_t *)seen->info->events[i].name, strlen(seen->info->events[i].name));
	for (uint32_t i = 0; i < seen->info->nr_build_ids; i++)
		add(seen, seen->info->build_ids[i].id.bytes, seen->info->build_ids[i].id.size);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = { 0 }, piped = { 0 };
	int err = read_all(&(struct perf_data_source){ .bytes = data, .nr_bytes = size, .fd = -1 }, &whole), fds[2];
	size_t head = size < 8 ? size : 8;

	if (size < 16 || size > 32768 || memcmp(data + 8, "\x10\0\0\0\0\0\0", 8) || pipe(fds)) /* is a file, or does not fit in a pipe */
		return 0;
	if (write(fds[1], data + head, size - head) != (ssize_t)(size - head))
		abort();
	close(fds[1]);
	if (read_all(&(struct perf_data_source){ .bytes = data, .nr_bytes = head, .fd = fds[0] }, &piped) != err || piped.nr != whole.nr ||
	    piped.sum != whole.sum)
		abort();
	close(fds[0]);
	return 0;
}
