// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "symbolize/perf_map.h"

static void assert_name(const struct perf_map *map, uint64_t pc, const char *want, uint64_t want_start)
{
	const char *name = NULL;
	uint64_t start = 0;

	if (!want) {
		assert_int_equal(perf_map_find(map, pc, &name, &start), -ENOENT);
		return;
	}
	assert_int_equal(perf_map_find(map, pc, &name, &start), 0);
	assert_string_equal(name, want);
	assert_true(start == want_start);
}

static void lines_become_ranges(void **state)
{
	static const char text[] = "7f0000001000 100 first function\n"
				   "7f0000002000 80 LazyCompile:*second file.js:12\n"
				   "0x7f0000000000 0x10 with_prefix\n"
				   "7f0000003000 ffff torn";
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;

	assert_int_equal(perf_map_parse(text, sizeof(text) - 1, &map), 0);
	assert_int_equal(perf_map_size(map), 3);
	assert_int_equal(perf_map_nr_refused(map), 0);
	assert_name(map, 0x7f0000000fff, NULL, 0);
	assert_name(map, 0x7f0000001000, "first function", 0x7f0000001000);
	assert_name(map, 0x7f00000010ff, "first function", 0x7f0000001000);
	assert_name(map, 0x7f0000001100, NULL, 0);
	assert_name(map, 0x7f0000002010, "LazyCompile:*second file.js:12", 0x7f0000002000);
	assert_name(map, 0x7f000000000f, "with_prefix", 0x7f0000000000);
	assert_name(map, 0x7f0000003000, NULL, 0);
	assert_name(map, 0, NULL, 0);
	assert_name(map, UINT64_MAX, NULL, 0);
}

static void later_lines_win(void **state)
{
	static const char text[] = "1000 1000 old\n1800 100 inner\n1000 100 reused\n1f00 200 across\n1000 100 reused_again\n";
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;

	assert_int_equal(perf_map_parse(text, sizeof(text) - 1, &map), 0);
	assert_name(map, 0x1000, "reused_again", 0x1000);
	assert_name(map, 0x1100, "old", 0x1000);
	assert_name(map, 0x1880, "inner", 0x1800);
	assert_name(map, 0x1900, "old", 0x1000);
	assert_name(map, 0x1f00, "across", 0x1f00);
	assert_name(map, 0x20ff, "across", 0x1f00);
	assert_name(map, 0x2100, NULL, 0);
}

static void nonsense_is_passed_over_and_counted(void **state)
{
	static const char text[] =
	    "\n \nname only\n1000\n1000 10\n1000 10 \n1000 0 empty\n-1 10 x\n10000000000000000 10 x\n"
	    "1000 100000000 too_large\nffffffffffffffff 10 over\n1000 10 nul\0inside\n\xff\xfe\x00\x01\n2000 10 good\n";
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;
	CLEANUP(perf_map_freep) struct perf_map *none = NULL;

	assert_int_equal(perf_map_parse(text, sizeof(text) - 1, &map), 0);
	assert_int_equal(perf_map_size(map), 1);
	assert_int_equal(perf_map_nr_refused(map), 13);
	assert_name(map, 0x2000, "good", 0x2000);
	assert_int_equal(perf_map_parse("", 0, &none), -ENODATA);
	assert_int_equal(perf_map_parse("\x7f"
					"ELF\0\0\0",
					7, &none),
			 -ENODATA);
	assert_int_equal(perf_map_parse("1000 10 torn", 12, &none), -ENODATA);
	assert_null(none);
}

static uint32_t prng(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Against the obvious: the last line that covers the address. */
static void random_lines_agree_with_a_scan(void **state)
{
	for (uint32_t seed = 1; seed <= 2000; seed++) {
		CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(1 << 16);
		CLEANUP(perf_map_freep) struct perf_map *map = NULL;
		uint32_t random = seed, nr = 1 + prng(&random) % 24, starts[24], sizes[24];

		for (uint32_t i = 0; i < nr; i++) {
			starts[i] = prng(&random) % 200;
			sizes[i] = 1 + prng(&random) % (prng(&random) % 4 ? 12 : 120);
			buffer_printf(&text, "%x %x n%u\n", starts[i], sizes[i], i);
		}
		assert_int_equal(perf_map_parse(text.data, text.size, &map), 0);
		for (uint32_t pc = 0; pc < 340; pc++) {
			uint32_t i = nr;
			char want[16];

			while (i > 0 && !(pc >= starts[i - 1] && pc - starts[i - 1] < sizes[i - 1]))
				i--;
			snprintf(want, sizeof(want), "n%u", i - 1);
			assert_name(map, pc, i ? want : NULL, i ? starts[i - 1] : 0);
		}
	}
}

/* A root directory with a tmp in it, removed by tree_done. */
struct tree {
	char path[64];
	int fd;
};

__attribute__((format(printf, 1, 2))) static void run(const char *fmt, ...)
{
	char command[PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

static void tree_init(struct tree *tree)
{
	snprintf(tree->path, sizeof(tree->path), "/tmp/test_perf_map.%d", getpid());
	assert_int_equal(mkdir(tree->path, 0700), 0);
	run("cd %s && mkdir -p jail/tmp jail/var outside", tree->path);
	run("echo 1000 10 name > %s/jail/tmp/perf-7.map", tree->path);
	run("echo 1000 10 name > %s/outside/perf-8.map", tree->path);
	run("echo 1000 10 name > %s/jail/var/perf-9.map", tree->path);
	strncat(tree->path, "/jail", sizeof(tree->path) - strlen(tree->path) - 1);
	tree->fd = open(tree->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(tree->fd >= 0);
}

static void tree_done(struct tree *tree)
{
	close(tree->fd);
	*strrchr(tree->path, '/') = '\0';
	run("rm -rf %s", tree->path);
}

static int read_in(const struct tree *tree, const char *path, uid_t uid)
{
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;

	return perf_map_read_in(tree->fd, path, uid, &map);
}

static void only_honest_files_are_read(void **state)
{
	CLEANUP(tree_done) struct tree tree = { 0 };
	uid_t uid = geteuid();

	tree_init(&tree);
	assert_int_equal(read_in(&tree, "tmp/perf-7.map", uid), 0);
	assert_int_equal(read_in(&tree, "tmp/perf-404.map", uid), -ENOENT);
	run("mkfifo %s/tmp/fifo", tree.path);
	assert_int_equal(read_in(&tree, "tmp/fifo", uid), -ENOEXEC); /* and at once */
	run("mkdir %s/tmp/directory", tree.path);
	assert_int_equal(read_in(&tree, "tmp/directory", uid), -ENOEXEC);
	run("ln -s perf-7.map %s/tmp/link", tree.path);
	assert_int_equal(read_in(&tree, "tmp/link", uid), -ENOEXEC);
	run("truncate -s 1073741825 %s/tmp/sparse", tree.path);
	assert_int_equal(read_in(&tree, "tmp/sparse", uid), -EFBIG);
	run(": > %s/tmp/empty", tree.path);
	assert_int_equal(read_in(&tree, "tmp/empty", uid), -ENODATA);
	run("head -c 300000 /dev/zero > %s/tmp/zeroes", tree.path);
	assert_int_equal(read_in(&tree, "tmp/zeroes", uid), -ENODATA);
	run("cd %s/tmp && cp perf-7.map twice && ln twice second", tree.path);
	assert_int_equal(read_in(&tree, "tmp/twice", uid), -EPERM);
	run("cd %s/tmp && cp perf-7.map another", tree.path);
	if (uid == 0)
		run("chown 12345 %s/tmp/another", tree.path);
	assert_int_equal(read_in(&tree, "tmp/another", uid == 0 ? 12346 : uid + 1), -EPERM);
	assert_int_equal(read_in(&tree, "tmp/another", uid == 0 ? 12345 : uid), 0);
}

static void a_long_line_is_passed_over(void **state)
{
	CLEANUP(tree_done) struct tree tree = { 0 };
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;

	tree_init(&tree);
	run("cd %s/tmp && { echo 1000 10 before; printf '2000 10 '; head -c 400000 /dev/zero | tr '\\0' x; echo; echo 3000 10 behind; } > "
	    "long",
	    tree.path);
	assert_int_equal(perf_map_read_in(tree.fd, "tmp/long", geteuid(), &map), 0);
	assert_int_equal(perf_map_size(map), 2);
	assert_int_equal(perf_map_nr_refused(map), 1);
	assert_name(map, 0x1000, "before", 0x1000);
	assert_name(map, 0x2000, NULL, 0);
	assert_name(map, 0x3000, "behind", 0x3000);
}

static void links_lead_nowhere_outside(void **state)
{
	CLEANUP(tree_done) struct tree tree = { 0 };

	tree_init(&tree);
	run("ln -s ../outside %s/up", tree.path);
	assert_int_equal(read_in(&tree, "up/perf-8.map", geteuid()), -ENOENT);
	run("cd %s && ln -s \"$(dirname \"$PWD\")/outside\" absolute", tree.path);
	assert_int_equal(read_in(&tree, "absolute/perf-8.map", geteuid()), -ENOENT);
	run("ln -s /proc/self/cwd %s/magic", tree.path);
	assert_true(read_in(&tree, "magic/perf-8.map", geteuid()) < 0);
	run("ln -s /var %s/inside", tree.path);
	assert_int_equal(read_in(&tree, "inside/perf-9.map", geteuid()), 0);
}

/* A child in which openat2 does not exist; its exit status says which expectation failed. */
static int without_openat2(const struct tree *tree)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = ARRAY_SIZE(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 77;
	if (syscall(SYS_openat2, -1, "", NULL, 0) != -1 || errno != ENOSYS)
		return 1;
	if (read_in(tree, "tmp/perf-7.map", geteuid()))
		return 2;
	if (!read_in(tree, "inside/perf-9.map", geteuid()) || !read_in(tree, "up/perf-8.map", geteuid()))
		return 3;
	if (!read_in(tree, "../outside/perf-8.map", geteuid()) || !read_in(tree, "tmp/link", geteuid()))
		return 4;
	return 0;
}

static void old_kernels_follow_no_link(void **state)
{
	CLEANUP(tree_done) struct tree tree = { 0 };
	int status;
	pid_t pid;

	tree_init(&tree);
	run("cd %s && ln -s /var inside && ln -s ../outside up && ln -s perf-7.map tmp/link", tree.path);
	pid = fork();
	if (pid == 0)
		_exit(without_openat2(&tree));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		print_message("SKIPPED: no seccomp filters here\n");
	else
		assert_int_equal(WEXITSTATUS(status), 0);
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
	assert_int_equal(perf_map_read_process((uint32_t)getpid(), &own), 0);
	unlink_map(getpid());
	assert_name(own, 0x1000, "alive", 0x1000);
	pid = fork();
	if (pid == 0)
		_exit(0);
	write_map(pid, "dead");
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(perf_map_read_process((uint32_t)pid, &zombie), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(perf_map_read_process((uint32_t)pid, &gone), 0);
	unlink_map(pid);
	assert_name(zombie, 0x1000, "dead", 0x1000);
	assert_name(gone, 0x1000, "dead", 0x1000);
	perf_map_free(MOVE(gone));
	assert_int_equal(perf_map_read_process((uint32_t)pid, &gone), -ENOENT);
}

/* Starts a process that is number 1 in a pid namespace and has `root` for its root, and tells its outer number through `to`. */
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

static void a_containers_map_is_its_own(void **state)
{
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;
	CLEANUP(tree_done) struct tree tree = { 0 };
	pid_t helper, inner = 0;
	int told[2], err = 0;

	tree_init(&tree);
	run("echo 1000 10 contained > %s/tmp/perf-1.map", tree.path);
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	helper = fork();
	if (helper == 0)
		contain(tree.path, told[1]);
	close(told[1]);
	if (read(told[0], &inner, sizeof(inner)) == sizeof(inner)) {
		err = perf_map_read_process((uint32_t)inner, &map);
		kill(inner, SIGKILL);
	}
	close(told[0]);
	waitpid(helper, NULL, 0);
	if (!inner) {
		print_message("SKIPPED: no right to make a pid namespace\n");
		return;
	}
	assert_int_equal(err, 0);
	assert_name(map, 0x1000, "contained", 0x1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_become_ranges),
		cmocka_unit_test(later_lines_win),
		cmocka_unit_test(nonsense_is_passed_over_and_counted),
		cmocka_unit_test(random_lines_agree_with_a_scan),
		cmocka_unit_test(only_honest_files_are_read),
		cmocka_unit_test(a_long_line_is_passed_over),
		cmocka_unit_test(links_lead_nowhere_outside),
		cmocka_unit_test(old_kernels_follow_no_link),
		cmocka_unit_test(processes_are_found_alive_dead_and_undead),
		cmocka_unit_test(a_containers_map_is_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
