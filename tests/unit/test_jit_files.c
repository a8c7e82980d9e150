// SPDX-License-Identifier: Apache-2.0
/* The files that are searched for a process's JIT names: for living, ended and contained processes. test_opener.c tests the permissions. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "naming/jit_file_cache.h"
#include "process/jit_files.h"
#include "proxy/credentials.h"
#include "shell.h"
#include "symbolize/perf_map.h"

/* Reads the first file of the process as a perf map. */
static int read_of(uint32_t tgid, struct perf_map **ret_map)
{
	CLEANUP(jit_files_done) struct jit_files files;

	jit_files_open(&(struct jit_process){ .tgid = tgid, .number = jit_files_number(tgid) }, &files);
	return files.nr ? perf_map_read_fd(files.fds[0], ret_map) : files.nr_refused ? files.refusal : -ENOENT;
}

static void assert_name(const struct perf_map *map, uint64_t pc, const char *want, uint64_t want_start)
{
	const char *name;
	uint64_t start;

	assert_int_equal(perf_map_find(map, pc, &name, &start), 0);
	assert_string_equal(name, want);
	assert_true(start == want_start);
}

/* A root directory that contains tmp; tree_done removes it. */
struct tree {
	char path[64];
};

static void tree_init(struct tree *tree)
{
	snprintf(tree->path, sizeof(tree->path), "/tmp/test_jit_files.%d", getpid());
	run("mkdir -p %s/tmp", tree->path);
}

static void tree_done(struct tree *tree)
{
	run("rm -rf %s", tree->path);
}

static void write_map(int number, const char *name)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", number);
	unlink(path);
	file = fopen(path, "we");
	assert_non_null(file);
	fprintf(file, "1000 10 %s\n", name);
	assert_int_equal(fclose(file), 0);
}

static void unlink_map(int number)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", number);
	unlink(path);
}

static void processes_are_found_alive_dead_and_undead(void **state)
{
	CLEANUP(perf_map_freep) struct perf_map *own = NULL;
	CLEANUP(perf_map_freep) struct perf_map *zombie = NULL;
	CLEANUP(perf_map_freep) struct perf_map *gone = NULL;
	siginfo_t info;
	pid_t pid;

	write_map(getpid(), "alive");
	assert_int_equal(read_of((uint32_t)getpid(), &own), 0);
	unlink_map(getpid());
	assert_name(own, 0x1000, "alive", 0x1000);
	pid = fork();
	if (pid == 0)
		_exit(0);
	write_map(pid, "dead");
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(read_of((uint32_t)pid, &zombie), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(read_of((uint32_t)pid, &gone), 0);
	unlink_map(pid);
	assert_name(zombie, 0x1000, "dead", 0x1000);
	assert_name(gone, 0x1000, "dead", 0x1000);
	perf_map_free(MOVE(gone));
	assert_int_equal(read_of((uint32_t)pid, &gone), -ENOENT);
}

/* Starts a process with number 1 in a pid namespace and the root directory `root`. Writes its outer number to `to`. */
static void contain(const char *root, int to)
{
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe2(ready, O_CLOEXEC) || unshare(CLONE_NEWPID))
		_exit(77);
	pid = fork();
	if (pid == 0) {
		if (chroot(root) == 0 && chdir("/") == 0 && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (pid < 0 || read(ready[0], &byte, 1) != 1 || write(to, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	waitpid(pid, NULL, 0);
	_exit(0);
}

struct contained {
	pid_t helper, inner; /* inner: its outer number */
};

static struct contained start_contained(struct tree *tree)
{
	struct contained contained = { 0 };
	int told[2];

	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	contained.helper = fork();
	if (contained.helper == 0)
		contain(tree->path, told[1]);
	close(told[1]);
	if (read(told[0], &contained.inner, sizeof(contained.inner)) != sizeof(contained.inner)) {
		waitpid(contained.helper, NULL, 0);
		tree_done(tree); /* skip() jumps */
		print_message("SKIPPED: no right to make a pid namespace\n");
		skip();
	}
	close(told[0]);
	return contained;
}

static void end_contained(const struct contained *contained)
{
	kill(contained->inner, SIGKILL);
	waitpid(contained->helper, NULL, 0);
}

static void a_containers_map_is_its_own(void **state)
{
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;
	CLEANUP(tree_done) struct tree tree = { 0 };
	struct contained contained;
	int err;

	tree_init(&tree);
	run("echo 1000 10 contained > %s/tmp/perf-1.map", tree.path);
	contained = start_contained(&tree);
	err = read_of((uint32_t)contained.inner, &map);
	end_contained(&contained);
	assert_int_equal(err, 0);
	assert_name(map, 0x1000, "contained", 0x1000);
}

static uint32_t nr_credentials; /* readings */

int __real_credentials_read(int proc_fd, struct credentials *ret_credentials);
int __wrap_credentials_read(int proc_fd, struct credentials *ret_credentials);
int __wrap_credentials_read(int proc_fd, struct credentials *ret_credentials)
{
	nr_credentials++;
	return __real_credentials_read(proc_fd, ret_credentials);
}

/* The number of a process that the cache met is not asked again until it ends: then another may have its tgid. */
static void a_known_number_is_not_asked_again(void **state)
{
	CLEANUP(tree_done) struct tree tree = { 0 };
	struct jit_file_cache *cache = jit_file_cache_new(NULL, 0);
	struct process_table *processes = process_table_new(NULL);
	struct location_table *locations = location_table_new();
	struct contained contained;
	uint32_t known, before, after, tgid;

	tree_init(&tree);
	contained = start_contained(&tree);
	tgid = (uint32_t)contained.inner;
	location_user(locations, processes, tgid, 1, 0x1000);
	jit_file_cache_step(cache, locations, processes, 1);
	before = nr_credentials;
	known = jit_file_cache_number(cache, tgid);
	after = nr_credentials;
	end_contained(&contained);
	assert_int_equal(known, 1);
	assert_int_equal(after, before);
	assert_int_equal(jit_file_cache_number(cache, tgid), tgid);
	assert_int_equal(jit_file_cache_number(NULL, tgid), tgid);
	jit_file_cache_free(cache);
	location_table_free(locations);
	process_table_free(processes);
}

/* The process maps a page of the file executable, as perf's agents do. */
static void mapped_jitdumps_are_found(void **state)
{
	CLEANUP(jit_files_done) struct jit_files files;
	CLEANUP(closep) int fd = -1;
	CLEANUP(tree_done) struct tree tree = { 0 };
	struct process_table *processes = process_table_new(NULL);
	const struct jit_process process = { .processes = processes, .tgid = (uint32_t)getpid(), .number = (uint32_t)getpid() };
	struct stat want, got;
	char path[128];
	void *page;

	tree_init(&tree);
	snprintf(path, sizeof(path), "%s/jit-%d.dump", tree.path, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(process_table_scan(processes, process.tgid, 1, NULL), 0);
	jit_files_open(&process, &files);
	munmap(page, 4096);
	assert_int_equal(files.nr, 1);
	assert_int_equal(fstat(fd, &want) || fstat(files.fds[0], &got), 0);
	assert_true(want.st_ino == got.st_ino && want.st_dev == got.st_dev);
	process_table_free(processes);
}

/* Opens the files of a process that is said to have ended with a mapping of this path. */
static void open_of_ended(uint32_t tgid, const char *path, struct jit_files *ret_files)
{
	struct process_table *processes = process_table_new(NULL);
	const struct mapping_event event = { .tgid = tgid, .start_pc = 4096, .size_bytes = 4096, .time_ns = 1, .path = path };

	assert_int_equal(process_table_mmap(processes, &event), 0);
	process_table_exit(processes, tgid, 2);
	jit_files_open(&(struct jit_process){ .processes = processes, .tgid = tgid, .number = jit_files_number(tgid) }, ret_files);
	process_table_free(processes);
}

/* The file must be one that the ended process may have left: below /tmp, with exactly this name. */
static void jitdumps_of_the_ended_are_found(void **state)
{
	CLEANUP(jit_files_done) struct jit_files files;
	CLEANUP(tree_done) struct tree tree = { 0 };
	char path[128], link[128];
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	tree_init(&tree);
	snprintf(path, sizeof(path), "%s/jit-%d.dump", tree.path, pid);
	snprintf(link, sizeof(link), "%s/tmp/jit-%d.dump", tree.path, pid);
	run("echo x > %s; ln -s %s %s", path, path, link);
	open_of_ended((uint32_t)pid, "/tmp/jit-1.dump", &files);
	assert_int_equal(files.nr + files.nr_refused, 0);
	open_of_ended((uint32_t)pid, link, &files);
	assert_int_equal(files.nr, 0);
	assert_int_equal(files.nr_refused, 1);
	open_of_ended((uint32_t)pid, path, &files);
	assert_int_equal(files.nr, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_are_found_alive_dead_and_undead),
		cmocka_unit_test(a_containers_map_is_its_own),
		cmocka_unit_test(a_known_number_is_not_asked_again),
		cmocka_unit_test(mapped_jitdumps_are_found),
		cmocka_unit_test(jitdumps_of_the_ended_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
