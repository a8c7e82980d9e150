// SPDX-License-Identifier: Apache-2.0
/* Recordings made here byte by byte: what is reported of each record, in which order, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "perfdata/perf_data.h"

enum { MMAP2 = 10, COMM = 3, FORK = 7, SAMPLE = 9, LOST = 2, ATTR = 64, ROUND = 68, AUXTRACE = 71 };
#define TYPES (1u << 16 | 1u << 0 | 1u << 1 | 1u << 2) /* identifier, ip, tid, time */

static void u16(struct buffer *to, uint16_t value)
{
	buffer_append(to, &value, sizeof(value));
}

static void u32(struct buffer *to, uint32_t value)
{
	buffer_append(to, &value, sizeof(value));
}

static void u64(struct buffer *to, uint64_t value)
{
	buffer_append(to, &value, sizeof(value));
}

static void header(struct buffer *to, uint32_t type, uint16_t misc, size_t size)
{
	u32(to, type);
	u16(to, misc);
	u16(to, (uint16_t)(size + 8));
}

/* Appends an event with one id. */
static void event(struct buffer *to, uint64_t types, uint64_t id)
{
	header(to, ATTR, 0, 128 + 8);
	u32(to, 1);		/* software */
	u32(to, 128);		/* size */
	u64(to, 0);		/* cpu-clock */
	u64(to, 1000);		/* period */
	u64(to, types);
	u64(to, 4);		/* read_format: id */
	u64(to, 1u << 18);	/* sample_id_all */
	for (int i = 0; i < 4; i++)
		u64(to, 0);
	u64(to, 0x1ff);		/* sample_regs_user */
	u32(to, 64);		/* sample_stack_user */
	for (int i = 0; i < 9; i++)
		u32(to, 0);
	u64(to, id);
}

static void begin(struct buffer *to)
{
	buffer_append(to, "PERFILE2", 8);
	u64(to, 16);
}

static void sample(struct buffer *to, uint64_t id, uint64_t ip, uint64_t time_ns)
{
	header(to, SAMPLE, 2, 32);
	u64(to, id);
	u64(to, ip);
	u32(to, 7);
	u32(to, 8);
	u64(to, time_ns);
}

static void round_ends(struct buffer *to)
{
	header(to, ROUND, 0, 0);
}

struct seen {
	struct perf_data_record records[16];
	uint32_t nr;
	uint64_t words[16]; /* copies of the borrowed data that the tests check */
	char name[64];
	int fails;
};

static int look(void *arg, const struct perf_data_record *record)
{
	struct seen *seen = arg;

	assert_true(seen->nr < 16);
	seen->records[seen->nr] = *record;
	if (record->kind == PERF_DATA_COMM)
		snprintf(seen->name, sizeof(seen->name), "%s", record->comm.name);
	if (record->kind == PERF_DATA_MMAP)
		snprintf(seen->name, sizeof(seen->name), "%s", record->mmap.path);
	if (record->kind == PERF_DATA_SAMPLE && record->sample.nr_callchain)
		seen->words[0] = perf_data_word(record->sample.callchain, record->sample.nr_callchain - 1);
	if (record->kind == PERF_DATA_SAMPLE && record->sample.regs)
		seen->words[1] = perf_data_word(record->sample.regs, 8);
	if (record->kind == PERF_DATA_SAMPLE && record->sample.stack)
		seen->words[2] = record->sample.stack[record->sample.stack_bytes - 1];
	seen->nr++;
	return seen->fails;
}

/* What the reading reported. */
static int read_all(const struct buffer *bytes, struct seen *seen, struct perf_data_info *ret_info)
{
	CLEANUP(perf_data_freep) struct perf_data *data = NULL;
	struct diag diag = { 0 };
	int err = perf_data_open(&(struct perf_data_source){ .bytes = bytes->data, .nr_bytes = bytes->size, .fd = -1 }, &diag, &data);

	if (!err)
		err = perf_data_read(data, look, seen, &diag);
	assert_true(!err || diag.text[0] || seen->fails);
	if (data)
		*ret_info = *perf_data_info(data);
	return err;
}

static void records_come_in_the_order_of_time(void **state)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(1u << 20);
	struct perf_data_info info;
	struct seen seen = { 0 };

	begin(&bytes);
	event(&bytes, TYPES, 11);
	sample(&bytes, 11, 1, 50);
	sample(&bytes, 11, 2, 90);
	sample(&bytes, 11, 3, 40); /* another CPU */
	round_ends(&bytes);
	sample(&bytes, 11, 4, 80); /* older than the newest record of the round before, which was therefore held back */
	sample(&bytes, 11, 5, 120);
	round_ends(&bytes);
	sample(&bytes, 11, 6, 110);
	assert_int_equal(read_all(&bytes, &seen, &info), 0);
	assert_int_equal(seen.nr, 6);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(seen.records[i].sample.ip, ((const uint64_t[]){ 3, 1, 4, 2, 6, 5 })[i]);
	assert_int_equal(seen.records[0].tgid, 7);
	assert_int_equal(seen.records[0].tid, 8);
	assert_int_equal(info.nr_disordered, 0);
	assert_false(info.is_cut);
	assert_true(info.is_stream);
}

static void late_records_are_counted(void **state)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(1u << 20);
	struct perf_data_info info;
	struct seen seen = { 0 };

	begin(&bytes);
	event(&bytes, TYPES, 11);
	sample(&bytes, 11, 1, 50);
	round_ends(&bytes);
	round_ends(&bytes);
	sample(&bytes, 11, 2, 40);
	assert_int_equal(read_all(&bytes, &seen, &info), 0);
	assert_int_equal(seen.nr, 2);
	assert_int_equal(info.nr_disordered, 1);
}

static void samples_are_of_the_event_that_their_id_says(void **state)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(1u << 20);
	struct perf_data_info info;
	struct seen seen = { 0 };

	begin(&bytes);
	event(&bytes, TYPES, 11);
	event(&bytes, TYPES, 12);
	sample(&bytes, 12, 1, 50);
	sample(&bytes, 11, 2, 60);
	sample(&bytes, 99, 3, 70);
	assert_int_equal(read_all(&bytes, &seen, &info), 0);
	assert_int_equal(seen.nr, 2);
	assert_int_equal(seen.records[0].sample.event, 1);
	assert_int_equal(seen.records[1].sample.event, 0);
	assert_int_equal(info.nr_unknown_event, 1);
}

/* All fields that may precede the stack are skipped, with no shift of those behind. */
static void everything_before_the_stack_is_skipped(void **state)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(1u << 20), body = BUFFER_INIT(1u << 16);
	struct perf_data_info info;
	struct seen seen = { 0 };

	u64(&body, 11);		/* identifier */
	u64(&body, 0x1234);	/* ip */
	u64(&body, 7 | 8ull << 32);
	u64(&body, 50);		/* time */
	u64(&body, 1);		/* address */
	u64(&body, 11);		/* id */
	u64(&body, 2);		/* stream */
	u64(&body, 3);		/* cpu */
	u64(&body, 999);	/* period */
	u64(&body, 5);		/* counter */
	u64(&body, 11);		/* its id */
	u64(&body, 3);		/* call chain */
	u64(&body, (uint64_t)-512);
	u64(&body, 0x1234);
	u64(&body, 0x5678);
	u32(&body, 4);		/* raw */
	u32(&body, 0);
	u64(&body, 1);		/* branches */
	for (int i = 0; i < 3; i++)
		u64(&body, 0);
	u64(&body, 2);		/* registers */
	for (uint64_t i = 0; i < 9; i++)
		u64(&body, 100 + i);
	u64(&body, 16);		/* stack size */
	u64(&body, 0x1111111111111111);
	u64(&body, 0x2222222222222222);
	u64(&body, 9);		/* of which filled */
	begin(&bytes);
	event(&bytes, 0x13fff & ~(1u << 14), 11);
	header(&bytes, SAMPLE, 2, body.size);
	buffer_append(&bytes, body.data, body.size);
	assert_int_equal(read_all(&bytes, &seen, &info), 0);
	assert_int_equal(seen.nr, 1);
	assert_int_equal(seen.records[0].sample.ip, 0x1234);
	assert_int_equal(seen.records[0].sample.cpu, 3);
	assert_int_equal(seen.records[0].sample.period, 999);
	assert_int_equal(seen.words[0], 0x5678);
	assert_int_equal(seen.words[1], 108);
	assert_int_equal(seen.words[2], 0x22);
	assert_int_equal(seen.records[0].sample.stack_bytes, 9);
	/* every truncation is refused, or reported when only the record's own end is missing */
	for (size_t cut = 1; cut < body.size; cut++) {
		CLEANUP(buffer_done) struct buffer shorter = BUFFER_INIT(1u << 20);
		struct seen none = { 0 };

		begin(&shorter);
		event(&shorter, 0x13fff & ~(1u << 14), 11);
		header(&shorter, SAMPLE, 2, body.size - cut);
		buffer_append(&shorter, body.data, body.size - cut);
		assert_int_equal(read_all(&shorter, &none, &info), 0);
		assert_int_equal(none.nr, 0);
		assert_int_equal(info.nr_refused, 1);
		shorter.size--;
		assert_int_equal(read_all(&shorter, &none, &info), 0);
		assert_true(info.is_cut);
	}
}

static void what_processes_do_is_told(void **state)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(1u << 20);
	static const char name[16] = "thread", path[16] = "/bin/program";
	struct perf_data_info info;
	struct seen seen = { 0 };

	begin(&bytes);
	event(&bytes, 1u << 1, 11); /* no times: delivered at once */
	header(&bytes, COMM, 1u << 13 | 2, 8 + 16 + 8);
	u64(&bytes, 7 | 8ull << 32);
	buffer_append(&bytes, name, 16);
	u64(&bytes, 0); /* trailer */
	header(&bytes, MMAP2, 1u << 14 | 2, 8 + 24 + 24 + 8 + 16 + 8);
	u64(&bytes, 7 | 8ull << 32);
	u64(&bytes, 0x1000);
	u64(&bytes, 0x2000);
	u64(&bytes, 0x3000);
	u32(&bytes, 3); /* build id of three bytes */
	for (int i = 0; i < 5; i++)
		u32(&bytes, 0x030201);
	u64(&bytes, 5); /* readable code */
	buffer_append(&bytes, path, 16);
	u64(&bytes, 0);
	header(&bytes, AUXTRACE, 0, 8);
	u64(&bytes, 5); /* bytes that form no record */
	buffer_append(&bytes, "?????", 5);
	header(&bytes, LOST, 0, 16);
	u64(&bytes, 11);
	u64(&bytes, 44);
	assert_int_equal(read_all(&bytes, &seen, &info), 0);
	assert_int_equal(seen.nr, 3);
	assert_true(seen.records[0].comm.is_exec);
	assert_string_equal(seen.name, "/bin/program");
	assert_int_equal(seen.records[1].mmap.build_id.size, 3);
	assert_int_equal(seen.records[1].mmap.build_id.bytes[2], 3);
	assert_int_equal(seen.records[1].mmap.file_off, 0x3000);
	assert_true(seen.records[1].mmap.is_code);
	assert_int_equal(seen.records[2].nr_lost, 44);
	assert_false(info.is_cut);
}

static void what_is_no_recording_is_refused(void **state)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(1u << 20), other = BUFFER_INIT(1u << 20);
	struct perf_data_info info;
	struct seen seen = { 0 };

	buffer_append(&bytes, "PERFILE1", 8);
	u64(&bytes, 16);
	assert_int_equal(read_all(&bytes, &seen, &info), -ENOEXEC);
	buffer_append(&other, "2ELIFREP", 8);
	u64(&other, 16);
	assert_int_equal(read_all(&other, &seen, &info), -ENOTSUP);
	bytes.size = 0;
	begin(&bytes);
	header(&bytes, SAMPLE, 0, (size_t)-4); /* a record of 4 bytes */
	assert_int_equal(read_all(&bytes, &seen, &info), -EBADMSG);
	bytes.size = 0;
	buffer_append(&bytes, "PERFILE2", 8);
	for (int i = 0; i < 12; i++)
		u64(&bytes, 104); /* a file whose events lie beyond its end */
	assert_int_equal(read_all(&bytes, &seen, &info), -EBADMSG);
}

static void the_callers_error_ends_it(void **state)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(1u << 20);
	struct perf_data_info info;
	struct seen seen = { .fails = -ENOMEM };

	begin(&bytes);
	event(&bytes, TYPES, 11);
	sample(&bytes, 11, 1, 50);
	sample(&bytes, 11, 1, 60);
	assert_int_equal(read_all(&bytes, &seen, &info), -ENOMEM);
	assert_int_equal(seen.nr, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_in_the_order_of_time),
		cmocka_unit_test(late_records_are_counted),
		cmocka_unit_test(samples_are_of_the_event_that_their_id_says),
		cmocka_unit_test(everything_before_the_stack_is_skipped),
		cmocka_unit_test(what_processes_do_is_told),
		cmocka_unit_test(what_is_no_recording_is_refused),
		cmocka_unit_test(the_callers_error_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
