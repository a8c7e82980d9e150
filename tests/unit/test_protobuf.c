// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "codec/protobuf.h"
#include "base/reader.h"

/* The examples of protobuf.dev's page "Encoding": field 1 is 150, field 2 is "testing", field 3 is a message of the first. */
static void the_documented_examples(void **state)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(4096);
	static const uint8_t want[] = { 0x08, 0x96, 0x01, 0x12, 0x07, 't', 'e', 's', 't', 'i', 'n', 'g', 0x1a, 0x03, 0x08, 0x96, 0x01 };
	size_t opened;

	protobuf_u64(&buffer, 1, 150);
	protobuf_bytes(&buffer, 2, "testing", strlen("testing"));
	opened = protobuf_open(&buffer, 3);
	protobuf_u64(&buffer, 1, 150);
	protobuf_close(&buffer, opened);
	assert_int_equal(buffer.size, sizeof(want));
	assert_memory_equal(buffer.data, want, sizeof(want));
}

static void zeros_are_left_out(void **state)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(4096);

	protobuf_u64(&buffer, 1, 0);
	protobuf_fixed64(&buffer, 1, 0);
	assert_int_equal(buffer.size, 0);
	protobuf_bytes(&buffer, 1, "", 0);
	protobuf_bytes(&buffer, 16, NULL, 0);
	protobuf_close(&buffer, protobuf_open(&buffer, 2));
	assert_int_equal(buffer.size, 2 + 3 + 2);
	assert_memory_equal(buffer.data, "\x0a\x00\x82\x01\x00\x12\x00", 7);
}

static void numbers_at_their_ends(void **state)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(4096);
	static const uint64_t values[] = { 0, 1, 127, 128, 16383, 16384, INT64_MAX, (uint64_t)-1 };
	struct reader r;

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		protobuf_varint(&buffer, values[i]);
	protobuf_fixed64(&buffer, 1, 0x1122334455667788);
	r = reader_of(buffer.data, buffer.size);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		assert_true(reader_uleb(&r) == values[i]);
	assert_int_equal(reader_u8(&r), 1 << 3 | 1);
	assert_true(reader_u64(&r) == 0x1122334455667788);
	assert_false(r.bad);
	assert_int_equal(reader_left(&r), 0);
}

/* Lengths of one, two and three bytes, nested: the content moves when its length is known. */
static void nested_messages_of_any_size(void **state)
{
	for (size_t size = 0; size < 70000; size = size * 2 + 1) {
		CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(1 << 20);
		CLEANUP(freep) char *bytes = malloc(size + 1);
		size_t outer = protobuf_open(&buffer, 1), inner = protobuf_open(&buffer, 2);
		struct reader r, message;

		memset(bytes, 'b', size + 1);
		protobuf_bytes(&buffer, 3, bytes, size);
		protobuf_close(&buffer, inner);
		protobuf_u64(&buffer, 4, 44);
		protobuf_close(&buffer, outer);
		r = reader_of(buffer.data, buffer.size);
		assert_int_equal(reader_u8(&r), 1 << 3 | 2);
		outer = reader_uleb(&r);
		assert_int_equal(outer, reader_left(&r));
		assert_int_equal(reader_u8(&r), 2 << 3 | 2);
		message = reader_sub(&r, reader_uleb(&r));
		assert_int_equal(reader_u8(&message), 3 << 3 | 2);
		assert_int_equal(reader_uleb(&message), size);
		assert_int_equal(reader_left(&message), size);
		assert_memory_equal(message.pos, bytes, size);
		assert_int_equal(reader_u8(&r), 4 << 3);
		assert_int_equal(reader_u8(&r), 44);
		assert_int_equal(reader_left(&r), 0);
	}
}

static void a_full_buffer_stays_failed(void **state)
{
	for (size_t max = 0; max < 200; max++) {
		CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(max);
		size_t opened = protobuf_open(&buffer, 1);

		for (int i = 0; i < 200; i++)
			protobuf_varint(&buffer, 1);
		protobuf_close(&buffer, opened);
		assert_int_equal(buffer.err, -EFBIG);
		assert_true(buffer.size <= max);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_documented_examples),    cmocka_unit_test(zeros_are_left_out),
		cmocka_unit_test(numbers_at_their_ends),      cmocka_unit_test(nested_messages_of_any_size),
		cmocka_unit_test(a_full_buffer_stays_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
