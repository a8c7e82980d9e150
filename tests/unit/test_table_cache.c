// SPDX-License-Identifier: Apache-2.0
/* The cache of unwind tables returns what was stored, or nothing, whatever happens to the directory and its files. The tables are those
 * of two libraries of this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../fuzz/check_table.h"
#include "base/hash.h"
#include "unwind/table_cache.h"
#include "unwind/table_image.h"

#define CHECKSUM_OFF 16 /* in struct image_header */
#define HEADER_BYTES 184
#define NR_WRITES 60

static char dir[] = "/tmp/test-table-cache-XXXXXX";
static char libraries[2][512]; /* owned by root, and large enough to be kept */
static struct rule_table *rules;

static struct elf_file *open_elf(const char *path)
{
	struct elf_file *elf = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_file_open_fd(fd, NULL, &elf), 0);
	return elf;
}

/* NULL: no table */
static struct unwind_table *build(const char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = open_elf(path);
	struct unwind_table *table = NULL;

	return unwind_table_build(elf, rules, NULL, &table) ? NULL : table;
}

/* Finds them next to the C library. */
static void find_libraries(void)
{
	CLEANUP(closedirp) DIR *list = NULL;
	const struct dirent *entry;
	char folder[512] = "";
	uint32_t nr = 0;
	Dl_info info;

	assert_true(dladdr((void *)(uintptr_t)getpid, &info) && realpath(info.dli_fname, folder));
	*strrchr(folder, '/') = '\0';
	list = opendir(folder);
	while (list && nr < ARRAY_SIZE(libraries) && (entry = readdir(list))) {
		CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
		char path[sizeof(libraries[0])];
		struct stat st;

		snprintf(path, sizeof(path), "%.240s/%.250s", folder, entry->d_name);
		if (!strstr(path, ".so.") || lstat(path, &st) || !S_ISREG(st.st_mode) || st.st_uid || st.st_size > 4 << 20)
			continue;
		table = build(path);
		if (table && table->nr_rows > 5000)
			memcpy(libraries[nr++], path, sizeof(path));
	}
	if (nr < ARRAY_SIZE(libraries))
		fail_msg("there are no two libraries of root's with enough rows in %s", folder);
}

static void remove_all(void)
{
	CLEANUP(closedirp) DIR *list = opendir(dir);
	const struct dirent *entry;

	while (list && (entry = readdir(list))) {
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlinkat(dirfd(list), entry->d_name, 0);
	}
}

static int set_up(void **state)
{
	chmod(dir, 0700);
	remove_all();
	return 0;
}

static struct table_cache *open_cache(uint64_t max_bytes)
{
	struct table_cache *cache = NULL;
	struct diag diag = { 0 };

	if (table_cache_open(dir, max_bytes, &diag, &cache))
		fail_msg("%s", diag.text);
	return cache;
}

static void keep(struct table_cache *cache, const char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = open_elf(path);
	CLEANUP(unwind_table_freep) struct unwind_table *table = build(path);

	table_cache_keep(cache, elf, path, rules, table);
}

/* Returns 0 when the loaded table equals the library's by value (its rules may have other numbers), else the error of load. */
static int load_and_compare(struct table_cache *cache, const char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = open_elf(path);
	CLEANUP(rule_table_freep) struct rule_table *others = rule_table_new(SONDE_MAX_RULES);
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL, *want = build(path);
	const struct sonde_rule *got_rules, *want_rules;
	uint32_t nr;
	int err;

	for (int32_t i = 0; i < 100; i++)
		rule_table_number(others, &(struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_off = 8 * i }, 0);
	err = table_cache_load(cache, elf, path, others, &table);
	if (err)
		return err;
	check_table(table, others);
	got_rules = rule_table_rules(others, &nr);
	want_rules = rule_table_rules(rules, &nr);
	assert_int_equal(table->base_vaddr, want->base_vaddr);
	assert_int_equal(table->nr_rows, want->nr_rows);
	assert_int_equal(table->nr_blocks, want->nr_blocks);
	assert_int_equal(table->block_shift, want->block_shift);
	assert_memory_equal(table->blocks, want->blocks, (want->nr_blocks + 1) * sizeof(*want->blocks));
	for (uint32_t i = 0; i < want->nr_rows; i++) {
		assert_int_equal(table->rows[i].low, want->rows[i].low);
		assert_memory_equal(&got_rules[table->rows[i].rule], &want_rules[want->rows[i].rule], sizeof(*got_rules));
	}
	return 0;
}

/* Sets `to` to the path of the cache's only file. */
static void file_in(char *to, size_t size)
{
	CLEANUP(closedirp) DIR *list = opendir(dir);
	const struct dirent *entry;
	uint32_t nr = 0;

	assert_non_null(list);
	while ((entry = readdir(list))) {
		if (entry->d_name[0] != '.') {
			snprintf(to, size, "%s/%s", dir, entry->d_name);
			nr++;
		}
	}
	assert_int_equal(nr, 1);
}

static void what_comes_out_went_in(void **state)
{
	CLEANUP(table_cache_freep) struct table_cache *cache = open_cache(TABLE_CACHE_MAX_BYTES), *again = NULL;

	assert_int_equal(load_and_compare(cache, libraries[0]), -ENOENT);
	keep(cache, libraries[0]);
	keep(cache, libraries[1]);
	assert_int_equal(load_and_compare(cache, libraries[0]), 0);
	again = open_cache(TABLE_CACHE_MAX_BYTES);
	assert_int_equal(load_and_compare(again, libraries[0]), 0);
	assert_int_equal(load_and_compare(again, libraries[1]), 0);
}

/* The same bytes under another identity, as a container could have them, are neither kept nor served. */
static void only_what_root_installed(void **state)
{
	CLEANUP(table_cache_freep) struct table_cache *cache = open_cache(TABLE_CACHE_MAX_BYTES);
	CLEANUP(elf_file_freep) struct elf_file *elf = open_elf(libraries[0]);
	CLEANUP(unwind_table_freep) struct unwind_table *table = build(libraries[0]), *got = NULL;
	char copy[] = "/tmp/test-table-cache-copy", name[1024], command[2048];
	struct elf_file *other;

	table_cache_keep(cache, elf, "/bin/sh", rules, table); /* not its path here */
	assert_int_equal(load_and_compare(cache, libraries[0]), -ENOENT);
	keep(cache, libraries[0]);
	file_in(name, sizeof(name));
	assert_int_equal(table_cache_load(cache, elf, "/bin/sh", rules, &got), -ENOENT);
	snprintf(command, sizeof(command), "cp %s %s && chmod 755 %s && touch -d '1 hour ago' %s", libraries[0], copy, copy, copy);
	assert_int_equal(system(command), 0); /* NOLINT: paths of this machine */
	other = open_elf(copy);
	assert_int_equal(table_cache_load(cache, other, copy, rules, &got), -ENOENT);
	table_cache_keep(cache, other, copy, rules, table); /* changed just now, or not owned by root */
	file_in(name, sizeof(name));                        /* still one file */
	elf_file_free(other);
	unlink(copy);
}

struct seen {
	uint32_t nr;
	bool has_first, has_last;
};

static int see_path(void *arg, const char *path)
{
	struct seen *seen = arg;

	seen->nr++;
	seen->has_first |= !strcmp(path, libraries[0]);
	seen->has_last |= !strcmp(path, libraries[1]);
	return 0;
}

static struct seen see_interpreters(const struct table_cache *cache)
{
	struct seen seen = { 0 };

	assert_int_equal(table_cache_interpreters(cache, see_path, &seen), 0);
	return seen;
}

static void note(struct table_cache *cache, const char *path, const char *under)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = open_elf(path);

	table_cache_note_interpreter(cache, elf, under);
}

/* The last interpreters noted are known after a restart, the earlier ones are not. */
static void interpreters_are_noted(void **state)
{
	CLEANUP(table_cache_freep) struct table_cache *cache = open_cache(TABLE_CACHE_MAX_BYTES), *again = NULL;
	char other_name[1024];

	note(cache, libraries[0], "/bin/sh");
	assert_int_equal(see_interpreters(cache).nr, 0);
	note(cache, libraries[0], libraries[0]);
	note(cache, libraries[0], libraries[0]);
	assert_int_equal(see_interpreters(cache).nr, 1);
	for (int i = 0; i < 2 * TABLE_CACHE_INTERPRETERS; i++) { /* one file by many names */
		snprintf(other_name, sizeof(other_name), "%.*s%s", i + 1, "////////////////////////", libraries[0]);
		note(cache, libraries[0], other_name);
	}
	note(cache, libraries[1], libraries[1]);
	again = open_cache(TABLE_CACHE_MAX_BYTES);
	assert_int_equal(see_interpreters(again).nr, TABLE_CACHE_INTERPRETERS);
	assert_false(see_interpreters(again).has_first);
	assert_true(see_interpreters(again).has_last);
}

static void damaged_files_are_refused(void **state)
{
	CLEANUP(table_cache_freep) struct table_cache *cache = open_cache(TABLE_CACHE_MAX_BYTES);
	char name[1024];
	struct stat st;
	int fd;

	keep(cache, libraries[0]);
	file_in(name, sizeof(name));
	fd = open(name, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && !fstat(fd, &st));
	for (off_t off = 0; off < st.st_size; off += off < HEADER_BYTES + 100 ? 1 : st.st_size / 50) {
		uint8_t byte, changed;

		assert_int_equal(pread(fd, &byte, 1, off), 1);
		changed = byte ^ 0x10;
		assert_int_equal(pwrite(fd, &changed, 1, off), 1);
		if (load_and_compare(cache, libraries[0]) != -ENOENT)
			fail_msg("byte %lld is of no consequence", (long long)off);
		assert_int_equal(pwrite(fd, &byte, 1, off), 1);
	}
	assert_int_equal(load_and_compare(cache, libraries[0]), 0);
	assert_int_equal(ftruncate(fd, st.st_size + 1), 0);
	assert_int_equal(load_and_compare(cache, libraries[0]), -ENOENT);
	for (off_t size = st.st_size - 1; size >= 0; size = size > 300 ? size / 2 : size - 1) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_int_equal(load_and_compare(cache, libraries[0]), -ENOENT);
	}
	close(fd);
	keep(cache, libraries[0]); /* is written again */
	assert_int_equal(load_and_compare(cache, libraries[0]), 0);
}

/* With a valid checksum over wrong contents: refused, or a table that the kernel side can search. */
static void lies_do_no_harm(void **state)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = build(libraries[0]);
	struct buffer image = BUFFER_INIT(TABLE_IMAGE_BYTES_MAX);
	struct table_key key = { .device = 1, .inode = 2 };
	uint64_t random = 1, zero = 0;
	uint32_t nr_refused = 0;

	assert_int_equal(table_image_make(table, rules, &key, &image), 0);
	for (int turn = 0; turn < 1500; turn++) {
		CLEANUP(rule_table_freep) struct rule_table *others = rule_table_new(SONDE_MAX_RULES);
		CLEANUP(unwind_table_freep) struct unwind_table *got = NULL;
		size_t size = image.size, off;
		uint64_t sum;
		char *copy;
		int err;

		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		if (turn % 8 == 0)
			size = HEADER_BYTES + (random >> 33) % (size - HEADER_BYTES);
		copy = malloc(size); /* so that a sanitizer detects reads beyond the end */
		assert_non_null(copy);
		memcpy(copy, image.data, size);
		off = turn % 2 ? 24 + (random >> 20) % (HEADER_BYTES - 24) : 24 + (random >> 20) % (size - 24);
		copy[off] ^= (char)(1 << (random >> 60) % 8);
		memcpy(copy + CHECKSUM_OFF, &zero, sizeof(zero));
		sum = hash_stable(copy + HEADER_BYTES, size - HEADER_BYTES, hash_stable(copy, HEADER_BYTES, size));
		memcpy(copy + CHECKSUM_OFF, &sum, sizeof(sum));
		err = table_image_read(copy, size, &key, others, 0, &got);
		assert_true(!err || err == -EBADMSG);
		nr_refused += err != 0;
		if (!err)
			check_table(got, others);
		free(copy);
	}
	assert_in_range(nr_refused, 500, 1499); /* changed rules and addresses are not refused: they are valid */
	buffer_done(&image);
}

static void files_of_others_are_not_read(void **state)
{
	CLEANUP(table_cache_freep) struct table_cache *cache = open_cache(TABLE_CACHE_MAX_BYTES);
	char name[1024], aside[1100];

	keep(cache, libraries[0]);
	file_in(name, sizeof(name));
	chmod(name, 0620);
	assert_int_equal(load_and_compare(cache, libraries[0]), -ENOENT);
	chmod(name, 0602);
	assert_int_equal(load_and_compare(cache, libraries[0]), -ENOENT);
	chmod(name, 0600);
	assert_int_equal(load_and_compare(cache, libraries[0]), 0);
	if (!geteuid()) {
		assert_int_equal(chown(name, 65534, 65534), 0);
		assert_int_equal(load_and_compare(cache, libraries[0]), -ENOENT);
		assert_int_equal(chown(name, 0, 0), 0);
	}
	snprintf(aside, sizeof(aside), "%s.aside", name);
	assert_int_equal(rename(name, aside), 0);
	assert_int_equal(symlink(aside, name), 0);
	assert_int_equal(load_and_compare(cache, libraries[0]), -ENOENT);
	unlink(name);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(load_and_compare(cache, libraries[0]), -ENOENT);
}

static void directories_of_others_are_not_used(void **state)
{
	struct table_cache *cache = NULL;
	char link_path[sizeof(dir) + 16];
	struct diag diag = { 0 };

	chmod(dir, 0750);
	assert_int_equal(table_cache_open(dir, TABLE_CACHE_MAX_BYTES, &diag, &cache), -EPERM);
	assert_non_null(strstr(diag.text, dir));
	chmod(dir, 0700);
	snprintf(link_path, sizeof(link_path), "%s.link", dir);
	assert_int_equal(symlink(dir, link_path), 0);
	assert_true(table_cache_open(link_path, TABLE_CACHE_MAX_BYTES, NULL, &cache) < 0);
	unlink(link_path);
	if (!geteuid()) {
		assert_int_equal(chown(dir, 65534, 65534), 0);
		assert_int_equal(table_cache_open(dir, TABLE_CACHE_MAX_BYTES, NULL, &cache), -EPERM);
		assert_int_equal(chown(dir, 0, 0), 0);
	}
	assert_null(cache);
}

static void two_write_and_one_reads(void **state)
{
	CLEANUP(table_cache_freep) struct table_cache *cache = open_cache(TABLE_CACHE_MAX_BYTES);
	char name[1024];
	pid_t writers[2];

	keep(cache, libraries[0]);
	for (int i = 0; i < 2; i++) {
		writers[i] = fork();
		if (!writers[i]) {
			CLEANUP(table_cache_freep) struct table_cache *own = open_cache(TABLE_CACHE_MAX_BYTES);

			for (int turn = 0; turn < NR_WRITES; turn++)
				keep(own, libraries[0]);
			_exit(0);
		}
	}
	for (int turn = 0; turn < NR_WRITES; turn++)
		assert_int_equal(load_and_compare(cache, libraries[0]), 0);
	for (int i = 0; i < 2; i++) {
		int status;

		assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
		assert_int_equal(status, 0);
	}
	file_in(name, sizeof(name)); /* nothing else is left */
}

static void make_old(const char *path, int64_t time_s)
{
	const struct timespec times[2] = { { .tv_sec = time_s }, { .tv_sec = time_s } };

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* At the size limit the least recently used files are deleted, and the leftovers of a writer that died. */
static void it_is_bounded(void **state)
{
	struct table_cache *cache = open_cache(1);
	char first[1024], second[1024], leftover[1024];
	struct stat first_st, second_st;

	keep(cache, libraries[0]); /* more than the limit */
	assert_int_equal(load_and_compare(cache, libraries[0]), -ENOENT);
	keep(cache, libraries[1]);
	assert_int_equal(load_and_compare(cache, libraries[1]), -ENOENT);
	table_cache_free(cache);
	cache = open_cache(TABLE_CACHE_MAX_BYTES);
	keep(cache, libraries[1]);
	file_in(second, sizeof(second));
	assert_int_equal(stat(second, &second_st), 0);
	unlink(second);
	keep(cache, libraries[0]);
	file_in(first, sizeof(first));
	assert_int_equal(stat(first, &first_st), 0);
	keep(cache, libraries[1]);
	snprintf(leftover, sizeof(leftover), "%s/1.1.new", dir);
	close(open(leftover, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	make_old(leftover, 1000000000);
	table_cache_free(cache);
	cache = open_cache((uint64_t)(first_st.st_size + second_st.st_size)); /* just enough */
	assert_int_not_equal(access(leftover, F_OK), 0);
	make_old(first, 1000000000);
	make_old(second, 1100000000);
	assert_int_equal(load_and_compare(cache, libraries[0]), 0); /* most recently used */
	table_cache_free(cache);
	cache = open_cache((uint64_t)(first_st.st_size + second_st.st_size) - 1);
	assert_int_equal(load_and_compare(cache, libraries[0]), 0);
	assert_int_equal(load_and_compare(cache, libraries[1]), -ENOENT);
	table_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_comes_out_went_in, set_up),
		cmocka_unit_test_setup(only_what_root_installed, set_up),
		cmocka_unit_test_setup(interpreters_are_noted, set_up),
		cmocka_unit_test_setup(damaged_files_are_refused, set_up),
		cmocka_unit_test_setup(lies_do_no_harm, set_up),
		cmocka_unit_test_setup(files_of_others_are_not_read, set_up),
		cmocka_unit_test_setup(directories_of_others_are_not_used, set_up),
		cmocka_unit_test_setup(two_write_and_one_reads, set_up),
		cmocka_unit_test_setup(it_is_bounded, set_up),
	};
	int nr_failed;

	rules = rule_table_new(SONDE_MAX_RULES);
	if (!rules || !mkdtemp(dir))
		return 1;
	find_libraries();
	nr_failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_all();
	rmdir(dir);
	rule_table_free(rules);
	return nr_failed;
}
