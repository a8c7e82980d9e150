// SPDX-License-Identifier: Apache-2.0
/* The files that processes have mapped, in the process table: which are equal, which are open, which are forgotten. And the mappings of
 * this process. */
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
#include <sys/wait.h>
#include <unistd.h>

#include "elf_image.h"
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

static uint32_t object_of(const char *path, uint64_t device, uint64_t inode)
{
	static uint64_t pc = 100 * PAGE;
	const struct mapping_event event = {
		.tgid = 0x7ffffff0, .start_pc = pc, .size_bytes = PAGE, .time_ns = 1, .device = device, .inode = inode, .path = path
	};

	assert_int_equal(process_table_mmap(table, &event), 0); /* of a process that does not exist: found by its path alone */
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

/* Writes an ELF file with this build id ("": none). */
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

/* A path may lead to another file by now, or out of a container. */
static void test_other_file_of_the_name(void **state)
{
	const char *path = in_folder("named");
	struct stat st;

	write_elf(path, "", 1);
	assert_int_equal(stat(path, &st), 0);
	assert_null(object(object_of_inode(path, st.st_ino + 1))->elf);
	assert_non_null(object(object_of_inode(path, st.st_ino))->elf);
}

/* Of many mappings of one file, of any kind, only one is looked up. For a short time the other paths need not even exist. On a busy
 * machine that time may be over. */
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

/* The result is not kept for long. */
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

/* While the file is open here, the kernel's report of a mapping suffices, even after process and name are gone. Not if the file was
 * written to, nor for a file with the same number on another device. */
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
	write_elf(d, "", 1); /* a copy, without a build id to prove it */
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
	write_elf(d, "build-id", 2); /* like a file made to be taken for another */
	assert_int_not_equal(object_at(d), first);
	assert_int_equal(object_table_nr(process_table_objects(table)), 3);
	assert_int_equal(object_at(d), 2);
}

/* An owner may change a file later. So another user's copy is not used in place of anyone else's, and many of them do not keep one
 * owner's copies apart. */
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

/* Device and inode may now belong to another owner's file, with its time set back to the old one. */
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

/* Each claims the build id of the one before, which would force all of them to be read. */
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
	assert_null(object(object_at(fifo))->elf); /* does not wait for a writer */
	assert_null(object(object_at(folder))->elf);
	assert_null(object(object_at(text))->elf);
	assert_null(object(object_at("/dev/null"))->elf);
	assert_null(object(object_at("/"))->elf);
	first = object_at(missing);
	assert_null(object(first)->elf);
	assert_string_equal(object(first)->path, missing);
	assert_int_equal(object_at(missing), first);
	write_elf(missing, "", 1); /* exists by now */
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

/* A file deleted while mapped is still read, through the mapping. */
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
	if (geteuid()) /* map_files needs privileges */
		return;
	assert_non_null(object(mapping->object)->elf);
}

/* After the first thread has ended, another one keeps the process alive. */
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

static struct { int file; } slots[NR_TGIDS][NR_SLOTS]; /* file + 1; 0: none */
static uint32_t held_as[NR_FILES];                           /* object number; OBJECT_NONE: not held */
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

/* Every mapping and every holder of a file has the right one, open. All other files are forgotten. */
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
	assert_true(check_files(40000000000000) > 20); /* the held ones are opened again */
	assert_int_equal(process_table_sweep(table, count_forgotten, &nr_forgotten), 0);
	assert_true(nr_descriptors() <= nr_before + 64);
}

/* A file that is no longer mapped is opened again only if it is unchanged. */
static void test_closed_file_that_changed(void **state)
{
	uint32_t nr_forgotten = 0, first = OBJECT_NONE;

	for (int file = 0; file < 70; file++) { /* more than may stay open */
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

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
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
