// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "symbolize/perf_map.h"

static void assert_name(const struct perf_map *map, uint64_t pc, const char *want, uint64_t want_start)
{
	const char *name = NULL;
	uint64_t start = 0;

	if (!want) {
		assert_int_equal(perf_map_find(map, pc, &name, &start), -ENOENT);
		return;
	}
	assert_int_equal(perf_map_find(map, pc, &name, &start), 0);
	assert_string_equal(name, want);
	assert_true(start == want_start);
}

static void lines_become_ranges(void **state)
{
	static const char text[] = "7f0000001000 100 first function\n"
				   "7f0000002000 80 LazyCompile:*second file.js:12\n"
				   "0x7f0000000000 0x10 with_prefix\n"
				   "7f0000003000 ffff torn";
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;

	assert_int_equal(perf_map_parse(text, sizeof(text) - 1, &map), 0);
	assert_int_equal(perf_map_size(map), 3);
	assert_int_equal(perf_map_nr_refused(map), 0);
	assert_name(map, 0x7f0000000fff, NULL, 0);
	assert_name(map, 0x7f0000001000, "first function", 0x7f0000001000);
	assert_name(map, 0x7f00000010ff, "first function", 0x7f0000001000);
	assert_name(map, 0x7f0000001100, NULL, 0);
	assert_name(map, 0x7f0000002010, "LazyCompile:*second file.js:12", 0x7f0000002000);
	assert_name(map, 0x7f000000000f, "with_prefix", 0x7f0000000000);
	assert_name(map, 0x7f0000003000, NULL, 0);
	assert_name(map, 0, NULL, 0);
	assert_name(map, UINT64_MAX, NULL, 0);
}

static void later_lines_win(void **state)
{
	static const char text[] = "1000 1000 old\n1800 100 inner\n1000 100 reused\n1f00 200 across\n1000 100 reused_again\n";
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;

	assert_int_equal(perf_map_parse(text, sizeof(text) - 1, &map), 0);
	assert_name(map, 0x1000, "reused_again", 0x1000);
	assert_name(map, 0x1100, "old", 0x1000);
	assert_name(map, 0x1880, "inner", 0x1800);
	assert_name(map, 0x1900, "old", 0x1000);
	assert_name(map, 0x1f00, "across", 0x1f00);
	assert_name(map, 0x20ff, "across", 0x1f00);
	assert_name(map, 0x2100, NULL, 0);
}

static void nonsense_is_passed_over_and_counted(void **state)
{
	static const char text[] =
	    "\n \nname only\n1000\n1000 10\n1000 10 \n1000 0 empty\n-1 10 x\n10000000000000000 10 x\n"
	    "1000 100000000 too_large\nffffffffffffffff 10 over\n1000 10 nul\0inside\n\xff\xfe\x00\x01\n2000 10 good\n";
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;
	CLEANUP(perf_map_freep) struct perf_map *none = NULL;

	assert_int_equal(perf_map_parse(text, sizeof(text) - 1, &map), 0);
	assert_int_equal(perf_map_size(map), 1);
	assert_int_equal(perf_map_nr_refused(map), 13);
	assert_name(map, 0x2000, "good", 0x2000);
	assert_int_equal(perf_map_parse("", 0, &none), -ENODATA);
	assert_int_equal(perf_map_parse("\x7f"
					"ELF\0\0\0",
					7, &none),
			 -ENODATA);
	assert_int_equal(perf_map_parse("1000 10 torn", 12, &none), -ENODATA);
	assert_null(none);
}

static uint32_t prng(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Compares with a plain scan: the last line that covers the address. */
static void random_lines_agree_with_a_scan(void **state)
{
	for (uint32_t seed = 1; seed <= 2000; seed++) {
		CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(1 << 16);
		CLEANUP(perf_map_freep) struct perf_map *map = NULL;
		uint32_t random = seed, nr = 1 + prng(&random) % 24, starts[24], sizes[24];

		for (uint32_t i = 0; i < nr; i++) {
			starts[i] = prng(&random) % 200;
			sizes[i] = 1 + prng(&random) % (prng(&random) % 4 ? 12 : 120);
			buffer_printf(&text, "%x %x n%u\n", starts[i], sizes[i], i);
		}
		assert_int_equal(perf_map_parse(text.data, text.size, &map), 0);
		for (uint32_t pc = 0; pc < 340; pc++) {
			uint32_t i = nr;
			char want[16];

			while (i > 0 && !(pc >= starts[i - 1] && pc - starts[i - 1] < sizes[i - 1]))
				i--;
			snprintf(want, sizeof(want), "n%u", i - 1);
			assert_name(map, pc, i ? want : NULL, i ? starts[i - 1] : 0);
		}
	}
}

static void a_long_line_is_passed_over(void **state)
{
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;
	CLEANUP(fclosep) FILE *file = tmpfile();

	assert_non_null(file);
	fputs("1000 10 before\n2000 10 ", file);
	for (int i = 0; i < 400000; i++)
		fputc('x', file);
	fputs("\n3000 10 behind\n", file);
	rewind(file);
	assert_int_equal(perf_map_read_fd(fileno(file), &map), 0);
	assert_int_equal(perf_map_size(map), 2);
	assert_int_equal(perf_map_nr_refused(map), 1);
	assert_name(map, 0x1000, "before", 0x1000);
	assert_name(map, 0x2000, NULL, 0);
	assert_name(map, 0x3000, "behind", 0x3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_become_ranges),
		cmocka_unit_test(later_lines_win),
		cmocka_unit_test(nonsense_is_passed_over_and_counted),
		cmocka_unit_test(random_lines_agree_with_a_scan),
		cmocka_unit_test(a_long_line_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
