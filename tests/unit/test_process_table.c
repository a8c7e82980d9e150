// SPDX-License-Identifier: Apache-2.0
/* Who has what mapped, when: the process table against an array of pages, lines of /proc/PID/maps, and which files are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf_image.h"
#include "process/maps_line.h"
#include "process/process_table.h"

#define PAGE 0x1000ULL

static struct process_table *table;
static char folder[64];

static int set_up(void **state)
{
	table = process_table_new(NULL);
	snprintf(folder, sizeof(folder), "/tmp/sonde-test-XXXXXX");
	return !table || !mkdtemp(folder);
}

static int tear_down(void **state)
{
	char command[128];

	process_table_free(table);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* Anonymous memory, which file_off tells apart. */
static void map(uint32_t tgid, uint64_t start_pc, uint64_t end_pc, uint64_t file_off, uint64_t time_ns)
{
	const struct mapping_event event = { .tgid = tgid, .start_pc = start_pc, .size_bytes = end_pc - start_pc, .file_off = file_off,
					     .time_ns = time_ns, .path = "//anon" };

	assert_int_equal(process_table_mmap(table, &event), 0);
}

/* What stands there, by its file_off less its place in the mapping; UINT64_MAX: nothing. */
static uint64_t at(uint32_t tgid, uint64_t time_ns, uint64_t pc)
{
	const struct process_mapping *mapping = process_table_find(table, tgid, time_ns, pc);

	return mapping ? mapping->file_off + (pc - mapping->start_pc) : UINT64_MAX;
}

static uint32_t generation_of(uint32_t tgid);

/* --- what process_table_changes tells ---------------------------------------------------------------------------------------------- */

struct told {
	uint32_t tgid, generation, nr, nr_calls;
	struct process_mapping list[64];
};

static int take(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr)
{
	struct told *told = arg;

	for (uint32_t i = 0; i < nr; i++) {
		assert_true(mappings[i].start_pc < mappings[i].end_pc);
		assert_int_equal(mappings[i].until_ns, UINT64_MAX);
		if (i)
			assert_true(mappings[i - 1].end_pc <= mappings[i].start_pc);
	}
	told->nr_calls++;
	if (told->tgid == tgid) {
		told->generation = generation;
		told->nr = nr;
		memcpy(told->list, mappings, (nr < 64 ? nr : 64) * sizeof(*mappings));
	}
	return 0;
}

static struct told changes_of(uint32_t tgid)
{
	struct told told = { .tgid = tgid, .nr = UINT32_MAX };

	assert_int_equal(process_table_changes(table, take, &told), 0);
	return told;
}

/* Needs a change since the last call. */
static uint32_t generation_of(uint32_t tgid)
{
	struct told told = changes_of(tgid);

	assert_int_not_equal(told.nr, UINT32_MAX);
	return told.generation;
}

/* --- overlaps ---------------------------------------------------------------------------------------------------------------------- */

/* Two intervals in all of their relations (Allen's thirteen): before, meets, overlaps, starts, during, finishes, equal and their inverses.
 */
static void test_interval_relations(void **state)
{
	static const uint64_t news[13][2] = { { 1, 3 }, { 1, 4 }, { 1, 6 }, { 4, 6 }, { 5, 7 }, { 6, 8 }, { 4, 8 },
					      { 4, 10 }, { 2, 10 }, { 2, 8 }, { 6, 10 }, { 8, 10 }, { 9, 11 } };

	for (uint32_t i = 0; i < 13; i++) {
		uint32_t tgid = 100 + i;

		map(tgid, 4 * PAGE, 8 * PAGE, 0x100000, 10);
		map(tgid, news[i][0] * PAGE, news[i][1] * PAGE, 0x900000, 20);
		for (uint64_t page = 0; page < 13; page++) {
			bool in_old = page >= 4 && page < 8, in_new = page >= news[i][0] && page < news[i][1];
			uint64_t old = in_old ? 0x100000 + (page - 4) * PAGE : UINT64_MAX, new = 0x900000 + (page - news[i][0]) * PAGE;

			assert_int_equal(at(tgid, 15, page * PAGE), old);
			assert_int_equal(at(tgid, 25, page * PAGE), in_new ? new : old);
			assert_int_equal(at(tgid, 25, page * PAGE + PAGE - 1),
					 (in_new ? new : old) == UINT64_MAX ? UINT64_MAX : (in_new ? new : old) + PAGE - 1);
			assert_int_equal(at(tgid, 5, page * PAGE), UINT64_MAX);
		}
	}
}

#define ORACLE_PAGES 64
#define ORACLE_TIMES 60

static uint64_t seed;

static uint64_t prng(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return seed >> 33;
}

/* Against an array of pages for each time. Events have the even times, so that the odd ones are between two. */
static void test_random_mappings(void **state)
{
	static uint64_t oracle[ORACLE_TIMES][ORACLE_PAGES];

	for (uint32_t round = 1; round <= 200; round++) {
		uint32_t tgid = 1000 + round;
		struct told told;

		seed = round;
		for (uint32_t time = 0; time < ORACLE_TIMES; time++) {
			uint64_t start = prng() % (ORACLE_PAGES - 1), end = start + 1 + prng() % (ORACLE_PAGES - start);

			if (time)
				memcpy(oracle[time], oracle[time - 1], sizeof(oracle[0]));
			else
				memset(oracle[0], 0xff, sizeof(oracle[0]));
			if (prng() % 20 == 0) {
				assert_int_equal(process_table_exec(table, tgid, time * 2 + 2), 0);
				memset(oracle[time], 0xff, sizeof(oracle[0]));
			} else {
				end = end > ORACLE_PAGES ? ORACLE_PAGES : end;
				map(tgid, start * PAGE, end * PAGE, time * 0x1000000ULL, time * 2 + 2);
				for (uint64_t page = start; page < end; page++)
					oracle[time][page] = time * 0x1000000ULL + (page - start) * PAGE;
			}
		}
		for (uint32_t time = 0; time < ORACLE_TIMES; time++) {
			for (uint64_t page = 0; page < ORACLE_PAGES; page++)
				assert_int_equal(at(tgid, time * 2 + 3, page * PAGE + 5),
						 oracle[time][page] == UINT64_MAX ? UINT64_MAX : oracle[time][page] + 5);
		}
		told = changes_of(tgid); /* checks that they are sorted and apart */
		assert_true(told.nr <= ORACLE_PAGES);
	}
}

/* A process that maps for ever: it is remembered less far back, and nothing else happens. */
static void test_endless_mappings(void **state)
{
	struct told told;

	for (uint64_t i = 1; i <= 300000; i++)
		map(7, 4 * PAGE, 8 * PAGE, i * PAGE, i * 10);
	assert_int_equal(at(7, 3000005, 4 * PAGE), 300000 * PAGE);
	assert_int_equal(at(7, 2999995, 4 * PAGE), 299999 * PAGE);
	assert_int_equal(at(7, 15, 4 * PAGE), UINT64_MAX);
	told = changes_of(7);
	assert_int_equal(told.nr, 1);
}

/* The kernel does not tell of munmap: what was unmapped piles up where nothing new is mapped. */
static void test_scattered_mappings(void **state)
{
	for (uint64_t i = 1; i <= 200000; i++)
		map(7, i * 2 * PAGE, (i * 2 + 1) * PAGE, i * PAGE, i);
	assert_int_equal(at(7, 200000, 200000 * 2 * PAGE), 200000 * PAGE);
}

static void test_events_that_make_no_sense(void **state)
{
	map(7, 4 * PAGE, 4 * PAGE, 0, 1);
	map(7, UINT64_MAX - PAGE, PAGE, 0, 1);
	map(7, 0, UINT64_MAX, 5, 2);
	assert_int_equal(at(7, 3, 77), 82);
	assert_int_equal(at(7, 3, UINT64_MAX), UINT64_MAX);
	process_table_exit(table, 99, 3);
	assert_int_equal(process_table_nr_processes(table), 1);
}

/* --- lives ------------------------------------------------------------------------------------------------------------------------- */

static void test_exec(void **state)
{
	uint32_t before;

	map(7, 4 * PAGE, 8 * PAGE, 0x100000, 10);
	before = generation_of(7);
	assert_int_equal(process_table_exec(table, 7, 20), 0);
	map(7, 5 * PAGE, 6 * PAGE, 0x200000, 21);
	assert_int_equal(at(7, 15, 5 * PAGE), 0x101000);
	assert_int_equal(at(7, 25, 5 * PAGE), 0x200000);
	assert_int_equal(at(7, 25, 4 * PAGE), UINT64_MAX);
	assert_int_not_equal(generation_of(7), before);
}

static void test_fork(void **state)
{
	struct told told;

	map(7, 4 * PAGE, 8 * PAGE, 0x100000, 10);
	assert_int_equal(process_table_fork(table, 7, 8, 20), 0);
	map(7, 4 * PAGE, 8 * PAGE, 0x200000, 30);
	assert_int_equal(at(8, 35, 4 * PAGE), 0x100000); /* the parent's later changes are not the child's */
	assert_int_equal(at(7, 35, 4 * PAGE), 0x200000);
	assert_int_equal(at(8, 15, 4 * PAGE), UINT64_MAX); /* was not born */
	map(8, 6 * PAGE, 7 * PAGE, 0x300000, 40);
	assert_int_equal(at(7, 45, 6 * PAGE), 0x202000);
	told = changes_of(8);
	assert_int_equal(told.nr, 3);
	assert_int_equal(process_table_nr_processes(table), 2);
	assert_int_equal(process_table_fork(table, 55, 56, 50), 0); /* of a parent that is not known */
	assert_int_equal(at(56, 55, 4 * PAGE), UINT64_MAX);
}

/* Mappings that several processes share, and each changes, leaves by an exec or passes on: every process has had what it would have had of
 * its own. */
static void test_any_forks(void **state)
{
	enum { NR = 6, TIMES = 40, CHECKED = 8 };
	static uint64_t oracle[NR][TIMES][ORACLE_PAGES];

	for (uint32_t round = 1; round <= 200; round++) {
		uint32_t first = 1000 + round * NR;

		seed = round;
		memset(oracle, 0xff, sizeof(oracle));
		for (uint32_t time = 0; time < TIMES; time++) {
			uint32_t one = prng() % NR, other = prng() % NR;
			uint64_t page = prng() % ORACLE_PAGES, now = time * 2 + 2;

			for (uint32_t i = 0; time && i < NR; i++)
				memcpy(oracle[i][time], oracle[i][time - 1], sizeof(oracle[i][time]));
			if (prng() % 10 == 0) {
				assert_int_equal(process_table_exec(table, first + one, now), 0);
				memset(oracle[one][time], 0xff, sizeof(oracle[one][time]));
			} else if (prng() % 3 == 0 && one != other) {
				assert_int_equal(process_table_fork(table, first + one, first + other, now), 0);
				memcpy(oracle[other][time], oracle[one][time], sizeof(oracle[other][time]));
			} else {
				map(first + one, page * PAGE, (page + 1) * PAGE, time * 0x1000000ULL, now);
				oracle[one][time][page] = time * 0x1000000ULL;
			}
		}
		for (uint32_t time = TIMES - CHECKED; time < TIMES; time++) {
			for (uint32_t i = 0; i < NR * ORACLE_PAGES; i++)
				assert_int_equal(at(first + i / ORACLE_PAGES, time * 2 + 3, i % ORACLE_PAGES * PAGE),
						 oracle[i / ORACLE_PAGES][time][i % ORACLE_PAGES]);
		}
		for (uint32_t i = 0; i < NR; i++)
			changes_of(first + i); /* checks that they are sorted and apart */
	}
}

static void test_exit_and_reuse(void **state)
{
	uint32_t first, second;
	struct told told;

	map(7, 4 * PAGE, 8 * PAGE, 0x100000, 10);
	first = generation_of(7);
	process_table_exit(table, 7, 20);
	assert_int_equal(process_table_nr_processes(table), 0);
	assert_int_equal(at(7, 15, 4 * PAGE), 0x100000);
	assert_int_equal(at(7, 25, 4 * PAGE), 0x100000); /* its last ticks */
	assert_int_equal(at(7, 2000000000, 4 * PAGE), UINT64_MAX);
	told = changes_of(7);
	assert_int_equal(told.nr, 0);
	process_table_exit(table, 7, 21);
	assert_int_equal(changes_of(7).nr_calls, 0);
	assert_int_equal(process_table_fork(table, 1, 7, 30), 0); /* another process with this id */
	assert_int_equal(at(7, 15, 4 * PAGE), 0x100000);
	assert_int_equal(at(7, 31, 4 * PAGE), UINT64_MAX); /* not that of the one before */
	map(7, 4 * PAGE, 8 * PAGE, 0x200000, 31);
	second = generation_of(7);
	assert_int_not_equal(first, second);
	assert_int_equal(at(7, 15, 4 * PAGE), 0x100000);
	assert_int_equal(at(7, 35, 4 * PAGE), 0x200000);
	assert_int_equal(process_table_nr_processes(table), 1);
}

/* Whenever a pc may mean another file than before. */
static void test_generations(void **state)
{
	uint32_t last;

	map(7, 4 * PAGE, 8 * PAGE, 0x100000, 10);
	last = generation_of(7);
	map(7, 20 * PAGE, 21 * PAGE, 0x100000, 11); /* where nothing was */
	map(7, 3 * PAGE, 4 * PAGE, 0x100000, 11);
	map(7, 8 * PAGE, 9 * PAGE, 0x100000, 11);
	assert_int_equal(generation_of(7), last);
	map(7, 6 * PAGE, 9 * PAGE, 0x200000, 12);
	assert_int_not_equal(generation_of(7), last);
	assert_int_equal(changes_of(7).nr_calls, 0); /* told once */
}

static void test_prune(void **state)
{
	map(7, 4 * PAGE, 8 * PAGE, 0x100000, 10);
	map(7, 4 * PAGE, 8 * PAGE, 0x200000, 20);
	map(7, 4 * PAGE, 8 * PAGE, 0x300000, 30);
	process_table_prune(table, 25);
	assert_int_equal(at(7, 15, 4 * PAGE), UINT64_MAX);
	assert_int_equal(at(7, 25, 4 * PAGE), 0x200000);
	assert_int_equal(at(7, 35, 4 * PAGE), 0x300000);
	process_table_exit(table, 7, 40);
	process_table_prune(table, 2000000000);
	assert_int_equal(at(7, 35, 4 * PAGE), UINT64_MAX);
}

/* --- lines of /proc/PID/maps -------------------------------------------------------------------------------------------------------- */

static void check_line(const char *text, uint64_t start_pc, uint64_t size, uint64_t off, const char *path)
{
	CLEANUP(freep) char *line = strdup(text);
	struct mapping_event event;

	assert_true(maps_line_parse(line, &event));
	assert_int_equal(event.start_pc, start_pc);
	assert_int_equal(event.size_bytes, size);
	assert_int_equal(event.file_off, off);
	assert_int_equal(event.device, strstr(text, "fe:01 131") ? makedev(0xfe, 1) : 0);
	assert_int_equal(event.inode, strstr(text, "fe:01 131") ? 131 : strstr(text, "0:0 5") ? 5 : 0);
	assert_string_equal(event.path, path);
}

static void test_maps_lines(void **state)
{
	check_line("55d0-55e0 r-xp 00002000 fe:01 131 /usr/bin/cat\n", 0x55d0, 0x10, 0x2000, "/usr/bin/cat");
	check_line("7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n", 0x7f0000000000, 0x1000, 0, "");
	check_line("7f0000000000-7f0000001000 rwxp 00000000 00:00 0", 0x7f0000000000, 0x1000, 0, "");
	check_line("1000-2000 r-xp 0 0:0 0                          [vdso]\n", 0x1000, 0x1000, 0, "[vdso]");
	check_line("1000-2000 r-xs 0 0:0 5  /tmp/a b (deleted)\n", 0x1000, 0x1000, 0, "/tmp/a b (deleted)");
	check_line("1000-2000 r-xp 0 0:0 5  /tmp/two\\012lines\\012\n", 0x1000, 0x1000, 0, "/tmp/two\nlines\n");
	check_line("1000-2000 r-xp 0 0:0 5  /tmp/\\01\n", 0x1000, 0x1000, 0, "/tmp/\\01");
	check_line("fffffffffffff000-ffffffffffffffff r-xp ffffffffffffffff 0:0 5\n", 0xfffffffffffff000, 0xfff, UINT64_MAX, "");
}

static void test_hostile_maps_lines(void **state)
{
	static const char *const lines[] = {
		"",
		"\n",
		" ",
		"-",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 r-x",
		"1000-2000 r-xp",
		"1000-2000 r-xp ",
		"1000-2000 r-xpp 0 0:0 0",
		"1000-2000 r-xp x 0:0 0 /a",
		"g000-2000 r-xp 0 0:0 0 /a",
		"1000-z r-xp 0 0:0 0 /a",
		"2000-1000 r-xp 0 0:0 0 /a",
		"1000-1000 r-xp 0 0:0 0 /a",
		"11111111111111111-2 r-xp 0 0:0 0 /a",
		"1000-2000 rw-p 0 0:0 0 /a",
		"ffffffffff600000-ffffffffff601000 --xp 0 00:00 0 [vsyscall]\n",
		"1000 2000 r-xp 0 0:0 0 /a",
		"Size: 4 kB",
		"\xff\xfe\n",
	};
	CLEANUP(freep) char *huge = malloc((1u << 20) + 100);
	struct mapping_event event;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		CLEANUP(freep) char *line = strdup(lines[i]);

		if (maps_line_parse(line, &event))
			fail_msg("taken: '%s'", lines[i]);
	}
	assert_non_null(huge);
	memset(huge, 'x', 1u << 20);
	memcpy(huge, "1000-2000 r-xp 0 0:0 5 /", 24);
	memcpy(huge + (1u << 20), "\n", 2);
	assert_true(maps_line_parse(huge, &event));
	assert_int_equal(strlen(event.path), (1u << 20) - 23);
	map(7, 4 * PAGE, 8 * PAGE, 0, 1);
	event.tgid = 7;
	assert_int_equal(process_table_mmap(table, &event), 0); /* a path that no system call takes */
}

/* --- files -------------------------------------------------------------------------------------------------------------------------- */

static uint32_t object_of(const char *path, uint64_t device, uint64_t inode)
{
	static uint64_t pc = 100 * PAGE;
	const struct mapping_event event = {
		.tgid = 0x7ffffff0, .start_pc = pc, .size_bytes = PAGE, .time_ns = 1, .device = device, .inode = inode, .path = path
	};

	assert_int_equal(process_table_mmap(table, &event), 0); /* of a process that is not there: found by its path alone */
	pc += PAGE;
	return process_table_find(table, event.tgid, 2, event.start_pc)->object;
}

static uint32_t object_of_inode(const char *path, uint64_t inode)
{
	return object_of(path, 0, inode);
}

static uint32_t object_at(const char *path)
{
	return object_of_inode(path, 0);
}

static const struct object *object(uint32_t number)
{
	assert_int_not_equal(number, OBJECT_NONE);
	return object_table_at(process_table_objects(table), number);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* An ELF file with this build id ("" for none). */
static void write_elf(const char *path, const char *id, uint8_t filler)
{
	struct { Elf64_Nhdr header; char name[4], id[8]; } note = { { 4, 8, NT_GNU_BUILD_ID }, "GNU", { 0 } };
	struct image_section sections[2] = { { ".note.gnu.build-id", SHT_NOTE, 0x300, &note, sizeof(note) },
					     { ".fill", SHT_PROGBITS, 0x400, &filler, 1 } };
	struct bytes image = { 0 };

	memcpy(note.id, id, strlen(id));
	image_make(&image, NULL, 0, *id ? sections : sections + 1, *id ? 2 : 1);
	write_file(path, image.data, image.size);
}

static const char *in_folder(const char *name)
{
	static char paths[4][128];
	static uint32_t next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

/* A path may lead to another file by now, or outside of a container. */
static void test_other_file_of_the_name(void **state)
{
	const char *path = in_folder("named");
	struct stat st;

	write_elf(path, "", 1);
	assert_int_equal(stat(path, &st), 0);
	assert_null(object(object_of_inode(path, st.st_ino + 1))->elf);
	assert_non_null(object(object_of_inode(path, st.st_ino))->elf);
}

/* Of many mappings of one file, of whatever kind, one is looked at: for a moment the others need not even be there. On a busy machine that
 * may have passed. */
static void test_located_once(void **state)
{
	const char *path = in_folder("text");
	uint32_t nr_same = 0;

	for (uint32_t turn = 0; turn < 50 && !nr_same; turn++) {
		uint32_t number;
		struct stat st;

		write_file(path, "no ELF", 6);
		assert_int_equal(stat(path, &st), 0);
		number = object_of_inode(path, st.st_ino);
		assert_null(object(number)->elf);
		assert_int_equal(unlink(path), 0);
		nr_same += object_of_inode(path, st.st_ino) == number;
		assert_int_not_equal(object_of_inode(path, st.st_ino + 1), number);
	}
	assert_int_equal(nr_same, 1);
}

/* Nor is it believed for long. */
static void test_located_again(void **state)
{
	const char *path = in_folder("becomes");
	struct stat st;

	write_file(path, "no ELF", 6);
	assert_int_equal(stat(path, &st), 0);
	assert_null(object(object_of_inode(path, st.st_ino))->elf);
	write_elf(path, "becomes", 1);
	usleep(150000);
	assert_non_null(object(object_of_inode(path, st.st_ino))->elf);
}

/* What the kernel tells of a mapping is enough while the file is open here, also when process and name are gone. Not when it has been
 * written to, or for another device's file of that number. */
static void test_open_file_without_a_name(void **state)
{
	const char *path = in_folder("gone");
	struct stat st;
	uint32_t first;
	int fd;

	write_elf(path, "", 1);
	assert_int_equal(stat(path, &st), 0);
	first = object_of(path, st.st_dev, st.st_ino);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(object_of(path, st.st_dev, st.st_ino), first);
	assert_null(object(object_of(path, st.st_dev + 1, st.st_ino))->elf);
	assert_null(object(object_of(path, 0, st.st_ino))->elf);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_null(object(object_of(path, st.st_dev, st.st_ino))->elf);
}

static void test_same_file(void **state)
{
	const char *a = in_folder("a"), *b = in_folder("b"), *c = in_folder("c"), *d = in_folder("d");
	uint32_t first;

	write_elf(a, "", 1);
	assert_int_equal(link(a, b), 0);
	assert_int_equal(symlink(a, c), 0);
	first = object_at(a);
	assert_non_null(object(first)->elf);
	assert_string_equal(object(first)->path, a);
	assert_int_equal(object_at(b), first);
	assert_int_equal(object_at(c), first);
	assert_int_equal(object_at(a), first);
	write_elf(d, "", 1); /* a copy, which nothing says is one */
	assert_int_not_equal(object_at(d), first);
}

static void test_same_build_id(void **state)
{
	const char *a = in_folder("a"), *b = in_folder("b"), *c = in_folder("c"), *d = in_folder("d");
	uint32_t first;

	write_elf(a, "build-id", 1);
	write_elf(b, "build-id", 1);
	write_elf(c, "other-id", 1);
	first = object_at(a);
	assert_int_equal(object_at(b), first);
	assert_int_not_equal(object_at(c), first);
	assert_int_equal(object_table_nr(process_table_objects(table)), 2);
	write_elf(d, "build-id", 2); /* as one that wants to be taken for another would be */
	assert_int_not_equal(object_at(d), first);
	assert_int_equal(object_table_nr(process_table_objects(table)), 3);
	assert_int_equal(object_at(d), 2);
}

/* Whoever owns a file may write other bytes into it later: another user's stands for nobody's, nor do many of them keep an owner's copies
 * apart. */
static void test_copies_of_other_owners(void **state)
{
	uint32_t roots, users;

	if (geteuid() != 0) {
		print_message("SKIPPED: only root can give files away\n");
		skip();
	}
	for (uint32_t i = 0; i < 8; i++) {
		char name[8];

		snprintf(name, sizeof(name), "u%u", i);
		write_elf(in_folder(name), "build-id", (uint8_t)(i < 2 ? 1 : i));
		assert_int_equal(chown(in_folder(name), 12345, 12345), 0);
	}
	users = object_at(in_folder("u0"));
	assert_int_equal(object_at(in_folder("u1")), users);
	for (char name[] = "u2"; name[1] < '8'; name[1]++)
		assert_int_not_equal(object_at(in_folder(name)), users);
	write_elf(in_folder("a"), "build-id", 1);
	write_elf(in_folder("b"), "build-id", 1);
	roots = object_at(in_folder("a"));
	assert_int_not_equal(roots, users);
	assert_int_equal(object_at(in_folder("b")), roots);
}

/* Device and inode may be another owner's by now, who has set its time to what it was. */
static void test_number_of_another_owner(void **state)
{
	const char *path = in_folder("number");
	uint32_t first;

	if (geteuid() != 0) {
		print_message("SKIPPED: only root can give files away\n");
		skip();
	}
	write_elf(path, "", 1);
	first = object_at(path);
	assert_int_equal(object_at(path), first);
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_not_equal(object_at(path), first);
}

/* Each claims to be the one before, and would have them all read. */
static void test_many_of_one_build_id(void **state)
{
	const char *path = NULL;
	char name[8];

	for (uint8_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		write_elf(in_folder(name), "build-id", i);
		assert_int_equal(object_at(in_folder(name)), i);
	}
	path = in_folder("copy");
	write_elf(path, "build-id", 2);
	assert_int_equal(object_at(path), 2);
	write_elf(in_folder("c3"), "build-id", 3);
	assert_int_equal(object_at(in_folder("c3")), 3);
	path = in_folder("late");
	write_elf(path, "build-id", 2);
	assert_int_equal(object_at(path), 4);
}

static void test_rewritten_file(void **state)
{
	const char *a = in_folder("a"), *b = in_folder("b");
	const struct timespec later[2] = { { .tv_sec = 4000000000 }, { .tv_sec = 4000000000 } };
	uint32_t first;

	write_elf(a, "", 1);
	first = object_at(a);
	write_elf(a, "", 2); /* in place: the same inode and size */
	assert_int_equal(utimensat(AT_FDCWD, a, later, 0), 0); /* the clock of the file system may be coarse */
	assert_int_not_equal(object_at(a), first);
	write_elf(b, "", 3);
	assert_int_equal(rename(b, a), 0);
	assert_int_not_equal(object_at(a), first);
}

static void test_what_cannot_be_read(void **state)
{
	const char *fifo = in_folder("fifo"), *missing = in_folder("missing"), *text = in_folder("text");
	uint32_t first;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	write_file(text, "no ELF", 6);
	assert_null(object(object_at(fifo))->elf); /* and does not wait for a writer */
	assert_null(object(object_at(folder))->elf);
	assert_null(object(object_at(text))->elf);
	assert_null(object(object_at("/dev/null"))->elf);
	assert_null(object(object_at("/"))->elf);
	first = object_at(missing);
	assert_null(object(first)->elf);
	assert_string_equal(object(first)->path, missing);
	assert_int_equal(object_at(missing), first);
	write_elf(missing, "", 1); /* is there by now */
	assert_non_null(object(object_at(missing))->elf);
	assert_int_equal(object_at("//anon"), OBJECT_NONE);
	assert_int_equal(object_at("[heap]"), OBJECT_NONE);
	assert_int_equal(object_at(""), OBJECT_NONE);
}

static void test_vdso(void **state)
{
	uint32_t number = object_at("[vdso]");

	assert_int_equal(object_at("[vdso]"), number);
	assert_non_null(object(number)->elf);
	assert_non_null(elf_file_find_section(object(number)->elf, ".dynsym"));
}

/* --- this process and a child -------------------------------------------------------------------------------------------------------- */

static void test_scan(void **state)
{
	uint32_t tgid = (uint32_t)getpid();
	const struct process_mapping *mapping;
	struct diag diag = { 0 };

	assert_int_equal(process_table_scan(table, tgid, 100, &diag), 0);
	mapping = process_table_find(table, tgid, 1, (uintptr_t)test_scan);
	assert_non_null(mapping);
	assert_non_null(object(mapping->object)->elf);
	assert_non_null(process_table_find(table, tgid, 1, (uintptr_t)printf));
	assert_null(process_table_find(table, tgid, 1, (uintptr_t)&table));
	mapping = process_table_find(table, tgid, 1, getauxval(AT_SYSINFO_EHDR));
	assert_non_null(mapping);
	assert_string_equal(object(mapping->object)->path, "[vdso]");
	assert_int_equal(process_table_scan(table, 0x7ffffff0, 100, &diag), -ENOENT);
	assert_true(diag.text[0]);
}

/* A file that is deleted while it is mapped is still read, through the mapping. */
static void test_deleted_file(void **state)
{
	const char *path = in_folder("gone");
	uint32_t tgid = (uint32_t)getpid();
	const struct process_mapping *mapping;
	CLEANUP(closep) int fd = -1;
	void *at_pc;

	write_elf(path, "deletedd", 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	at_pc = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at_pc, MAP_FAILED);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(process_table_scan(table, tgid, 100, NULL), 0);
	mapping = process_table_find(table, tgid, 1, (uintptr_t)at_pc);
	munmap(at_pc, PAGE);
	assert_non_null(mapping);
	if (geteuid()) /* map_files is for those with rights */
		return;
	assert_non_null(object(mapping->object)->elf);
}

/* The first thread has ended, another goes on: the process is there. */
static void *only_thread(void *arg)
{
	char byte = 1;
	int *fds = arg;

	usleep(20000); /* the first thread ends */
	if (write(fds[1], &byte, 1) == 1)
		pause();
	return NULL;
}

static void test_first_thread_ended(void **state)
{
	int ready[2];
	const struct process_mapping *mapping;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		pthread_t thread;

		pthread_create(&thread, NULL, only_thread, ready);
		pthread_exit(NULL);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(process_table_scan(table, (uint32_t)pid, 100, NULL), 0);
	mapping = process_table_find(table, (uint32_t)pid, 1, (uintptr_t)test_scan);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	assert_non_null(mapping);
}

/* --- files come and go -------------------------------------------------------------------------------------------------------------- */

#define NR_FILES 120
#define NR_TGIDS 12
#define NR_SLOTS 8
#define FIRST_TGID 0x7ffff000u

static struct { int file; } slots[NR_TGIDS][NR_SLOTS]; /* file + 1, 0: none */
static uint32_t held_as[NR_FILES];                           /* number; OBJECT_NONE: not held */
static char file_paths[NR_FILES][128];

static uint32_t nr_descriptors(void)
{
	CLEANUP(closedirp) DIR *dir = opendir("/proc/self/fd");
	uint32_t nr = 0;

	while (dir && readdir(dir))
		nr++;
	return nr;
}

static void count_forgotten(void *arg, uint32_t number)
{
	assert_false(object_table_is_mapped(process_table_objects(table), number));
	++*(uint32_t *)arg;
}

static uint64_t pc_of(uint32_t slot)
{
	return (slot + 1) * 16 * PAGE;
}

static void map_file(uint32_t i, uint32_t slot, int file, uint64_t now)
{
	const struct mapping_event event = {
		.tgid = FIRST_TGID + i, .start_pc = pc_of(slot), .size_bytes = PAGE, .time_ns = now, .path = file_paths[file]
	};

	assert_int_equal(process_table_mmap(table, &event), 0);
	slots[i][slot].file = file + 1;
}

static void change_something(uint32_t random, uint64_t now)
{
	uint32_t i = random % NR_TGIDS, other = random / 16 % NR_TGIDS;
	const struct process_mapping *mapping;

	switch (random >> 12 & 15) {
	case 0:
		process_table_exit(table, FIRST_TGID + i, now);
		memset(slots[i], 0, sizeof(slots[i]));
		break;
	case 1:
		assert_int_equal(process_table_exec(table, FIRST_TGID + i, now), 0);
		memset(slots[i], 0, sizeof(slots[i]));
		break;
	case 2:
		if (i == other)
			break;
		assert_int_equal(process_table_fork(table, FIRST_TGID + i, FIRST_TGID + other, now), 0);
		memcpy(slots[other], slots[i], sizeof(slots[i]));
		break;
	case 3:
		mapping = random % 3 ? NULL : process_table_find(table, FIRST_TGID + i, now, pc_of(0));
		if (!mapping || !slots[i][0].file || held_as[slots[i][0].file - 1] != OBJECT_NONE)
			break;
		process_table_hold_object(table, mapping->object);
		held_as[slots[i][0].file - 1] = mapping->object;
		break;
	default:
		map_file(i, random / 16 % NR_SLOTS, (int)(random / 256 % NR_FILES), now);
	}
}

/* Every mapping and everyone who holds a file has the right one, open; all others are forgotten. */
static uint32_t check_files(uint64_t now)
{
	bool is_known[NR_FILES] = { false };
	uint32_t nr_known = 0, nr_used = 0;

	for (uint32_t i = 0; i < NR_TGIDS * NR_SLOTS; i++) {
		int file = slots[i / NR_SLOTS][i % NR_SLOTS].file - 1;
		const struct process_mapping *mapping = process_table_find(table, FIRST_TGID + i / NR_SLOTS, now, pc_of(i % NR_SLOTS));

		assert_int_equal(mapping != NULL, file >= 0);
		if (file < 0)
			continue;
		assert_string_equal(object(mapping->object)->path, file_paths[file]);
		assert_non_null(object(mapping->object)->elf);
		is_known[file] = true;
	}
	for (uint32_t file = 0; file < NR_FILES; file++) {
		if (held_as[file] != OBJECT_NONE) {
			assert_string_equal(object(held_as[file])->path, file_paths[file]);
			assert_non_null(object(held_as[file])->elf);
			is_known[file] = true;
		}
		nr_known += is_known[file];
	}
	for (uint32_t number = 0; number < object_table_nr(process_table_objects(table)); number++)
		nr_used += object_table_at(process_table_objects(table), number)->path[0] != '\0';
	assert_int_equal(nr_used, nr_known);
	return nr_known;
}

static void test_files_come_and_go(void **state)
{
	uint32_t nr_before = nr_descriptors(), nr_forgotten = 0;
	uint64_t random = 1;

	for (int file = 0; file < NR_FILES; file++) {
		char id[9];

		snprintf(id, sizeof(id), "id%06d", file);
		snprintf(file_paths[file], sizeof(file_paths[0]), "%s/file%d", folder, file);
		write_elf(file_paths[file], file % 3 ? id : "", 1);
		held_as[file] = OBJECT_NONE;
	}
	memset(slots, 0, sizeof(slots));
	for (uint64_t now = 1000; now < 21000; now++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		change_something((uint32_t)(random >> 33), now);
		if (now % 100)
			continue;
		process_table_prune(table, UINT64_MAX);
		assert_int_equal(process_table_sweep(table, count_forgotten, &nr_forgotten), 0);
		assert_true(nr_descriptors() <= nr_before + NR_TGIDS * NR_SLOTS + 64);
		check_files(now);
	}
	assert_true(nr_forgotten > 500);
	for (uint32_t i = 0; i < NR_TGIDS; i++)
		process_table_exit(table, FIRST_TGID + i, 30000);
	process_table_prune(table, UINT64_MAX);
	assert_int_equal(process_table_sweep(table, count_forgotten, &nr_forgotten), 0);
	memset(slots, 0, sizeof(slots));
	assert_true(check_files(40000000000000) > 20); /* those that are held, opened again */
	assert_int_equal(process_table_sweep(table, count_forgotten, &nr_forgotten), 0);
	assert_true(nr_descriptors() <= nr_before + 64);
}

/* A file that nobody maps is opened again only as what it was. */
static void test_closed_file_that_changed(void **state)
{
	uint32_t nr_forgotten = 0, first = OBJECT_NONE;

	for (int file = 0; file < 70; file++) { /* more than stay open */
		snprintf(file_paths[0], sizeof(file_paths[0]), "%s/file%d", folder, file);
		write_elf(file_paths[0], "", 1);
		map_file(0, 0, 0, 1000 + (uint64_t)file);
		process_table_hold_object(table, process_table_find(table, FIRST_TGID, 2000, pc_of(0))->object);
		if (!file)
			first = process_table_find(table, FIRST_TGID, 2000, pc_of(0))->object;
	}
	process_table_exit(table, FIRST_TGID, 3000);
	process_table_prune(table, UINT64_MAX);
	assert_int_equal(process_table_sweep(table, count_forgotten, &nr_forgotten), 0);
	assert_int_equal(nr_forgotten, 0);
	snprintf(file_paths[0], sizeof(file_paths[0]), "%s/file0", folder);
	snprintf(file_paths[1], sizeof(file_paths[1]), "%s/file0.new", folder);
	write_elf(file_paths[1], "", 2);
	assert_int_equal(rename(file_paths[1], file_paths[0]), 0);
	assert_null(object(first)->elf);
	assert_string_equal(object(first)->path, file_paths[0]);
	assert_int_equal(object_table_nr_lost(process_table_objects(table)), 1);
	assert_non_null(object(first + 1)->elf);
}

/* Long after its mappings; until another process has the number. */
static void test_jitdump_of_the_ended(void **state)
{
	const struct mapping_event event = {
		.tgid = 7, .start_pc = PAGE, .size_bytes = PAGE, .time_ns = 10, .path = "/nowhere/jit-7.dump"
	};
	const struct mapping_event others = {
		.tgid = 8, .start_pc = PAGE, .size_bytes = PAGE, .time_ns = 10, .path = "/nowhere/jit-7.dump"
	};

	assert_int_equal(process_table_mmap(table, &event), 0);
	assert_int_equal(process_table_mmap(table, &others), 0);
	assert_null(process_table_ended_dump(table, 7));
	process_table_exit(table, 7, 20);
	process_table_exit(table, 8, 20);
	process_table_prune(table, 10000000000);
	assert_string_equal(process_table_ended_dump(table, 7), "/nowhere/jit-7.dump");
	assert_null(process_table_ended_dump(table, 8));
	map(7, PAGE, 2 * PAGE, 0, 10000000001);
	assert_null(process_table_ended_dump(table, 7));
	process_table_exit(table, 7, 10000000002);
	assert_null(process_table_ended_dump(table, 7));
	for (uint32_t tgid = 100; tgid < 1000; tgid++) {
		char path[64];
		struct mapping_event one = event;

		snprintf(path, sizeof(path), "/nowhere/jit-%u.dump", tgid);
		one.tgid = tgid;
		one.path = path;
		assert_int_equal(process_table_mmap(table, &one), 0);
		process_table_exit(table, tgid, 20);
	}
	assert_non_null(process_table_ended_dump(table, 100));
	assert_null(process_table_ended_dump(table, 999));
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_interval_relations),
		test(test_random_mappings),
		test(test_endless_mappings),
		test(test_scattered_mappings),
		test(test_events_that_make_no_sense),
		test(test_exec),
		test(test_fork),
		test(test_any_forks),
		test(test_exit_and_reuse),
		test(test_jitdump_of_the_ended),
		test(test_generations),
		test(test_prune),
		test(test_maps_lines),
		test(test_hostile_maps_lines),
		test(test_open_file_without_a_name),
		test(test_same_file),
		test(test_other_file_of_the_name),
		test(test_located_once),
		test(test_located_again),
		test(test_same_build_id),
		test(test_copies_of_other_owners),
		test(test_number_of_another_owner),
		test(test_many_of_one_build_id),
		test(test_rewritten_file),
		test(test_what_cannot_be_read),
		test(test_vdso),
		test(test_scan),
		test(test_deleted_file),
		test(test_first_thread_ended),
		test(test_files_come_and_go),
		test(test_closed_file_that_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
