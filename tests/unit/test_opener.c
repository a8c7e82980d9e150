// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/jit_files.h"
#include "proxy/opener.h"
#include "ready_child.h"
#include "shell.h"

#define MAX_BYTES 1000
#define USER	  12345
#define GROUP	  23456

/* A directory with files of several owners, and a process of another user. */
struct scene {
	char path[64];
	pid_t credentials;
};

enum { IN_OWN_ROOT = 1 };

static void live_as_stranger(const char *root, const int ready[2])
{
	const gid_t groups[] = { GROUP };

	if ((root && (chroot(root) || chdir("/"))) || setgroups(1, groups) || setresgid(USER, USER, USER) || setresuid(USER, USER, USER))
		_exit(1);
	ready_child_live(ready);
}

static pid_t start_stranger(const char *root)
{
	int ready[2];
	pid_t pid = ready_child_fork(ready);

	if (pid == 0)
		live_as_stranger(root, ready);
	assert_int_equal(ready_child_wait(ready), 1);
	return pid;
}

static void scene_init(struct scene *scene, int flags)
{
	if (geteuid() != 0) {
		print_message("SKIPPED: only root has to open as others\n");
		skip();
	}
	strncpy(scene->path, "/tmp/test_opener.XXXXXX", sizeof(scene->path) - 1);
	assert_non_null(mkdtemp(scene->path));
	run("chmod 755 %s && cd %s && mkdir -m 700 closed && mkdir -m 777 tmp && printf '\\177ELF' | tee secret open group own closed/open "
	    "> /dev/null && "
	    "chmod 644 open closed/open && chmod 600 secret own && chmod 640 group && chgrp %d group && chown %d own",
	    scene->path, scene->path, GROUP, USER);
	scene->credentials = start_stranger(flags & IN_OWN_ROOT ? scene->path : NULL);
}

static void end_stranger(struct scene *scene)
{
	if (scene->credentials > 0) {
		kill(scene->credentials, SIGKILL);
		waitpid(scene->credentials, NULL, 0);
	}
	scene->credentials = 0;
}

static void scene_done(struct scene *scene)
{
	if (!scene->path[0])
		return;
	end_stranger(scene);
	run("rm -rf %s", scene->path);
}

static int closed(int fd)
{
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Opens `path` as a debug file of a program in the same directory. */
static int open_beside(const struct scene *scene, pid_t tgid, const char *path)
{
	char program[PATH_MAX + 16];
	const char *slash = strrchr(path, '/');

	snprintf(program, sizeof(program), "%.*s/program", (int)(slash - path), path);
	return proxy_open_debug(NULL, (uint32_t)tgid, &(struct debugged){ .path = program, .owner = USER }, path, MAX_BYTES);
}

/* Opens `name` in the scene's directory. Returns 0 or the error. */
static int try(struct scene *scene, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", scene->path, name);
	return closed(open_beside(scene, scene->credentials, path));
}

static int try_own(struct scene *scene, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", scene->path, name);
	return closed(opener_open_own((uint32_t)scene->credentials, false, path, MAX_BYTES));
}

static void the_process_s_rights_count(void **state)
{
	CLEANUP(scene_done) struct scene scene = { 0 };

	scene_init(&scene, 0);
	assert_int_equal(try(&scene, "open"), 0);
	assert_int_equal(try(&scene, "own"), 0);
	assert_int_equal(try(&scene, "group"), 0);
	assert_int_equal(try(&scene, "secret"), -EACCES);
	assert_int_equal(try(&scene, "closed/open"), -EACCES);
	run("cd %s && ln -s ../secret tmp/to_secret && ln -s ../open tmp/to_open && chmod 000 own", scene.path);
	assert_int_equal(try(&scene, "tmp/to_secret"), -EACCES);
	assert_int_equal(try(&scene, "tmp/to_open"), 0);
	assert_int_equal(try(&scene, "own"), -EACCES);
	run("chmod 604 %s/group", scene.path); /* a group can also deny access */
	assert_int_equal(try(&scene, "group"), -EACCES);
	assert_int_equal(setfsuid((uid_t)-1), 0); /* our own ids are unchanged */
	assert_int_equal(setfsgid((gid_t)-1), 0);
	run("cat %s/secret > /dev/null", scene.path);
}

/* As in a container: user id 0 without root's capabilities. */
static void root_without_capabilities_is_a_user(void **state)
{
	CLEANUP(scene_done) struct scene scene = { 0 };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	int ready[2];

	scene_init(&scene, 0);
	end_stranger(&scene);
	scene.credentials = ready_child_fork(ready);
	if (scene.credentials == 0) {
		if (syscall(SYS_capset, &header, none))
			_exit(1);
		ready_child_live(ready);
	}
	assert_int_equal(ready_child_wait(ready), 1);
	assert_int_equal(try(&scene, "secret"), 0); /* root's own file */
	assert_int_equal(try(&scene, "own"), -EACCES);
}

static void only_regular_files(void **state)
{
	CLEANUP(scene_done) struct scene scene = { 0 };

	scene_init(&scene, 0);
	run("cd %s && mkfifo -m 666 fifo && mknod -m 666 zero c 1 5 && ln -s loop loop && truncate -s 10G large && chmod 644 large && ln "
	    "-s /proc/self/maps maps",
	    scene.path);
	assert_int_equal(try(&scene, "fifo"), -ENOEXEC);
	assert_int_equal(try(&scene, "zero"), -ENOEXEC);
	assert_int_equal(try(&scene, "tmp"), -ENOEXEC);
	assert_int_equal(try(&scene, "loop"), -ELOOP);
	assert_int_equal(try(&scene, "large"), -EFBIG);
	assert_int_equal(try(&scene, "maps"), -ENOEXEC); /* "self" would be this process */
	assert_int_equal(try(&scene, "none"), -ENOENT);
	assert_int_equal(open_beside(&scene, scene.credentials, "etc/passwd"), -EINVAL);
}

static void only_a_process_s_own_files(void **state)
{
	CLEANUP(scene_done) struct scene scene = { 0 };

	scene_init(&scene, 0);
	assert_int_equal(try_own(&scene, "own"), 0);
	assert_int_equal(try_own(&scene, "open"), 0); /* root's file */
	assert_int_equal(try_own(&scene, "secret"), -EACCES);
	run("cd %s && ln -s own link && cp open another && chown 54321 another && cp open twice && ln twice second", scene.path);
	assert_true(try_own(&scene, "link") < 0);
	assert_int_equal(try_own(&scene, "another"), -EPERM);
	assert_int_equal(try_own(&scene, "twice"), -EPERM);
}

/* The file is not found. Its contents were not checked. */
static bool is_not_there(int err)
{
	return err == -ENOENT || err == -ELOOP || err == -EPERM;
}

static void another_root_is_not_left(void **state)
{
	CLEANUP(scene_done) struct scene scene = { 0 };

	scene_init(&scene, IN_OWN_ROOT);
	run("cd %s && ln -s /etc etc && ln -s ../../../../etc up && ln -s /open absolute && ln -s /proc/self/cwd magic", scene.path);
	assert_int_equal(closed(open_beside(&scene, scene.credentials, "/open")), 0);
	assert_int_equal(closed(open_beside(&scene, scene.credentials, "/absolute")), 0);
	assert_int_equal(open_beside(&scene, scene.credentials, "/secret"), -EACCES);
	assert_true(is_not_there(open_beside(&scene, scene.credentials, "/etc/passwd")));
	assert_true(is_not_there(open_beside(&scene, scene.credentials, "/up/passwd")));
	assert_true(is_not_there(open_beside(&scene, scene.credentials, "/../../../etc/passwd")));
	assert_true(is_not_there(open_beside(&scene, scene.credentials, "/magic/etc/passwd")));
	assert_true(is_not_there(open_beside(&scene, scene.credentials, "/usr/lib/debug/../../../etc/passwd")));
}

static int try_debug(const struct scene *scene, const char *of, const char *path)
{
	return closed(
	    proxy_open_debug(NULL, (uint32_t)scene->credentials, &(struct debugged){ .path = of, .owner = USER }, path, MAX_BYTES));
}

/* The caller of open_beside chooses the path and may be under another user's control. All files here are readable; all but two are ELF. */
static void only_debug_files(void **state)
{
	static const char *const given[] = { "/usr/lib/debug/.build-id/ab/cd.debug",
					     "/lib/program.debug",
					     "/lib/.debug/any",
					     "/etc/unit.dwo",
					     "/etc/unit.dwp",
					     "/etc/.dwz/any" };
	static const char *const refused[] = { "/etc/shadow",
					       "/lib/../etc/shadow",
					       "/lib/.debug/../../etc/shadow",
					       "/usr/lib/debug/../../../etc/shadow",
					       "/proc/1/environ",
					       "/lib/deep/any",
					       "/lib/.debug/deep/any",
					       "/etc/.debug/any",
					       "/dwo",
					       "/etc/.dwz/../shadow" };
	CLEANUP(scene_done) struct scene scene = { 0 };

	scene_init(&scene, IN_OWN_ROOT);
	run("cd %s && mkdir -p usr/lib/debug/.build-id/ab lib/.debug/deep lib/deep etc/.dwz etc/.debug proc/1 && for file in "
	    "usr/lib/debug/.build-id/ab/cd.debug lib/program.debug lib/.debug/any "
	    "etc/unit.dwo etc/unit.dwp etc/.dwz/any etc/shadow proc/1/environ lib/deep/any lib/.debug/deep/any etc/.debug/any dwo; do cp "
	    "open $file; done; "
	    "echo text > usr/lib/debug/text; echo text > etc/text.dwo; : > usr/lib/debug/empty; mkfifo -m 666 usr/lib/debug/fifo; chmod "
	    "755 .",
	    scene.path);
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		assert_int_equal(try_debug(&scene, "/lib/program", given[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		assert_int_equal(try_debug(&scene, "/lib/program", refused[i]), -EPERM);
	assert_int_equal(try_debug(&scene, "/lib/program", "/usr/lib/debug/text"), -ENOEXEC);
	assert_int_equal(try_debug(&scene, "/lib/program", "/etc/text.dwo"), -ENOEXEC);
	assert_int_equal(try_debug(&scene, "/lib/program", "/usr/lib/debug/empty"), -ENOEXEC);
	assert_int_equal(try_debug(&scene, "/lib/program", "/usr/lib/debug/fifo"), -ENOEXEC);
	assert_int_equal(try_debug(&scene, NULL, "/lib/program.debug"), -EPERM);
	assert_int_equal(try_debug(&scene, "program", "/lib/program.debug"), -EPERM);
}

/* Only a file's owner and root vouch for its contents. */
static void debug_files_of_others_do_not_count(void **state)
{
	CLEANUP(scene_done) struct scene scene = { 0 };
	const struct debugged of_root = { .path = "/lib/program" }, of_user = { .path = "/lib/program", .owner = USER };
	uint32_t tgid;

	scene_init(&scene, IN_OWN_ROOT);
	tgid = (uint32_t)scene.credentials;
	run("cd %s && mkdir lib && for name in root users others all; do cp open lib/$name; done && chown %d lib/users && chown 54321 "
	    "lib/others && chmod 666 lib/all && chmod 755 .",
	    scene.path, USER);
	assert_int_equal(closed(proxy_open_debug(NULL, tgid, &of_root, "/lib/root", MAX_BYTES)), 0);
	assert_int_equal(closed(proxy_open_debug(NULL, tgid, &of_root, "/lib/users", MAX_BYTES)), -EPERM);
	assert_int_equal(closed(proxy_open_debug(NULL, tgid, &of_user, "/lib/root", MAX_BYTES)), 0);
	assert_int_equal(closed(proxy_open_debug(NULL, tgid, &of_user, "/lib/users", MAX_BYTES)), 0);
	assert_int_equal(closed(proxy_open_debug(NULL, tgid, &of_user, "/lib/others", MAX_BYTES)), -EPERM);
	assert_int_equal(closed(proxy_open_debug(NULL, tgid, &of_user, "/lib/all", MAX_BYTES)), -EPERM);
	assert_int_equal(setenv("SUDO_UID", "54321", 1), 0);
	assert_int_equal(closed(proxy_open_debug(NULL, tgid, &of_root, "/lib/others", MAX_BYTES)), 0);
	assert_int_equal(unsetenv("SUDO_UID"), 0);
}

/* The test must not change /usr/lib/debug. It requests a path there that does not exist. */
static void of_the_gone_only_debug_files(void **state)
{
	CLEANUP(scene_done) struct scene scene = { 0 };
	pid_t gone;

	scene_init(&scene, 0);
	gone = scene.credentials;
	end_stranger(&scene);
	scene.credentials = gone;
	assert_int_equal(try(&scene, "open"), -ESRCH);
	assert_int_equal(try_own(&scene, "open"), 0); /* below /tmp, readable by all, owned by root */
	assert_int_equal(try_own(&scene, "secret"), -EACCES);
	assert_int_equal(try_own(&scene, "own"), -EPERM); /* the owner of the ended process is no longer known */
	assert_int_equal(open_beside(&scene, 0, "/etc/passwd"), -ESRCH);
	assert_int_equal(open_beside(&scene, 0, "/usr/lib/debug/../../../etc/passwd"), -ESRCH);
	assert_int_equal(open_beside(&scene, 0, "/usr/lib/debug/none/such"), -ENOENT);
	assert_int_equal(opener_open_own((uint32_t)gone, false, "/etc/passwd", 1 << 20), -ESRCH);
	scene.credentials = 0;
}

static void what_we_started_is_ours(void **state)
{
	CLEANUP(scene_done) struct scene scene = { 0 };
	char path[PATH_MAX];
	pid_t gone;

	scene_init(&scene, 0);
	gone = scene.credentials;
	end_stranger(&scene);
	snprintf(path, sizeof(path), "%s/secret", scene.path);
	assert_int_equal(closed(opener_open_own((uint32_t)gone, true, path, MAX_BYTES)), 0);
}

static void jit_files_are_found(void **state)
{
	CLEANUP(scene_done) struct scene scene = { 0 };
	struct process_table *processes = process_table_new(NULL);
	struct jit_process process = { .processes = processes };
	struct jit_files files;

	scene_init(&scene, IN_OWN_ROOT);
	process.tgid = process.number = (uint32_t)scene.credentials;
	assert_int_equal(process_table_scan(processes, process.tgid, 1, NULL), 0);
	jit_files_open(&process, &files);
	assert_int_equal(files.nr + files.nr_refused, 0);
	run("echo 1000 10 name > %s/tmp/perf-%d.map", scene.path, scene.credentials);
	run("echo x > %s/tmp/jit-%d.dump; chown %d %s/tmp/*", scene.path, scene.credentials, USER, scene.path);
	jit_files_open(&process, &files);
	assert_int_equal(files.nr, 1); /* a jitdump that no process has mapped does not count */
	assert_int_equal(files.nr_refused, 0);
	jit_files_done(&files);
	run("chmod 600 %s/tmp/perf-*; chown 0 %s/tmp/perf-*", scene.path, scene.path);
	jit_files_open(&process, &files);
	assert_int_equal(files.nr, 0);
	assert_int_equal(files.nr_refused, 1);
	assert_int_equal(files.refusal, -EACCES);
	process_table_free(processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_process_s_rights_count),
		cmocka_unit_test(root_without_capabilities_is_a_user),
		cmocka_unit_test(only_regular_files),
		cmocka_unit_test(only_a_process_s_own_files),
		cmocka_unit_test(another_root_is_not_left),
		cmocka_unit_test(only_debug_files),
		cmocka_unit_test(debug_files_of_others_do_not_count),
		cmocka_unit_test(of_the_gone_only_debug_files),
		cmocka_unit_test(what_we_started_is_ours),
		cmocka_unit_test(jit_files_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
