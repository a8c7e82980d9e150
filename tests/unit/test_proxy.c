// SPDX-License-Identifier: Apache-2.0
/* This program is its own proxy. It waits in vain for a file system whose server never answers. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "process/object_table.h"
#include "proxy/proxy.h"
#include "proxy/proxy_budget.h"
#include "ready_child.h"
#include "shell.h"

#define USER 12345
#define OTHER 12346
#define TEXT "what stands there"

/* A file system that nobody serves, and a proxy. */
struct scene {
	char path[64];
	int fuse_fd;
	struct proxy *proxy;
	pid_t users[8]; /* sleep */
	pid_t sleeper;  /* is not our child */
	uint32_t nr_users;
};

static void scene_init(struct scene *scene)
{
	char options[128];

	*scene = (struct scene){ .path = "/tmp/test_proxy.XXXXXX", .fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC) };
	if (geteuid() != 0 || scene->fuse_fd < 0) {
		print_message("SKIPPED: nothing can be mounted\n");
		skip();
	}
	assert_non_null(mkdtemp(scene->path));
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", scene->fuse_fd);
	assert_int_equal(mount("dead", scene->path, "fuse", MS_NOSUID | MS_NODEV, options), 0);
	assert_int_equal(proxy_new(NULL, &scene->proxy), 0);
}

static void scene_done(struct scene *scene)
{
	for (uint32_t i = 0; i < scene->nr_users; i++) {
		kill(scene->users[i], SIGKILL);
		waitpid(scene->users[i], NULL, 0);
	}
	if (scene->sleeper > 0) {
		kill(scene->sleeper, SIGKILL);
		run("rm -rf %s.*", scene->path);
	}
	proxy_free(scene->proxy);
	closep(&scene->fuse_fd); /* releases the waiters: the server has ended */
	umount2(scene->path, MNT_DETACH);
	rmdir(scene->path);
}

static uint32_t start_user(struct scene *scene, uid_t uid)
{
	int ready[2];
	pid_t pid = ready_child_fork(ready);

	if (pid == 0) {
		if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
			_exit(1);
		ready_child_live(ready);
	}
	assert_int_equal(ready_child_wait(ready), 1);
	scene->users[scene->nr_users++] = pid;
	return (uint32_t)pid;
}

/* Opens a path as the process names it. Returns 0 or the error. */
static int open_for(struct scene *scene, uint32_t tgid, const char *path)
{
	int fd = proxy_open_own(scene->proxy, tgid, false, path, 1 << 20);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int open_dead(struct scene *scene, uint32_t tgid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/file", scene->path);
	return open_for(scene, tgid, path);
}

static void does_what_it_is_asked(void **state)
{
	CLEANUP(scene_done) struct scene scene;
	char text[100000] = TEXT, copy[sizeof(text)];
	uint32_t tgids[2]; /* a user's, which the proxy reads, and our own, which we read */
	FILE *maps;
	int fd;

	scene_init(&scene);
	text[sizeof(text) - 1] = 'x'; /* more than one message holds */
	tgids[0] = start_user(&scene, USER); /* has the text, too */
	tgids[1] = (uint32_t)getpid();
	for (int i = 0; i < 2; i++) {
		strcpy(copy, "");
		assert_int_equal(proxy_read_memory(scene.proxy, tgids[i], (uintptr_t)text, copy, sizeof(copy)), 0);
		assert_memory_equal(text, copy, sizeof(copy));
		assert_int_equal(proxy_read_memory(scene.proxy, tgids[i], 8, copy, 8), -EFAULT);
		assert_int_equal(proxy_read_memory_some(scene.proxy, tgids[i], (uintptr_t)text, copy, sizeof(copy)), sizeof(copy));
		assert_int_equal(proxy_read_memory_some(scene.proxy, tgids[i], 8, copy, 8), 0);
		assert_int_equal(proxy_maps(scene.proxy, tgids[i], tgids[i], &maps), 0);
		assert_non_null(fgets(copy, sizeof(copy), maps));
		assert_non_null(strchr(copy, '-'));
		fclose(maps);
	}
	assert_int_equal(proxy_maps(scene.proxy, 0x7ffffff0, 0x7ffffff0, &maps), -ENOENT);
	fd = proxy_find(scene.proxy, "/proc/self/exe");
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(proxy_find(scene.proxy, "/nowhere"), -ENOENT);
	assert_int_equal(proxy_open_own(scene.proxy, tgids[0], false, "relative", 1), -EINVAL);
	assert_int_equal(proxy_counts(scene.proxy).nr_timed_out, 0);
}

static void who_hangs_is_left_and_not_asked_again(void **state)
{
	CLEANUP(scene_done) struct scene scene;
	uint32_t user, sibling, other;
	uint64_t began = clock_ns();

	scene_init(&scene);
	user = start_user(&scene, USER);
	sibling = start_user(&scene, USER);
	other = start_user(&scene, OTHER);
	assert_int_equal(open_dead(&scene, user), -ETIMEDOUT);
	assert_int_equal(open_dead(&scene, user), -EBUSY);
	assert_int_equal(open_for(&scene, user, "/etc/passwd"), -EBUSY);
	assert_int_equal(open_for(&scene, sibling, "/etc/passwd"), 0);
	assert_int_equal(open_dead(&scene, other), -ETIMEDOUT);
	assert_true(clock_ns() - began < 30 * NS_PER_S); /* without a deadline it would never return */
	assert_int_equal(proxy_counts(scene.proxy).nr_timed_out, 2);
	assert_int_equal(proxy_counts(scene.proxy).nr_refused, 2);
	assert_true(proxy_counts(scene.proxy).tgid == user || proxy_counts(scene.proxy).tgid == other);
	assert_int_equal(proxy_counts(scene.proxy).uid, proxy_counts(scene.proxy).tgid == user ? USER : OTHER);
}

/* Looks up a mapped file by its path after the mapping itself has gone. Returns 0 or the error. */
static int locate(struct scene *scene, uint32_t tgid, const char *path)
{
	int fd = proxy_locate(scene->proxy, &(struct mapped_region){ .tgid = tgid, .start_pc = 4096, .end_pc = 8192, .path = path });

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int locate_dead(struct scene *scene, uint32_t tgid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/file", scene->path);
	return locate(scene, tgid, path);
}

/* Processes are cheap, so the limit is per user. */
static void after_four_nobody_of_that_user_is_asked(void **state)
{
	CLEANUP(scene_done) struct scene scene;

	scene_init(&scene);
	for (int i = 0; i < 4; i++)
		assert_int_equal(locate_dead(&scene, start_user(&scene, USER)), -ETIMEDOUT);
	assert_int_equal(locate(&scene, start_user(&scene, USER), "/etc/passwd"), -EBUSY);
	assert_int_equal(open_for(&scene, start_user(&scene, USER), "/etc/passwd"), -EBUSY);
	assert_int_equal(locate(&scene, start_user(&scene, OTHER), "/etc/passwd"), 0);
	assert_int_equal(locate(&scene, (uint32_t)getpid(), "/etc/passwd"), 0);
}

/* Somebody else may have mounted a file system at the path of the perf map. */
static void names_are_not_the_process_s_doing(void **state)
{
	CLEANUP(scene_done) struct scene scene;
	int err = -ETIMEDOUT;
	uint32_t user = 0;

	scene_init(&scene);
	for (int i = 0; i < 4; i++) {
		user = start_user(&scene, USER);
		assert_int_equal(open_dead(&scene, user), -ETIMEDOUT);
	}
	assert_int_equal(open_dead(&scene, user), -EBUSY);
	for (int i = 0; i < 3 && err == -ETIMEDOUT; i++) { /* the budget is spent: 2 ms of it are left, which a busy disk may use up */
		user = start_user(&scene, USER);
		err = locate(&scene, user, "/etc/passwd");
	}
	assert_int_equal(err, 0);
	assert_int_not_equal(open_for(&scene, user, "/etc/passwd"), -EBUSY);
}

static const struct proxy_request of_root = { .kind = PROXY_MEMORY, .tgid = 1 };

/* Covers slow answers that arrive in the end. For files that users serve, it does not matter who maps them. */
static void waiting_has_a_budget(void **state)
{
	const struct proxy_request of_file = { .kind = PROXY_OPEN, .device = makedev(0, 7) },
				   of_disk = { .kind = PROXY_OPEN, .device = makedev(8, 1), .tgid = 1 };
	const struct proxy_answer local = { .file_system = FILE_SYSTEM_LOCAL }, foreign = { .file_system = FILE_SYSTEM_FOREIGN };
	CLEANUP(trusted_done) struct trusted trusted;
	struct proxy_budget budget;
	uint32_t nr = 0;

	trusted_init(&trusted);
	proxy_budget_init(&budget, &trusted);
	for (int i = 0; i < 100; i++)
		proxy_budget_charge(&budget, &of_disk, 50 * NS_PER_MS, &local);
	while (nr < 100 && proxy_budget_wait_ns(&budget, &of_file) > 50 * NS_PER_MS) {
		proxy_budget_charge(&budget, &of_file, 50 * NS_PER_MS, &foreign);
		nr++;
	}
	assert_in_range(nr, 2, 10);
	assert_true(proxy_budget_allows(&budget, &of_file)); /* it has answered */
	proxy_budget_charge(&budget, &of_file, 50 * NS_PER_MS, NULL);
	assert_false(proxy_budget_allows(&budget, &of_file));
	assert_true(proxy_budget_allows(&budget, &(struct proxy_request){ .kind = PROXY_OPEN, .device = makedev(0, 8) }));
	assert_true(proxy_budget_allows(&budget, &(struct proxy_request){ .kind = PROXY_FIND }));
	assert_true(proxy_budget_allows(&budget, &of_root));
	proxy_budget_charge(&budget, &of_root, 50 * NS_PER_MS, NULL);
	assert_false(proxy_budget_allows(&budget, &of_root));
	assert_int_equal(budget.counts.nr_refused, 2);
	proxy_budget_charge(&budget, &of_disk, 50 * NS_PER_MS, NULL);
	/* other users' files on that disk */
	assert_true(proxy_budget_allows(&budget, &(struct proxy_request){ .kind = PROXY_OPEN, .device = makedev(8, 1), .tgid = 2 }));
	proxy_budget_done(&budget);
}

static void ours_is_not_spent_by_strangers(void **state)
{
	CLEANUP(scene_done) struct scene scene;
	const struct proxy_answer slow = { .file_system = FILE_SYSTEM_LOCAL };
	struct proxy_request of_credentials = { .kind = PROXY_MEMORY };
	CLEANUP(trusted_done) struct trusted trusted;
	struct proxy_budget budget;

	scene_init(&scene);
	of_credentials.tgid = start_user(&scene, USER);
	trusted_init(&trusted);
	proxy_budget_init(&budget, &trusted);
	for (int i = 0; i < 20; i++)
		proxy_budget_charge(&budget, &of_credentials, 19 * NS_PER_MS, &slow);
	assert_in_range(proxy_budget_wait_ns(&budget, &of_credentials), NS_PER_MS, 5 * NS_PER_MS);
	proxy_budget_charge(&budget, &of_root, 3 * NS_PER_MS, NULL);
	assert_int_equal(proxy_budget_wait_ns(&budget, &of_root), PROXY_DEADLINE_MS * NS_PER_MS);
	assert_int_equal(budget.counts.tgid, of_credentials.tgid); /* the slowest process is reported, not the one that was refused */
	proxy_budget_done(&budget);
}

static void copies_have_a_budget(void **state)
{
	CLEANUP(trusted_done) struct trusted trusted;
	struct proxy_budget budget;

	trusted_init(&trusted);
	proxy_budget_init(&budget, &trusted);
	assert_int_equal(proxy_budget_copies_left(&budget, USER), PROXY_COPIES_MAX);
	proxy_budget_copied(&budget, USER, PROXY_COPIES_MAX - (1 << 20));
	assert_int_equal(proxy_budget_copies_left(&budget, USER), 1 << 20);
	proxy_budget_copied(&budget, USER, 1);
	assert_int_equal(proxy_budget_copies_left(&budget, USER), 0);
	assert_int_equal(proxy_budget_copies_left(&budget, OTHER), PROXY_COPIES_MAX);
	proxy_budget_copied(&budget, OTHER, PROXY_COPIES_MAX / 2);
	assert_int_equal(proxy_budget_copies_left(&budget, OTHER + 1), PROXY_COPIES_MAX / 2);
	proxy_budget_done(&budget);
}

/* Returns an O_PATH descriptor, found through a process with other mounts than ours. */
static int open_of_sleeper(struct scene *scene)
{
	char path[PATH_MAX], number[16] = "";
	CLEANUP(closep) int fd = -1;

	snprintf(path, sizeof(path), "%s.all.pid", scene->path);
	fd = open(path, O_RDONLY);
	assert_true(read(fd, number, sizeof(number) - 1) > 0);
	scene->sleeper = atoi(number);
	snprintf(path, sizeof(path), "/proc/%d/fd/3", scene->sleeper); /* open since the process started */
	return open(path, O_PATH | O_CLOEXEC);
}

/* A file on a file system that a user may have mounted is copied. */
static void what_foreigners_serve_is_copied(void **state)
{
	CLEANUP(scene_done) struct scene scene;
	CLEANUP(closep) int path_fd = -1, copy_fd = -1;
	enum file_system_kind kind;
	char text[sizeof(TEXT)];
	struct stat st;

	scene_init(&scene);
	if (system("unshare -m true 2> /dev/null")) {
		scene_done(&scene); /* skip() jumps */
		print_message("SKIPPED: in a chroot mounts cannot be private\n");
		skip();
	}
	run("mkdir -p %s.lower %s.upper %s.work %s.all && printf '%s' > %s.lower/file && truncate -s 8M %s.lower/file && unshare -m sh -c '"
	    "mount -t overlay -o lowerdir=%s.lower,upperdir=%s.upper,workdir=%s.work over %s.all && exec 3< %s.all/file && (sleep 60 & "
	    "echo $! > %s.all.pid)'",
	    scene.path, scene.path, scene.path, scene.path, TEXT, scene.path, scene.path, scene.path, scene.path, scene.path, scene.path,
	    scene.path, scene.path);
	path_fd = open_of_sleeper(&scene);
	copy_fd = proxy_open(scene.proxy, start_user(&scene, USER), path_fd, 1, &kind);
	assert_true(copy_fd >= 0);
	assert_int_equal(kind, FILE_SYSTEM_FOREIGN);
	assert_int_equal(fstat(copy_fd, &st), 0);
	assert_int_equal(st.st_size, 8 << 20);
	assert_int_equal(st.st_uid, USER); /* the user charged for it */
	assert_int_equal(pread(copy_fd, text, sizeof(text), 0), sizeof(text));
	assert_string_equal(text, TEXT);
	assert_true(pwrite(copy_fd, "x", 1, 0) < 0);
	assert_true(ftruncate(copy_fd, 0) < 0);
}

/* The names go there and the values come back; nothing else of the environment does. */
static void identities_are_read(void **state)
{
	struct environment_names names = { 0 };
	struct environment_values values, none;
	struct process_identity identity;
	struct proxy *proxy;

	if (!getenv("PATH"))
		skip();
	assert_int_equal(environment_names_add(&names, "ABSENT"), 0);
	assert_int_equal(environment_names_add(&names, "PATH"), 0);
	assert_int_equal(proxy_new(NULL, &proxy), 0);
	assert_int_equal(proxy_identity(proxy, (uint32_t)getpid(), &names, &identity, &values), 0);
	assert_string_equal(identity.executable, "test_proxy");
	assert_string_equal(values.values[0], "");
	assert_int_equal(strncmp(values.values[1], getenv("PATH"), 100), 0);
	memset(&none, 0, sizeof(none));
	for (uint32_t i = 2; i < ENVIRONMENT_MAX_NAMES; i++)
		assert_memory_equal(values.values[i], none.values[i], sizeof(none.values[i]));
	assert_int_equal(proxy_identity(proxy, INT32_MAX, &names, &identity, &values), -ESRCH);
	assert_string_equal(identity.executable, "test_proxy");
	proxy_free(proxy);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_what_it_is_asked),
		cmocka_unit_test(identities_are_read),
		cmocka_unit_test(who_hangs_is_left_and_not_asked_again),
		cmocka_unit_test(after_four_nobody_of_that_user_is_asked),
		cmocka_unit_test(names_are_not_the_process_s_doing),
		cmocka_unit_test(waiting_has_a_budget),
		cmocka_unit_test(ours_is_not_spent_by_strangers),
		cmocka_unit_test(copies_have_a_budget),
		cmocka_unit_test(what_foreigners_serve_is_copied),
	};
	int code;

	return serve_as_proxy(argc, argv, &code) ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
