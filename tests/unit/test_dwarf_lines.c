// SPDX-License-Identifier: Apache-2.0
/* Lines and inlined functions of a C++ program, built with the various forms of DWARF, at random addresses of its code: the symbolizer
 * against binutils' addr2line, which has a reader of its own. Arguments: g++ and the program's source. Not compared: addresses for which
 * addr2line knows no line (the symbolizer must know none either), and the scopes of names without linkage name. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dwarf/dwarf_lines.h"
#include "symbolize/symbolizer.h"

#define NR_ADDRESSES 1500
#define NR_LIMITED   150
#define MAX_FRAMES   64

static const char *compiler, *source;
static char folder[] = "/tmp/sonde-lines-XXXXXX";

static void symbolizer_freep(struct symbolizer **symbolizer)
{
	symbolizer_free(*symbolizer);
}

__attribute__((format(printf, 1, 2))) static void run(const char *fmt, ...)
{
	char command[4 * PATH_MAX];
	va_list args;
	int length = snprintf(command, sizeof(command), "cd %s && ", folder);

	va_start(args, fmt);
	vsnprintf(command + length, sizeof(command) - (size_t)length, fmt, args);
	va_end(args);
	if (system(command))
		fail_msg("%s", command);
}

static struct elf_file *open_made(const char *name)
{
	struct elf_file *elf = NULL;
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || elf_file_open_fd(fd, NULL, &elf))
		fail_msg("%s", path);
	return elf;
}

/* Drops the scopes of a name that has no linkage name: addr2line shows none. */
static const char *last_part(const char *name)
{
	const char *part = name;

	for (const char *at = name; strncmp(name, "_Z", 2) != 0 && (at = strstr(at, "::")); at += 2)
		part = at + 2;
	return part;
}

/* A symbol may add gcc's suffix of a clone (.isra.0), and may be another alias of a constructor or destructor (C1 and C2, D1 and D2). */
static bool is_same_name(const char *ours, const char *theirs)
{
	size_t length = strcspn(theirs, ".");

	ours = last_part(ours);
	for (size_t i = 0; i < length; i++) {
		bool is_alias = i && strchr("CD", theirs[i - 1]) && strchr("12", theirs[i]) && ours[i] && strchr("12", ours[i]);

		if (ours[i] != theirs[i] && !is_alias)
			return false;
	}
	return ours[length] == '\0' || ours[length] == '.';
}

/* addr2line attributes a lambda's code to the enclosing function. */
static bool has_lambda(const struct symbol_name *names, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (strcmp(names[i].system_name, "deep::operator()") == 0)
			return true;
	}
	return false;
}

static void read_line(FILE *file, char *line, size_t size)
{
	assert_non_null(fgets(line, (int)size, file));
	line[strcspn(line, "\n")] = '\0';
}

/* Compares one address of addr2line's output; the line with the address has been read. Sets `next` to the line of the next address, or "".
 * Returns the number of frames. */
static uint32_t compare(FILE *answer, const struct symbol_name *names, uint32_t nr, uint64_t elf_vaddr, char *next, bool *ret_known)
{
	char place[PATH_MAX], path[PATH_MAX], *colon;
	uint32_t i = 0;

	*ret_known = false;
	while (fgets(next, PATH_MAX, answer) && strncmp(next, "0x", 2) != 0) {
		next[strcspn(next, "\n")] = '\0';
		read_line(answer, place, sizeof(place));
		place[strcspn(place, " ")] = '\0';
		colon = strrchr(place, ':');
		assert_non_null(colon);
		*colon = '\0';
		if (place[0] != '/') { /* addr2line does not know it */
			assert_true(i > 0 || nr == 0 || names[0].line == 0);
			i++;
			continue;
		}
		if (!nr || has_lambda(names, nr))
			continue;
		*ret_known = true;
		if (i >= nr)
			fail_msg("%#" PRIx64 " has frame %u, %s", elf_vaddr, i, next);
		if (!realpath(place, path) || !is_same_name(names[i].system_name, next) ||
		    (uint32_t)strtoul(colon + 1, NULL, 10) != names[i].line || !realpath(names[i].file, place) || strcmp(path, place) != 0)
			fail_msg("%#" PRIx64 " frame %u: %s %s:%s, not %s %s:%u", elf_vaddr, i, next, path, colon + 1, names[i].system_name,
				 names[i].file, names[i].line);
		i++;
	}
	return i;
}

static void compare_program(const char *name, const char *program_to_ask, uint32_t want_missing)
{
	CLEANUP(symbolizer_freep)
	struct symbolizer *symbolizer = symbolizer_new(&(struct symbolizer_options){ .debug_dir = folder, .lines = true });
	CLEANUP(elf_file_freep) struct elf_file *elf = open_made(name);
	CLEANUP(fclosep) FILE *answer = NULL;
	const struct elf_section *text = elf_file_find_section(elf, ".text");
	uint32_t nr_known = 0, nr_inlined = 0;
	char path[PATH_MAX], next[PATH_MAX];
	FILE *questions;

	snprintf(path, sizeof(path), "%s/questions", folder);
	questions = fopen(path, "w");
	assert_true(questions && symbolizer && text);
	srand(5);
	for (uint32_t i = 0; i < NR_ADDRESSES; i++)
		fprintf(questions, "%" PRIx64 "\n", text->vaddr + (uint64_t)rand() % text->size);
	fclose(questions);
	run("addr2line -i -f -a -e %s <questions >answer", program_to_ask);
	snprintf(path, sizeof(path), "%s/answer", folder);
	answer = fopen(path, "r");
	assert_non_null(answer);
	read_line(answer, next, sizeof(next));
	for (uint32_t i = 0; i < NR_ADDRESSES; i++) {
		uint64_t elf_vaddr = strtoull(next, NULL, 16);
		struct symbol_name names[MAX_FRAMES];
		uint32_t nr = 0, nr_theirs;
		bool known;

		if (symbolizer_object(symbolizer, 1, elf, NULL, elf_vaddr, names, MAX_FRAMES, &nr))
			nr = 0;
		nr_theirs = compare(answer, names, nr, elf_vaddr, next, &known);
		if (known && nr != nr_theirs)
			fail_msg("%s %#" PRIx64 ": %u frames, not %u", name, elf_vaddr, nr_theirs, nr);
		nr_known += known;
		nr_inlined += nr > 1;
	}
	print_message("%-8s %u addresses with lines, %u with inlined functions\n", name, nr_known, nr_inlined);
	assert_true(nr_known > NR_ADDRESSES * 3 / 4 && nr_inlined > NR_ADDRESSES / 4);
	assert_int_equal(symbolizer_lines_counts(symbolizer).nr_missing_dwo, want_missing);
	assert_int_equal(symbolizer_lines_counts(symbolizer).nr_cut, 0);
}

static void plain_and_compressed(void **state)
{
	run("%s -O2 -g -gdwarf-5 %s -o five && %s -O2 -g -gdwarf-4 %s -o four", compiler, source, compiler, source);
	compare_program("five", "five", 0);
	compare_program("four", "four", 0);
	run("objcopy --compress-debug-sections=zlib five packed");
	compare_program("packed", "five", 0);
}

static void dwz(void **state)
{
	run("cp five w5 && dwz w5 && cp four one && cp four two && dwz -m common.debug -M %s/common.debug one two", folder);
	compare_program("w5", "five", 0);
	compare_program("one", "four", 0);
}

static void split(void **state)
{
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = symbolizer_new(&(struct symbolizer_options){ .lines = true });
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	const struct elf_section *text;
	struct symbol_name names[MAX_FRAMES];
	uint32_t nr, nr_lines = 0;

	for (int version = 4; version <= 5; version++) {
		char name[8];

		run("%s -O2 -gdwarf-%d -gsplit-dwarf -c %s -o s%d.o && %s s%d.o -o s%d", compiler, version, source, version, compiler,
		    version, version);
		snprintf(name, sizeof(name), "s%d", version);
		compare_program(name, version == 4 ? "four" : "five", 0);
	}
	run("rm s5.dwo");
	elf = open_made("s5");
	text = elf_file_find_section(elf, ".text");
	for (uint64_t off = 0; off < text->size; off += 16) {
		if (symbolizer_object(symbolizer, 1, elf, NULL, text->vaddr + off, names, MAX_FRAMES, &nr))
			continue;
		assert_int_equal(nr, 1);
		nr_lines += names[0].line != 0 && strstr(names[0].file, ".cc");
	}
	assert_true(nr_lines > 5);
	assert_int_equal(symbolizer_lines_counts(symbolizer).nr_missing_dwo, 1);
}

static void names_of_symbols_stay(void **state)
{
	CLEANUP(symbolizer_freep) struct symbolizer *plain = symbolizer_new(NULL);
	CLEANUP(symbolizer_freep) struct symbolizer *lines = symbolizer_new(&(struct symbolizer_options){ .lines = true });
	CLEANUP(elf_file_freep) struct elf_file *elf = open_made("five");
	const struct elf_section *text = elf_file_find_section(elf, ".text");

	for (uint64_t off = 0; off < text->size; off++) {
		struct symbol_name one[1], many[MAX_FRAMES];
		uint32_t nr;

		if (symbolizer_object(plain, 1, elf, NULL, text->vaddr + off, one, 1, &nr))
			continue;
		assert_int_equal(symbolizer_object(lines, 1, elf, NULL, text->vaddr + off, many, MAX_FRAMES, &nr), 0);
		assert_string_equal(many[nr - 1].name, one[0].name);
		assert_int_equal(many[nr - 1].start, one[0].start);
		assert_int_equal(many[0].start, one[0].start);
	}
}

static bool same_names(const struct symbol_name *a, const struct symbol_name *b, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (strcmp(a[i].name, b[i].name) != 0 || strcmp(a[i].file, b[i].file) != 0 || a[i].line != b[i].line ||
		    a[i].start != b[i].start || a[i].start_line != b[i].start_line)
			return false;
	}
	return true;
}

/* What is said of one address is true of each in its extent; and the extents are fewer than the addresses. */
static void extents_say_the_same(void **state)
{
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = symbolizer_new(&(struct symbolizer_options){ .lines = true });
	CLEANUP(elf_file_freep) struct elf_file *elf = open_made("five");
	const struct elf_section *text = elf_file_find_section(elf, ".text");
	struct symbol_name first[MAX_FRAMES], names[MAX_FRAMES];
	struct symbol_extent extent = { 0 };
	uint32_t nr_first = 0, nr_extents = 0;

	for (uint64_t elf_vaddr = text->vaddr; elf_vaddr < text->vaddr + text->size; elf_vaddr++) {
		uint32_t nr = 0;

		if (symbolizer_object(symbolizer, 1, elf, NULL, elf_vaddr, names, MAX_FRAMES, &nr))
			nr = 0;
		if (elf_vaddr < extent.end) {
			assert_int_equal(nr, nr_first);
			assert_true(same_names(first, names, nr));
			continue;
		}
		extent = symbolizer_extent(symbolizer, 1, elf_vaddr);
		assert_in_range(elf_vaddr, extent.start, extent.end - 1);
		memcpy(first, names, sizeof(names));
		nr_first = nr;
		nr_extents++;
	}
	print_message("%u extents of %u addresses\n", nr_extents, (unsigned int)text->size);
	assert_in_range(nr_extents, 10, text->size / 2);
}

static bool same_frames(const struct dwarf_frame *a, const struct dwarf_frame *b, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (strcmp(a[i].name, b[i].name) != 0 || strcmp(a[i].file, b[i].file) != 0 || a[i].line != b[i].line ||
		    a[i].start_line != b[i].start_line || a[i].start_vaddr != b[i].start_vaddr)
			return false;
	}
	return true;
}

/* Random requests to a program of two units, while tables are dropped and libdw is reopened all the time. */
static void limits_change_no_answer(void **state)
{
	const struct dwarf_lines_limits small = { .max_table_bytes = 1, .max_libdw_bytes = 1, .max_page_bytes = 1 };
	const char *files[] = { "many", "many_packed" };

	run("sed 's/orchard/meadow/g;s/int main(/int other(/' %s >other.cc && %s -O2 -g other.cc %s -o many && "
	    "objcopy --compress-debug-sections=zlib many many_packed",
	    source, compiler, source);
	for (size_t k = 0; k < ARRAY_SIZE(files); k++) {
		CLEANUP(elf_file_freep) struct elf_file *elf = open_made(files[k]);
		CLEANUP(dwarf_lines_freep) struct dwarf_lines *free_one = NULL, *limited = NULL;
		const struct elf_section *text = elf_file_find_section(elf, ".text");
		uint32_t nr_known = 0;

		assert_int_equal(dwarf_lines_open(elf, NULL, NULL, &free_one), 0);
		assert_int_equal(dwarf_lines_open_limited(elf, NULL, &small, NULL, &limited), 0);
		srand(6);
		for (uint32_t i = 0; i < NR_LIMITED; i++) {
			uint64_t elf_vaddr = text->vaddr + (uint64_t)rand() % text->size;
			struct dwarf_frame a[MAX_FRAMES], b[MAX_FRAMES];
			uint32_t nr_a = 0, nr_b = 0;
			int err = dwarf_lines_find(free_one, elf_vaddr, a, MAX_FRAMES, &nr_a);

			assert_int_equal(dwarf_lines_find(limited, elf_vaddr, b, MAX_FRAMES, &nr_b), err);
			assert_int_equal(nr_a, nr_b);
			assert_true(same_frames(a, b, nr_a));
			nr_known += !err;
		}
		assert_true(nr_known > NR_LIMITED / 2);
	}
}

static void what_cannot_be_unpacked_is_counted(void **state)
{
	const struct dwarf_lines_limits small = { .max_unpacked_bytes = 4096 };
	CLEANUP(elf_file_freep) struct elf_file *plain = open_made("five"), *packed = open_made("packed"), *zstd = NULL;
	struct dwarf_lines *lines = NULL;
	struct dwarf_frame frames[MAX_FRAMES];
	uint32_t nr;

	assert_int_equal(dwarf_lines_open_limited(plain, NULL, &small, NULL, &lines), 0); /* uncompressed: no limit */
	assert_int_equal(dwarf_lines_counts(lines).nr_packed, 0);
	dwarf_lines_free(lines);
	assert_int_equal(dwarf_lines_open_limited(packed, NULL, &small, NULL, &lines), 0);
	assert_int_equal(dwarf_lines_counts(lines).nr_packed, 1);
	assert_int_equal(dwarf_lines_find(lines, elf_file_find_section(packed, ".text")->vaddr, frames, MAX_FRAMES, &nr), -ENOENT);
	dwarf_lines_free(lines);
	run("objcopy --compress-debug-sections=zstd five zstd");
	zstd = open_made("zstd");
	assert_int_equal(dwarf_lines_open(zstd, NULL, NULL, &lines), 0);
	assert_int_equal(dwarf_lines_counts(lines).nr_packed, 1);
	assert_int_equal(dwarf_lines_find(lines, elf_file_find_section(zstd, ".text")->vaddr, frames, MAX_FRAMES, &nr), -ENOENT);
	dwarf_lines_free(lines);
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	run("cd / && rm -r %s", folder);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_and_compressed),
		cmocka_unit_test(dwz),
		cmocka_unit_test(split),
		cmocka_unit_test(names_of_symbols_stay), cmocka_unit_test(extents_say_the_same),
		cmocka_unit_test(limits_change_no_answer),
		cmocka_unit_test(what_cannot_be_unpacked_is_counted),
	};

	if (argc != 3)
		return 2;
	compiler = argv[1];
	source = argv[2];
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
