// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/diag.h"
#include "base/number.h"
#include "base/reader.h"
#include "base/u64_map.h"

static void numbers_are_whole(void **state)
{
	uint64_t value = 7;

	assert_int_equal(number_u64("0", 9, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(number_u64("18446744073709551615", UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(number_u64("18446744073709551616", UINT64_MAX, &value), -ERANGE);
	assert_int_equal(number_u64("10", 9, &value), -ERANGE);
	for (const char *const *bad = (const char *const[]){ "", "-1", "+1", " 1", "1 ", "1x", "0x1", "1.0", NULL }; *bad; bad++)
		assert_int_equal(number_u64(*bad, UINT64_MAX, &value), -EINVAL);
	assert_true(value == UINT64_MAX); /* failures leave it alone */
}

static void hex_stops_at_the_end(void **state)
{
	const char text[] = "7fFe-1";
	const char *pos = text;
	uint64_t value = 0;

	assert_int_equal(number_hex(&pos, text + sizeof(text) - 1, &value), 0);
	assert_int_equal(value, 0x7ffe);
	assert_int_equal(*pos, '-');
	assert_int_equal(number_hex(&pos, text + sizeof(text) - 1, &value), -EINVAL);
	pos = "11112222333344445";
	assert_int_equal(number_hex(&pos, pos + 17, &value), -EINVAL);
}

static void reader_failure_is_sticky(void **state)
{
	const uint8_t bytes[] = { 1, 2, 3, 0xe5, 0x8e, 0x26, 0x7f, 'h', 'i', 0, 9 };
	struct reader r = reader_of(bytes, sizeof(bytes));

	assert_int_equal(reader_u8(&r), 1);
	assert_int_equal(reader_u16(&r), 0x0302);
	assert_int_equal(reader_uleb(&r), 624485);
	assert_int_equal(reader_sleb(&r), -1);
	assert_string_equal(reader_text(&r), "hi");
	assert_false(r.bad);
	assert_int_equal(reader_u32(&r), 0);
	assert_true(r.bad);
	assert_int_equal(reader_u8(&r), 0); /* although one byte was left */
}

static void reader_refuses_endless_leb(void **state)
{
	uint8_t bytes[32];
	struct reader r = reader_of(bytes, sizeof(bytes));

	memset(bytes, 0x80, sizeof(bytes));
	assert_int_equal(reader_uleb(&r), 0);
	assert_true(r.bad);
}

static void buffer_stops_at_its_maximum(void **state)
{
	struct buffer buffer = BUFFER_INIT(8);

	buffer_printf(&buffer, "%d-%s", 12, "abc");
	assert_string_equal(buffer.data, "12-abc");
	buffer_text(&buffer, "xyz");
	assert_int_equal(buffer.err, -EFBIG);
	buffer_text(&buffer, "x");
	assert_int_equal(buffer.size, 6); /* the failure is sticky */
	buffer_done(&buffer);
}

static void arena_stops_at_its_maximum(void **state)
{
	struct arena *arena = arena_new(256 << 10);
	char *small = arena_alloc(arena, 3), *big = arena_alloc(arena, 100 << 10);

	assert_non_null(small);
	assert_non_null(big);
	memset(big, 1, 100 << 10);
	assert_null(arena_alloc(arena, 200 << 10));
	assert_non_null(arena_alloc(arena, 16));
	arena_free(arena);
}

static void map_agrees_with_an_array(void **state)
{
	struct u64_map map = { 0 };
	uint32_t want[512] = { 0 }, seed = 1;

	for (int step = 0; step < 20000; step++) {
		uint32_t key = (seed = seed * 1664525 + 1013904223) >> 16 & 511;

		if (want[key]) {
			assert_int_equal(*u64_map_find(&map, key * 64), want[key]);
			u64_map_remove(&map, key * 64, want[key]);
			want[key] = 0;
		} else {
			assert_null(u64_map_find(&map, key * 64));
			want[key] = (uint32_t)step + 1;
			assert_int_equal(u64_map_add(&map, key * 64, want[key]), 0);
		}
	}
	u64_map_done(&map);
}

static void map_holds_several_under_one_key(void **state)
{
	struct u64_map map = { 0 };
	uint32_t cursor = 0, sum = 0, *value;

	for (uint32_t i = 1; i <= 100; i++)
		assert_int_equal(u64_map_add(&map, i % 10, i), 0);
	while ((value = u64_map_each(&map, 3, &cursor)))
		sum += *value;
	assert_int_equal(sum, 3 + 13 + 23 + 33 + 43 + 53 + 63 + 73 + 83 + 93);
	u64_map_done(&map);
}

static void diag_keeps_the_innermost(void **state)
{
	struct diag diag = { 0 };

	assert_int_equal(diag_errno(&diag, ENOENT, "open %s", "x"), -ENOENT);
	assert_int_equal(diag_errno(&diag, EIO, "outer"), -EIO);
	assert_string_equal(diag.text, "open x");
	assert_int_equal(diag_errno(NULL, EIO, "nobody listens"), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_whole),
		cmocka_unit_test(hex_stops_at_the_end),
		cmocka_unit_test(reader_failure_is_sticky),
		cmocka_unit_test(reader_refuses_endless_leb),
		cmocka_unit_test(buffer_stops_at_its_maximum),
		cmocka_unit_test(arena_stops_at_its_maximum),
		cmocka_unit_test(map_agrees_with_an_array),
		cmocka_unit_test(map_holds_several_under_one_key),
		cmocka_unit_test(diag_keeps_the_innermost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
