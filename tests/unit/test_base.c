// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/plain_text.h"
#include "base/process_memory.h"
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

static void decimals_are_strict(void **state)
{
	double value = 7;

	assert_int_equal(number_decimal("0.125", &value), 0);
	assert_true(value == 0.125);
	assert_int_equal(number_decimal("1000000000000000", &value), 0);
	assert_true(value == 1e15);
	assert_int_equal(number_decimal("1000000000000001", &value), -ERANGE);
	assert_int_equal(number_decimal("99999999999999999999999999", &value), -ERANGE);
	for (const char *const *bad = (const char *const[]){ "", ".", ".5", "5.", "-1", "1.2.3", "1.0000000001", "1e3", "1.x", NULL }; *bad;
	     bad++)
		assert_int_equal(number_decimal(*bad, &value), -EINVAL);
	assert_true(value == 1e15);
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

/* From hash(bytes(5 as eight bytes) + bytes(range(n))) in CPython, which uses the same hash, with a key of zeros (PYTHONHASHSEED=0). */
static void hash_is_siphash(void **state)
{
	static const struct {
		uint64_t size, hash;
	} known[] = { { 0, 0xdb30eb0519197f1c }, { 1, 0x7e3b9c1d786388c6 }, { 7, 0x5cdea0ab79ea268c },
		      { 8, 0x23ea415e97f6f568 }, { 9, 0x391addb89fe147c7 }, { 63, 0xd2a3e4e3c2bebfed } };
	static const uint64_t zeros[2];
	uint8_t bytes[64];

	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		assert_true(siphash13(zeros, 5, bytes, known[i].size) == known[i].hash);
}

/* The longest run of occupied slots: a lookup probes no further. */
static uint32_t longest_row(const struct u64_map *map)
{
	uint32_t longest = 0, row = 0;

	for (uint32_t i = 0; i < map->nr_slots * 2; i++) {
		row = map->slots[i % map->nr_slots].used ? row + 1 : 0;
		longest = row > longest ? row : longest;
	}
	return longest;
}

/* Inverts a mixing of constants: gives keys that are equal in the bits that select the slot. */
static uint64_t unmix(uint64_t x)
{
	uint64_t inverse = 1;

	for (int i = 0; i < 6; i++)
		inverse *= 2 - 0xd6e8feb86659fd93ULL * inverse;
	x ^= x >> 32;
	x *= inverse;
	return x ^ x >> 32;
}

static void map_cannot_be_filled_against_it(void **state)
{
	static uint64_t (*const kinds[])(uint64_t i) = { NULL, unmix };

	for (int shift = 0; shift < 64 - 15; shift += 8) {
		for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
			struct u64_map map = { 0 };

			for (uint64_t i = 0; i < 1 << 15; i++)
				assert_int_equal(u64_map_add(&map, kinds[kind] ? kinds[kind](i << shift) : i << shift, 1), 0);
			assert_in_range(longest_row(&map), 1, 1000);
			u64_map_done(&map);
		}
	}
}

/* Characters that control a terminal, end a line or change the writing direction are replaced, alone and in messages. All other text stays.
 */
static void texts_are_made_plain(void **state)
{
	static const char *const hostile[] = { "\n",	       "\r",	       "\x1b",	       "\x7f",	       "\xc2\x80",
					       "\xc2\x9b",     "\xc2\x9f",     "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f",
					       "\xe2\x80\xa8", "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9" };
	struct buffer buffer = BUFFER_INIT(1024);
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		struct diag diag = { 0 };

		snprintf(text, sizeof(text), "a%sb", hostile[i]);
		buffer.size = 0;
		plain_text(&buffer, text, ';');
		assert_string_equal(buffer.data, "a?b");
		assert_int_equal(diag_errno(&diag, EINVAL, "%s", text), -EINVAL);
		assert_string_equal(diag.text, "a?b");
		plain_make(text);
		assert_string_equal(text, "a?b");
	}
	snprintf(text, sizeof(text), "grün, 漢字, א");
	plain_make(text);
	assert_string_equal(text, "grün, 漢字, א");
	snprintf(text, sizeof(text), "cut \xe2\x80");
	plain_make(text);
	assert_string_equal(text, "cut ?");
	buffer_done(&buffer);
}

static void diag_keeps_the_innermost(void **state)
{
	struct diag diag = { 0 };

	assert_int_equal(diag_errno(&diag, ENOENT, "open %s", "x"), -ENOENT);
	assert_int_equal(diag_errno(&diag, EIO, "outer"), -EIO);
	assert_string_equal(diag.text, "open x");
	assert_int_equal(diag_errno(NULL, EIO, "nobody listens"), -EIO);
}

/* Mapped pages, and none after them. */
static void memory_of_a_process(void **state)
{
	enum { PAGE = 4096, NR = 70 };
	char *pages = mmap(NULL, (NR + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char to[(NR + 1) * PAGE];
	const uint64_t from = (uint64_t)pages;
	CLEANUP(closep) int own = process_memory_open((uint32_t)getpid());

	assert_true(own >= 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	for (int i = 0; i < NR * PAGE; i++)
		pages[i] = (char)(i * 7 + i / PAGE);
	assert_int_equal(munmap(pages + NR * PAGE, PAGE), 0);
	assert_int_equal(process_memory_read(own, from + 5, to, PAGE), 0);
	assert_memory_equal(to, pages + 5, PAGE);
	assert_int_equal(process_memory_read(own, from + NR * PAGE - 5, to, 6), -EFAULT);
	assert_int_equal(process_memory_open(1u << 30), -ESRCH);
	assert_int_equal(process_memory_read_some(own, from + 100, to, sizeof(to)), NR * PAGE - 100);
	assert_memory_equal(to, pages + 100, NR * PAGE - 100);
	assert_int_equal(process_memory_read_some(own, from + 100, to, PAGE), PAGE);
	assert_int_equal(process_memory_read_some(own, from + NR * PAGE, to, PAGE), 0);
	assert_int_equal(munmap(pages, NR * PAGE), 0);
}

/* Any other file is not opened even for a moment: opening would cause an event. */
static void only_regular_files_are_opened(void **state)
{
	char folder[] = "/tmp/test-base-XXXXXX", fifo[64], file[64], text[8] = "", events[4096];
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd;
	struct stat st;

	assert_non_null(mkdtemp(folder));
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	snprintf(file, sizeof(file), "%s/file", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_true(inotify_add_watch(watch, folder, IN_OPEN) >= 0);
	assert_int_equal(file_open_regular(fifo, &st), -ENOEXEC);
	assert_int_equal(file_open_regular(folder, &st), -ENOEXEC);
	assert_int_equal(file_open_regular(file, &st), -ENOENT);
	assert_true(read(watch, events, sizeof(events)) < 0 && errno == EAGAIN);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(file_write(fd, "whole", 5), 0);
	close(fd);
	fd = file_open_regular(file, &st);
	assert_true(fd >= 0 && st.st_size == 5);
	assert_int_equal(file_write(fd, "x", 1), -EBADF);
	assert_int_equal(read(fd, text, sizeof(text)), 5);
	assert_string_equal(text, "whole");
	close(fd);
	close(watch);
	unlink(fifo);
	unlink(file);
	rmdir(folder);
}

/* A pipe takes what it has room for; the rest is written when the pipe is read. */
static void all_is_written(void **state)
{
	static char bytes[1 << 20], got[sizeof(bytes)];
	size_t nr = 0;
	int ends[2], status;
	pid_t child;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 31 + i / 4096);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		close(ends[0]);
		_exit(file_write(ends[1], bytes, sizeof(bytes)) ? 1 : 0);
	}
	close(ends[1]);
	for (ssize_t more; (more = read(ends[0], got + nr, sizeof(got) - nr)) > 0; )
		nr += (size_t)more;
	assert_int_equal(nr, sizeof(bytes));
	assert_memory_equal(got, bytes, sizeof(bytes));
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_whole),
		cmocka_unit_test(decimals_are_strict),
		cmocka_unit_test(hex_stops_at_the_end),
		cmocka_unit_test(reader_failure_is_sticky),
		cmocka_unit_test(reader_refuses_endless_leb),
		cmocka_unit_test(buffer_stops_at_its_maximum),
		cmocka_unit_test(arena_stops_at_its_maximum),
		cmocka_unit_test(map_agrees_with_an_array),
		cmocka_unit_test(map_holds_several_under_one_key),
		cmocka_unit_test(map_cannot_be_filled_against_it),
		cmocka_unit_test(hash_is_siphash),
		cmocka_unit_test(memory_of_a_process),
		cmocka_unit_test(diag_keeps_the_innermost),
		cmocka_unit_test(texts_are_made_plain),
		cmocka_unit_test(only_regular_files_are_opened),
		cmocka_unit_test(all_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
