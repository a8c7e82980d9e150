// SPDX-License-Identifier: Apache-2.0
/* Records made here from the specification. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "symbolize/jitdump.h"

static void u32(struct buffer *to, uint32_t value)
{
	buffer_append(to, &value, sizeof(value));
}

static void u64(struct buffer *to, uint64_t value)
{
	buffer_append(to, &value, sizeof(value));
}

static void header(struct buffer *to, uint32_t magic)
{
	const uint32_t words[] = { magic, 1, 40, 62, 0, 7, 0, 0, 0, 0 };

	buffer_append(to, words, sizeof(words));
}

static void record(struct buffer *to, uint32_t id, uint32_t payload_bytes)
{
	u32(to, id);
	u32(to, 16 + payload_bytes);
	u64(to, 0);
}

static void load(struct buffer *to, uint64_t pc, uint64_t size, uint64_t index, const char *name, uint32_t code_bytes)
{
	record(to, 0, 40 + (uint32_t)strlen(name) + 1 + code_bytes);
	u64(to, 0);
	u64(to, 0);
	u64(to, pc);
	u64(to, size);
	u64(to, index);
	buffer_append(to, name, strlen(name) + 1);
	for (uint32_t i = 0; i < code_bytes; i++)
		buffer_append(to, "\x90", 1);
}

static void move(struct buffer *to, uint64_t from, uint64_t pc, uint64_t size, uint64_t index)
{
	record(to, 1, 48);
	u64(to, 0);
	u64(to, 0);
	u64(to, from);
	u64(to, pc);
	u64(to, size);
	u64(to, index);
}

struct row {
	uint64_t pc;
	uint32_t line;
	const char *file;
};

static void lines(struct buffer *to, uint64_t pc, const struct row *rows, uint32_t nr)
{
	uint32_t size = 16;

	for (uint32_t i = 0; i < nr; i++)
		size += 16 + (uint32_t)strlen(rows[i].file) + 1;
	record(to, 2, size);
	u64(to, pc);
	u64(to, nr);
	for (uint32_t i = 0; i < nr; i++) {
		u64(to, rows[i].pc);
		u32(to, rows[i].line);
		u32(to, 0);
		buffer_append(to, rows[i].file, strlen(rows[i].file) + 1);
	}
}

static int read_bytes(const struct buffer *bytes, struct jitdump **ret_dump)
{
	CLEANUP(closep) int fd = memfd_create("jitdump", MFD_CLOEXEC);

	assert_true(fd >= 0 && write(fd, bytes->data, bytes->size) == (ssize_t)bytes->size);
	return jitdump_read_fd(fd, ret_dump);
}

static void assert_place(const struct jitdump *dump, uint64_t pc, const char *name, uint64_t start, const char *file, uint32_t line)
{
	struct jitdump_place place;

	if (!name) {
		assert_int_equal(jitdump_find(dump, pc, &place), -ENOENT);
		return;
	}
	assert_int_equal(jitdump_find(dump, pc, &place), 0);
	assert_string_equal(place.name, name);
	assert_string_equal(place.file, file);
	assert_true(place.start == start && place.line == line);
}

#define START(bytes) \
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT((size_t)16 << 20); \
	CLEANUP(jitdump_freep) struct jitdump *dump = NULL; \
	header(&bytes, JITDUMP_MAGIC)

static void names_and_lines(void **state)
{
	static const struct row rows[] = { { 0x1010, 12, "b.x" }, { 0x1000, 10, "a.x" }, { 0x1004, 11, "\xff" }, { 0x1040, 99, "out.x" } };
	static const struct row v8[] = { { 0x2040, 1, "c.js" }, { 0x2048, 2, "c.js" }, { 0x2010, 77, "c.js" } };

	START(bytes);
	lines(&bytes, 0x1000, rows, 4);
	load(&bytes, 0x1000, 0x40, 1, "first", 64);
	lines(&bytes, 0x2000, v8, 3);
	load(&bytes, 0x2000, 0x40, 2, "JS:*f c.js:1:1", 0);
	lines(&bytes, 0x0900, rows, 4); /* of another function */
	load(&bytes, 0x3000, 0x40, 3, "bare", 0);
	assert_int_equal(read_bytes(&bytes, &dump), 0);
	assert_int_equal(jitdump_size(dump), 3);
	assert_int_equal(jitdump_nr_refused(dump), 0);
	assert_place(dump, 0xfff, NULL, 0, NULL, 0);
	assert_place(dump, 0x1000, "first", 0x1000, "a.x", 10);
	assert_place(dump, 0x100f, "first", 0x1000, "a.x", 11);
	assert_place(dump, 0x103f, "first", 0x1000, "b.x", 12);
	assert_place(dump, 0x1040, NULL, 0, NULL, 0);
	assert_place(dump, 0x2007, "JS:*f c.js:1:1", 0x2000, "c.js", 1);
	assert_place(dump, 0x2008, "JS:*f c.js:1:1", 0x2000, "c.js", 2);
	assert_place(dump, 0x3001, "bare", 0x3000, "", 0);
}

static void code_moves_with_its_lines(void **state)
{
	static const struct row rows[] = { { 0x1000, 10, "a.x" }, { 0x1008, 11, "a.x" } };

	START(bytes);
	lines(&bytes, 0x1000, rows, 2);
	load(&bytes, 0x1000, 0x10, 1, "moved", 0);
	move(&bytes, 0x1000, 0x5000, 0x10, 1);
	load(&bytes, 0x1008, 0x10, 2, "over", 0);
	for (int i = 0; i < 1000; i++) { /* back and forth */
		move(&bytes, 0x5000, 0x6000, 0x10, 1);
		move(&bytes, 0x6000, 0x5000, 0x10, 1);
	}
	move(&bytes, 0x7000, 0x8000, 0x10, 1); /* there is no such function */
	move(&bytes, 0x1008, 0x8000, 0x10, 9);
	assert_int_equal(read_bytes(&bytes, &dump), 0);
	assert_int_equal(jitdump_nr_refused(dump), 2);
	assert_place(dump, 0x5009, "moved", 0x5000, "a.x", 11);
	assert_place(dump, 0x6001, "moved", 0x6000, "a.x", 10);
	assert_place(dump, 0x1007, "moved", 0x1000, "a.x", 10);
	assert_place(dump, 0x1008, "over", 0x1008, "", 0);
	assert_place(dump, 0x8000, NULL, 0, NULL, 0);
}

/* As node 20 writes them: the bytes of the names were overwritten. */
static void of_wrong_lines_none_is_kept(void **state)
{
	static const struct row garbled[] = { { 0x1040, 1, "c.js" }, { 0x1048, 2, "\t\xdd\x01" } };
	static const struct row negative[] = { { 0x3000, 1, "a.x" }, { 0x3004, 0x80000000, "a.x" } };
	static const struct row other[] = { { 0x2040, 1, "c.js" }, { 0x2048, 2, "another" } };

	START(bytes);
	lines(&bytes, 0x1000, garbled, 2);
	load(&bytes, 0x1000, 0x40, 1, "JS:*f c.js:1:1", 0);
	lines(&bytes, 0x3000, negative, 2);
	load(&bytes, 0x3000, 0x40, 1, "g", 0);
	lines(&bytes, 0x2000, other, 2);
	load(&bytes, 0x2000, 0x40, 1, "JS:*f c.js:1:1", 0);
	record(&bytes, 2, 16 + 20); /* the size is too small */
	u64(&bytes, 0x4000);
	u64(&bytes, 0);
	for (int i = 0; i < 5; i++)
		u32(&bytes, 0);
	load(&bytes, 0x4000, 0x40, 1, "h", 0);
	assert_int_equal(read_bytes(&bytes, &dump), 0);
	assert_int_equal(jitdump_nr_refused(dump), 3);
	assert_place(dump, 0x1000, "JS:*f c.js:1:1", 0x1000, "", 0);
	assert_place(dump, 0x3000, "g", 0x3000, "", 0);
	assert_place(dump, 0x2007, "JS:*f c.js:1:1", 0x2000, "c.js", 1);
	assert_place(dump, 0x2008, "JS:*f c.js:1:1", 0x2000, "", 0);
}

/* Erlang's functions begin with the last line of the previous function. */
static void lines_of_other_code_are_left_out(void **state)
{
	static const struct row rows[] = { { 0xfc0, 7, "a.erl" }, { 0x1008, 9, "\xff" }, { 0x1010, 0, "" } };

	START(bytes);
	lines(&bytes, 0x1000, rows, 3);
	load(&bytes, 0x1000, 0x20, 1, "f", 0);
	assert_int_equal(read_bytes(&bytes, &dump), 0);
	assert_int_equal(jitdump_nr_refused(dump), 0);
	assert_place(dump, 0x1000, "f", 0x1000, "", 0);
	assert_place(dump, 0x1008, "f", 0x1000, "a.erl", 9);
	assert_place(dump, 0x1010, "f", 0x1000, "", 0);
}

/* The writer may still be running, so a file may end anywhere. */
static void cut_anywhere_it_says_what_was_whole(void **state)
{
	static const struct row rows[] = { { 0x2000, 10, "a.x" } };
	size_t first, second;

	START(bytes);
	load(&bytes, 0x1000, 0x10, 1, "first", 3);
	first = bytes.size;
	lines(&bytes, 0x2000, rows, 1);
	load(&bytes, 0x2000, 0x10, 2, "second", 5);
	second = bytes.size;
	for (size_t size = 0; size <= second; size++) {
		CLEANUP(jitdump_freep) struct jitdump *part = NULL;
		struct buffer cut = { .data = bytes.data, .size = size };

		assert_int_equal(read_bytes(&cut, &part), size < 40 ? -EBADMSG : size < first ? -ENODATA : 0);
		if (!part)
			continue;
		assert_int_equal(jitdump_size(part), size == second ? 2 : 1);
		assert_int_equal(jitdump_nr_refused(part), 0);
	}
}

static void nonsense_is_refused_and_counted(void **state)
{
	START(bytes);
	load(&bytes, 0x1000, 0, 1, "empty", 0);
	load(&bytes, UINT64_MAX - 4, 0x10, 1, "over", 0);
	load(&bytes, 0x1000, (uint64_t)1 << 32, 1, "large", 0);
	load(&bytes, 0x1000, 0x10, 1, "", 0);
	record(&bytes, 0, 4);
	u32(&bytes, 0);
	record(&bytes, 2, 16); /* more lines than there is room for */
	u64(&bytes, 0x2000);
	u64(&bytes, UINT64_MAX);
	load(&bytes, 0x2000, 0x10, 1, "good", 0);
	record(&bytes, 3, 0);
	u64(&bytes, 0); /* a record of size 0: nothing after it can be found */
	u64(&bytes, 0);
	load(&bytes, 0x3000, 0x10, 1, "behind", 0);
	assert_int_equal(read_bytes(&bytes, &dump), 0);
	assert_int_equal(jitdump_size(dump), 1);
	assert_int_equal(jitdump_nr_refused(dump), 7);
	assert_place(dump, 0x2000, "good", 0x2000, "", 0);
}

static void foreign_files_are_none(void **state)
{
	CLEANUP(buffer_done) struct buffer swapped = BUFFER_INIT(1 << 10);
	CLEANUP(closep) int sparse = memfd_create("sparse", MFD_CLOEXEC);
	struct jitdump *dump = NULL;

	header(&swapped, __builtin_bswap32(JITDUMP_MAGIC));
	load(&swapped, 0x1000, 0x10, 1, "first", 0);
	assert_int_equal(read_bytes(&swapped, &dump), -EBADMSG);
	assert_int_equal(ftruncate(sparse, (off_t)10 << 30), 0);
	assert_int_equal(jitdump_read_fd(sparse, &dump), -EBADMSG);
	swapped.size = 0;
	header(&swapped, JITDUMP_MAGIC);
	load(&swapped, 0x1000, 0x10, 1, "first", 0);
	assert_true(pwrite(sparse, swapped.data, swapped.size, 0) == (ssize_t)swapped.size);
	assert_int_equal(jitdump_read_fd(sparse, &dump), 0); /* returns at once: zeros are no record */
	assert_int_equal(jitdump_size(dump), 1);
	assert_int_equal(jitdump_nr_refused(dump), 1);
	jitdump_free(dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_lines),
		cmocka_unit_test(code_moves_with_its_lines),
		cmocka_unit_test(of_wrong_lines_none_is_kept),
		cmocka_unit_test(lines_of_other_code_are_left_out),
		cmocka_unit_test(cut_anywhere_it_says_what_was_whole),
		cmocka_unit_test(nonsense_is_refused_and_counted),
		cmocka_unit_test(foreign_files_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
