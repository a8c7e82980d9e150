// SPDX-License-Identifier: Apache-2.0
/* A report appears whole or not at all. Nothing else changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/confine.h"
#include "output/output.h"
#include "output/report_file.h"

static int output_write(const char *path, const void *bytes, size_t size, struct diag *diag)
{
	CLEANUP(output_stream_freep) struct output_stream *stream = NULL;
	int err = output_stream_open(path, diag, &stream);

	if (!err)
		err = output_stream_write(stream, bytes, size, diag);
	return err ? err : output_stream_finish(stream, diag);
}

static char folder[64], paths[4][128];

static const char *in_folder(const char *name)
{
	static uint32_t next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/sonde-test-XXXXXX");
	return !mkdtemp(folder) || chmod(folder, 0755);
}

static int tear_down(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void check_content(const char *path, const char *want)
{
	char got[256] = "";
	CLEANUP(fclosep) FILE *file = fopen(path, "re");

	assert_non_null(file);
	got[fread(got, 1, sizeof(got) - 1, file)] = '\0';
	assert_string_equal(got, want);
}

/* Counts the names in the folder, without `.` and `..`. */
static int nr_entries(void)
{
	CLEANUP(closedirp) DIR *dir = opendir(folder);
	int nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	return nr - 2;
}

static void put_file(const char *path, const char *text)
{
	CLEANUP(fclosep) FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
}

static void test_new_file(void **state)
{
	const char *path = in_folder("new");

	assert_int_equal(output_check(path, NULL), 0);
	assert_int_equal(nr_entries(), 0); /* the check leaves no file behind */
	assert_int_equal(output_write(path, "report", 6, NULL), 0);
	check_content(path, "report");
	assert_int_equal(nr_entries(), 1);
	assert_int_equal(output_write(path, "", 0, NULL), 0);
	check_content(path, "");
}

/* The old file keeps its contents under its other name. */
static void test_existing_file(void **state)
{
	const char *path = in_folder("old"), *other = in_folder("other");

	put_file(path, "before");
	assert_int_equal(link(path, other), 0);
	assert_int_equal(output_check(path, NULL), 0);
	check_content(path, "before");
	assert_int_equal(output_write(path, "report", 6, NULL), 0);
	check_content(path, "report");
	check_content(other, "before");
	assert_int_equal(nr_entries(), 2);
}

static void test_symbolic_links(void **state)
{
	const char *file = in_folder("file"), *link = in_folder("link"), *dangling = in_folder("dangling");
	struct stat st;

	put_file(file, "before");
	assert_int_equal(symlink(file, link), 0);
	assert_int_equal(symlink("nowhere", dangling), 0);
	assert_int_equal(output_check(link, NULL), 0);
	assert_int_equal(output_write(link, "report", 6, NULL), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	check_content(file, "report");
	assert_int_equal(output_check(dangling, NULL), 0);
	assert_int_equal(output_write(dangling, "report", 6, NULL), 0);
	check_content(dangling, "report");
	assert_int_equal(nr_entries(), 3);
}

/* /dev/stdout leads to a regular file here. It must not be replaced by one. */
static void test_link_to_a_descriptor(void **state)
{
	const char *file = in_folder("file");
	CLEANUP(closep) int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char link[128], descriptor[64];
	struct stat st;

	assert_true(fd >= 0);
	snprintf(descriptor, sizeof(descriptor), "/proc/self/fd/%d", fd);
	snprintf(link, sizeof(link), "%s/stdout", folder);
	assert_int_equal(symlink(descriptor, link), 0);
	assert_int_equal(output_check(link, NULL), 0);
	assert_int_equal(output_write(link, "report", 6, NULL), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	check_content(file, "report");
}

/* A file that has lost its name (stdout of a program that captures its output): the report is written into it. The link stays, and so
 * does a new file under the old name. */
static void test_link_to_a_lost_file(void **state)
{
	const char *file = in_folder("file"), *link = in_folder("stdout"), *other = in_folder("file (deleted)");
	CLEANUP(closep) int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char descriptor[64], got[64] = "";
	struct stat st;

	assert_int_equal(write(fd, "what was there", 14), 14);
	assert_int_equal(unlink(file), 0);
	snprintf(descriptor, sizeof(descriptor), "/proc/self/fd/%d", fd);
	assert_int_equal(symlink(descriptor, link), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(output_check(link, NULL), 0);
		assert_int_equal(output_write(link, i ? "report" : "first", i ? 6 : 5, NULL), 0);
		assert_int_equal(lstat(link, &st), 0);
		assert_true(S_ISLNK(st.st_mode));
		assert_int_equal(pread(fd, got, sizeof(got) - 1, 0), i ? 6 : 5);
		put_file(other, "other");
	}
	assert_string_equal(got, "report");
	check_content(other, "other");
	assert_int_equal(nr_entries(), 2);
}

/* In a folder that everybody may write to, a report is not written into another user's FIFO. */
static void test_fifo_of_a_stranger(void **state)
{
	const char *path = in_folder("fifo"), *link = in_folder("link");
	CLEANUP(closep) int fd = -1;

	if (geteuid()) {
		print_message("not run: it takes another user's FIFO\n");
		return;
	}
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(symlink("fifo", link), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(output_write(path, "one", 3, NULL), 0); /* the folder is our own: the FIFO is intended */
	assert_int_equal(chmod(folder, 01777), 0);
	assert_int_equal(output_write(path, "two", 3, NULL), -EACCES);
	assert_int_equal(output_write(link, "two", 3, NULL), -EACCES);
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "12345", 1);
	assert_int_equal(output_write(path, "two", 3, NULL), 0);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static void check_refused(const char *path, int err)
{
	struct diag diag = { 0 };

	assert_int_equal(output_check(path, &diag), err);
	assert_non_null(strstr(diag.text, "cannot write"));
	assert_int_not_equal(output_write(path, "report", 6, NULL), 0);
}

static void test_refused(void **state)
{
	char long_name[300], path[400];
	int before;

	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	snprintf(path, sizeof(path), "%s/%s", folder, long_name);
	put_file(in_folder("file"), "");
	before = nr_entries();
	check_refused(folder, -EISDIR);
	check_refused(in_folder("missing/report"), -ENOENT);
	check_refused(in_folder("missing/"), -ENOENT);
	check_refused(in_folder("file/report"), -ENOTDIR);
	check_refused(path, -ENAMETOOLONG);
	check_refused("", -ENOENT);
	assert_int_equal(nr_entries(), before);
}

/* No file appears before the report is complete. An old file stays until then. */
static void test_piece_by_piece(void **state)
{
	const char *path = in_folder("new"), *old = in_folder("old");
	struct output_stream *stream = NULL, *other = NULL;
	struct diag diag = { 0 };

	put_file(old, "before");
	assert_int_equal(output_stream_open(path, &diag, &stream), 0);
	assert_int_equal(output_stream_open(old, &diag, &other), 0);
	assert_int_equal(output_stream_write(stream, "one ", 4, &diag), 0);
	assert_int_equal(output_stream_write(other, "half", 4, &diag), 0);
	assert_int_equal(output_stream_write(stream, "two", 3, &diag), 0);
	assert_int_equal(nr_entries(), 1);
	output_stream_free(other);
	check_content(old, "before");
	assert_int_equal(output_stream_finish(stream, &diag), 0);
	output_stream_free(stream);
	check_content(path, "one two");
	assert_int_equal(nr_entries(), 2);
	assert_int_equal(output_stream_open(in_folder("missing/new"), &diag, &stream), -ENOENT);
	assert_non_null(strstr(diag.text, "cannot write"));
}

/* Runs as a user without write permission. Exits with 0 when the write is refused. */
static void test_no_rights(void **state)
{
	const char *path = in_folder("report");
	int status;
	pid_t pid;

	assert_int_equal(chmod(folder, 0555), 0);
	pid = fork();
	if (!pid) {
		if (!geteuid() && (setegid(65534) || seteuid(65534)))
			_exit(3);
		_exit(output_check(path, NULL) != -EACCES ? 1 : output_write(path, "report", 6, NULL) != -EACCES ? 2 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(nr_entries(), 0);
}

static void test_devices(void **state)
{
	struct stat st;

	assert_int_equal(output_check("/dev/null", NULL), 0);
	assert_int_equal(output_write("/dev/null", "report", 6, NULL), 0);
	assert_int_equal(output_check("/dev/full", NULL), 0);
	assert_int_equal(output_write("/dev/full", "report", 6, NULL), -ENOSPC);
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(output_check("-", NULL), 0);
}

static void test_fifo(void **state)
{
	const char *path = in_folder("fifo");
	CLEANUP(closep) int fd = -1;
	char got[8] = "";

	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(output_check(path, NULL), 0);
	assert_int_equal(output_write(path, "report", 6, NULL), 0);
	assert_int_equal(read(fd, got, sizeof(got)), 6);
	assert_string_equal(got, "report");
}

static void check_owner(const char *path, uid_t uid, mode_t mode)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_mode & 07777, mode);
}

/* A report is readable only by the user who requested it. */
static void test_targets(void **state)
{
	const char *path = in_folder("report");
	mode_t mask = umask(0);

	assert_int_equal(output_write(path, "new", 3, NULL), 0);
	check_owner(path, geteuid(), 0600);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(output_write(path, "again", 5, NULL), 0);
	check_owner(path, geteuid(), 0640);
	umask(mask);
	if (geteuid())
		return;
	assert_int_equal(chown(path, 12345, 12345), 0); /* an attacker put it there to read the report */
	assert_int_equal(output_write(path, "third", 5, NULL), 0);
	check_owner(path, 0, 0600);
	assert_int_equal(unlink(path), 0);
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "54321", 1);
	assert_int_equal(output_write(path, "sudo", 4, NULL), 0);
	check_owner(path, 12345, 0600);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(output_write(path, "again", 5, NULL), 0);
	check_owner(path, 12345, 0644);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

/* Some MiB of folded stacks: frames with a long name. */
static struct profile *long_profile(void)
{
	static char name[1000];
	static uint32_t frames[4000];
	struct profile *profile = profile_new();
	struct profile_sample sample = { .kernel_stack = PROFILE_NONE, .cpu = PROFILE_NONE, .values = { 1 } };
	struct profile_function function = { 0 };
	struct profile_location location = { .mapping = PROFILE_NONE };

	memset(name, 'x', sizeof(name) - 1);
	assert_non_null(profile);
	function.name = profile_string(profile, name);
	location.function = profile_function(profile, &function);
	frames[0] = profile_location(profile, &location);
	sample.user_stack = profile_stack(profile, frames, sizeof(frames) / sizeof(*frames));
	assert_int_equal(profile_add(profile, &sample), 0);
	return profile;
}

/* If a report is too large, or the disk is full after much of it was written, the old file stays. A pipe keeps what was written. */
static void test_long_report(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = long_profile();
	const struct export_options options = { 0 };
	const char *path = in_folder("report");
	struct diag diag = { 0 };
	struct stat st;

	put_file(path, "before");
	assert_int_equal(report_file_write(profile, EXPORT_FOLDED, &options, path, 3 << 20, &diag), -EFBIG);
	assert_string_equal(diag.text, "the folded report is larger than 3145728 bytes");
	check_content(path, "before");
	assert_int_equal(report_file_write(profile, EXPORT_FOLDED, &options, "/dev/full", 8 << 20, NULL), -ENOSPC);
	if (!geteuid() && !mount("sonde-test", folder, "tmpfs", 0, "size=1m")) {
		put_file(path, "before");
		diag.err = 0;
		assert_int_equal(report_file_write(profile, EXPORT_FOLDED, &options, path, 8 << 20, &diag), -ENOSPC);
		assert_non_null(strstr(diag.text, "cannot write"));
		check_content(path, "before");
		assert_int_equal(nr_entries(), 1);
		assert_int_equal(umount(folder), 0);
	}
	assert_int_equal(report_file_write(profile, EXPORT_FOLDED, &options, path, 8 << 20, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 4000 * 1000 + 2);
	assert_int_equal(nr_entries(), 1);
}

static void test_full_disk(void **state)
{
	static char large[1 << 20];
	const char *path = in_folder("report");

	if (geteuid() || mount("sonde-test", folder, "tmpfs", 0, "size=64k")) {
		print_message("not run: mounting a small file system needs rights\n");
		return;
	}
	put_file(path, "before");
	assert_int_equal(output_check(path, NULL), 0);
	assert_int_equal(output_write(path, large, sizeof(large), NULL), -ENOSPC);
	check_content(path, "before");
	assert_int_equal(nr_entries(), 1);
	assert_int_equal(output_write(path, "report", 6, NULL), 0); /* no disk space is lost either */
	check_content(path, "report");
	assert_int_equal(umount(folder), 0);
}

/* Runs in a child. Returns 0, or the number of the check of a confined process that failed. */
static int confined(const char *output, const char *other)
{
	struct sockaddr_in nobody = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	long version = syscall(444, NULL, 0, 1); /* landlock_create_ruleset(2) */

	if (version < 1)
		return 0; /* a kernel without Landlock */
	confine_writing(&output, 1);
	if (output_write(output, "one", 3, NULL) || output_write(output, "two", 3, NULL) || output_write("/dev/null", "x", 1, NULL))
		return 1;
	if (output_write(other, "x", 1, NULL) != -EACCES || !unlink(other) || open(other, O_WRONLY) >= 0 || open(other, O_RDONLY) < 0)
		return 2;
	if (version >= 4 && (!connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&nobody, sizeof(nobody)) || errno != EACCES))
		return 3;
	if (version >= 6 && (!kill(getppid(), 0) || errno != EPERM))
		return 4;
	confine_reading(&output, 1);
	if (open(output, O_RDONLY) < 0 || output_write(output, "three", 5, NULL) || open(other, O_RDONLY) >= 0 ||
	    open(".", O_RDONLY | O_DIRECTORY) >= 0)
		return 5;
	return execl("/bin/true", "true", NULL) && errno == EACCES ? 0 : 6;
}

static void test_confined(void **state)
{
	const char *output = in_folder("in/report"), *other = in_folder("other");
	int status;
	pid_t pid;

	put_file(other, "other");
	assert_int_equal(mkdir(in_folder("in"), 0755), 0);
	pid = fork();
	if (!pid)
		_exit(confined(output, other));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	check_content(other, "other");
	assert_int_equal(unlink(output) && errno != ENOENT, 0);
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_new_file),
		test(test_existing_file),
		test(test_symbolic_links),
		test(test_link_to_a_descriptor),
		test(test_link_to_a_lost_file),
		test(test_fifo_of_a_stranger),
		test(test_refused),
		test(test_piece_by_piece),
		test(test_no_rights),
		test(test_devices),
		test(test_fifo),
		test(test_targets),
		test(test_long_report),
		test(test_full_disk),
		test(test_confined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
