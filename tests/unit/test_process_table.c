// SPDX-License-Identifier: Apache-2.0
/* Which mappings a process has at which time: the process table against an array of pages, and lines of /proc/PID/maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "process/maps_line.h"
#include "process/process_table.h"

#define PAGE 0x1000ULL

static struct process_table *table;

static int set_up(void **state)
{
	table = process_table_new(NULL);
	return !table;
}

static int tear_down(void **state)
{
	process_table_free(table);
	return 0;
}

/* Maps anonymous memory; file_off tells the mappings apart. */
static void map(uint32_t tgid, uint64_t start_pc, uint64_t end_pc, uint64_t file_off, uint64_t time_ns)
{
	const struct mapping_event event = { .tgid = tgid, .start_pc = start_pc, .size_bytes = end_pc - start_pc, .file_off = file_off,
					     .time_ns = time_ns, .path = "//anon" };

	assert_int_equal(process_table_mmap(table, &event), 0);
}

/* Returns the file offset of pc in the mapping found there; UINT64_MAX: no mapping. */
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

/* Compares with an array of pages for each time. Events have even times, so odd times lie between two events. */
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

/* A process that maps without end is remembered less far back. Nothing else happens. */
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

/* The kernel does not report munmap: unmapped ranges pile up where nothing new is mapped. */
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
	assert_int_equal(at(8, 15, 4 * PAGE), UINT64_MAX); /* not yet started */
	map(8, 6 * PAGE, 7 * PAGE, 0x300000, 40);
	assert_int_equal(at(7, 45, 6 * PAGE), 0x202000);
	told = changes_of(8);
	assert_int_equal(told.nr, 3);
	assert_int_equal(process_table_nr_processes(table), 2);
	assert_int_equal(process_table_fork(table, 55, 56, 50), 0); /* of an unknown parent */
	assert_int_equal(at(56, 55, 4 * PAGE), UINT64_MAX);
}

/* Processes share mappings, and each changes them, drops them by an exec or passes them on. Each sees the same as with mappings of its
 * own. */
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
	assert_int_equal(at(7, 25, 4 * PAGE), 0x100000); /* its last samples */
	assert_int_equal(at(7, 2000000000, 4 * PAGE), UINT64_MAX);
	told = changes_of(7);
	assert_int_equal(told.nr, 0);
	process_table_exit(table, 7, 21);
	assert_int_equal(changes_of(7).nr_calls, 0);
	assert_int_equal(process_table_fork(table, 1, 7, 30), 0); /* another process with this id */
	assert_int_equal(at(7, 15, 4 * PAGE), 0x100000);
	assert_int_equal(at(7, 31, 4 * PAGE), UINT64_MAX); /* not the earlier process's mapping */
	map(7, 4 * PAGE, 8 * PAGE, 0x200000, 31);
	second = generation_of(7);
	assert_int_not_equal(first, second);
	assert_int_equal(at(7, 15, 4 * PAGE), 0x100000);
	assert_int_equal(at(7, 35, 4 * PAGE), 0x200000);
	assert_int_equal(process_table_nr_processes(table), 1);
}

/* The generation changes whenever a pc may mean another file than before. */
static void test_generations(void **state)
{
	uint32_t last;

	map(7, 4 * PAGE, 8 * PAGE, 0x100000, 10);
	last = generation_of(7);
	map(7, 20 * PAGE, 21 * PAGE, 0x100000, 11); /* where nothing was mapped */
	map(7, 3 * PAGE, 4 * PAGE, 0x100000, 11);
	map(7, 8 * PAGE, 9 * PAGE, 0x100000, 11);
	assert_int_equal(generation_of(7), last);
	map(7, 6 * PAGE, 9 * PAGE, 0x200000, 12);
	assert_int_not_equal(generation_of(7), last);
	assert_int_equal(changes_of(7).nr_calls, 0); /* reported once */
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

/* `want`: the paths, each followed by a blank but the last. */
static void assert_dumps(uint32_t tgid, uint32_t number, const char *want)
{
	const char *paths[2];
	uint32_t nr = process_table_dumps(table, tgid, number, paths, 2);
	char found[256] = "";

	for (uint32_t i = 0; i < nr; i++)
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s", i ? " " : "", paths[i]);
	assert_string_equal(found, want);
}

static void map_dump(uint32_t tgid, uint64_t start_pc, uint64_t time_ns, const char *path)
{
	const struct mapping_event event = {
		.tgid = tgid, .start_pc = start_pc, .size_bytes = PAGE, .time_ns = time_ns, .path = path
	};

	assert_int_equal(process_table_mmap(table, &event), 0);
}

/* Those with the process's number in its own namespace, which is in the files' names. A child has its parent's mappings. */
static void test_jitdumps_of_the_living(void **state)
{
	assert_dumps(7, 7, "");
	map(7, PAGE, 2 * PAGE, 0, 10);
	assert_dumps(7, 7, "");
	map_dump(7, 2 * PAGE, 11, "/a/jit-7.dump");
	map_dump(7, 3 * PAGE, 12, "/b/jit-1.dump");
	map_dump(7, 4 * PAGE, 13, "/a/jit-7.dump");
	map_dump(7, 5 * PAGE, 14, "/c/jit-7.dump.old");
	assert_dumps(7, 7, "/a/jit-7.dump");
	assert_dumps(7, 1, "/b/jit-1.dump");
	assert_dumps(8, 7, "");
	map_dump(7, 6 * PAGE, 15, "/d/jit-7.dump");
	map_dump(7, 7 * PAGE, 16, "/e/jit-7.dump");
	assert_dumps(7, 7, "/a/jit-7.dump /d/jit-7.dump");
	assert_int_equal(process_table_fork(table, 7, 8, 20), 0);
	assert_dumps(7, 1, "/b/jit-1.dump");
	assert_dumps(8, 1, "/b/jit-1.dump");
	assert_dumps(8, 8, "");
	assert_int_equal(process_table_exec(table, 7, 30), 0);
	assert_dumps(7, 7, "");
}

/* It stays known long after its mappings ended, until another process gets the number. */
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
	process_table_exit(table, 7, 20);
	process_table_exit(table, 8, 20);
	process_table_prune(table, 10000000000);
	assert_dumps(7, 7, "/nowhere/jit-7.dump");
	assert_dumps(7, 8, "");
	assert_dumps(8, 7, ""); /* it may be another's: its number outside is in no name */
	assert_dumps(8, 8, "");
	map(7, PAGE, 2 * PAGE, 0, 10000000001);
	assert_dumps(7, 7, "");
	process_table_exit(table, 7, 10000000002);
	assert_dumps(7, 7, "");
	for (uint32_t tgid = 100; tgid < 1000; tgid++) {
		char path[64];
		struct mapping_event one = event;

		snprintf(path, sizeof(path), "/nowhere/jit-%u.dump", tgid);
		one.tgid = tgid;
		one.path = path;
		assert_int_equal(process_table_mmap(table, &one), 0);
		process_table_exit(table, tgid, 20);
	}
	assert_dumps(100, 100, "/nowhere/jit-100.dump");
	assert_dumps(999, 999, "");
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
		test(test_jitdumps_of_the_living),
		test(test_jitdump_of_the_ended),
		test(test_generations),
		test(test_prune),
		test(test_maps_lines),
		test(test_hostile_maps_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
