// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/plain_text.h"
#include "base/utf8.h"
#include "identity/cgroup_owner.h"
#include "identity/process_identity.h"
#include "ready_child.h"

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID   "7c2f8a3e-1234-4bcd-9876-0123456789ab"
#define UID_  "7c2f8a3e_1234_4bcd_9876_0123456789ab"
#define HASH  "0123456789abcdef0123456789abcdef"

/* --- cgroups -------------------------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *path, *id, *uid, *unit;
} paths[] = {
	{ "/", "", "", "" },
	/* Docker */
	{ "/docker/" ID, ID, "", "" },
	{ "/system.slice/docker-" ID ".scope", ID, "", "" },
	{ "/system.slice/docker.service/docker/" ID, ID, "", "" }, /* the runtime's own unit is not the container's */
	{ "/docker/" ID "/system.slice/nginx.service", ID, "", "nginx.service" }, /* a systemd in it */
	/* containerd, CRI-O, Podman */
	{ "/default/" ID, ID, "", "" },
	{ "/system.slice/containerd.service/kubepods-burstable-pod" UID_ ".slice:cri-containerd:" ID, ID, UID, "" },
	{ "/system.slice/crio-" ID ".scope", ID, "", "" },
	{ "/system.slice/crio-conmon-" ID ".scope", "", "", "" },
	{ "/machine.slice/libpod-" ID ".scope/container", ID, "", "" },
	{ "/machine.slice/libpod-conmon-" ID ".scope", "", "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", ID, "", "" },
	{ "/system.slice/web.service/libpod-payload-" ID, ID, "", "web.service" },
	{ "/libpod_parent/libpod-" ID, ID, "", "" },
	/* Kubernetes: best effort, burstable, guaranteed, static */
	{ "/kubepods/besteffort/pod" UID "/" ID, ID, UID, "" },
	{ "/kubepods/burstable/pod" UID "/" ID, ID, UID, "" },
	{ "/kubepods/pod" UID "/" ID, ID, UID, "" },
	{ "/kubepods/burstable/pod" HASH "/" ID, ID, HASH, "" },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" ID ".scope", ID, UID, "" },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/crio-" ID ".scope", ID, UID, "" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/docker-" ID ".scope", ID, UID, "" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice", "", UID, "" },
	{ "/docker/" OTHER "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" UID_
	  ".slice/cri-containerd-" ID ".scope",
	  ID, UID, "" },
	{ "/../../pod" UID "/" ID, ID, "", "" },
	{ "/pod" UID, "", "", "" },
	/* systemd */
	{ "/system.slice/nginx.service", "", "", "nginx.service" },
	{ "/system.slice/nginx.service (deleted)", "", "", "nginx.service" },
	{ "/system.slice/system-getty.slice/getty@tty1.service", "", "", "getty@tty1.service" },
	{ "/system.slice/foo\\x2dbar.service/workers", "", "", "foo\\x2dbar.service" },
	{ "/system.slice/_cpu.service", "", "", "cpu.service" },
	{ "/user.slice/user-1000.slice/session-3.scope", "", "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/init.scope", "", "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service", "", "", "editor.service" },
	{ "/init.scope", "", "", "" },
	{ "/.service", "", "", "" },
	/* neither */
	{ "/docker/" ID "0", "", "", "" },
	{ "/docker/x" ID, "", "", "" },
	{ "/docker/ABCDEF6789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "", "", "" },
	{ "/kubepods/pod7c2f8a3e-1234-4bcd-98760-123456789ab/x", "", "", "" },
	{ "/kubepods/podXXXXXXXX-1234-4bcd-9876-0123456789ab", "", "", "" },
	{ "/kubepods", "", "", "" },
	{ "/kubepods-pod", "", "", "" },
	{ "//docker//" ID "//", ID, "", "" },
	{ "/a\033[31m\xff.service", "", "", "a?[31m?.service" },
};

static void test_paths(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct cgroup_owner owner;
		char text[1024];

		snprintf(text, sizeof(text), "0::%s", paths[i].path);
		cgroup_owner_parse(text, &owner);
		if (strcmp(owner.container_id, paths[i].id) || strcmp(owner.pod_uid, paths[i].uid) || strcmp(owner.unit, paths[i].unit))
			fail_msg("%s: container '%s', pod '%s', unit '%s'", paths[i].path, owner.container_id, owner.pod_uid, owner.unit);
		if (!strstr(paths[i].path, "\xff") && !strstr(paths[i].path, "deleted") && strlen(paths[i].path) < sizeof(owner.cgroup))
			assert_string_equal(owner.cgroup, paths[i].path);
	}
}

static void check_text(const char *text, const char *id, const char *unit, const char *cgroup)
{
	struct cgroup_owner owner;

	cgroup_owner_parse(text, &owner);
	assert_string_equal(owner.container_id, id);
	assert_string_equal(owner.unit, unit);
	assert_string_equal(owner.cgroup, cgroup);
}

static void test_hierarchies(void **state)
{
	check_text("9:name=systemd:/docker/" ID "\n1:cpu:/docker/" OTHER "\n0::/\n", ID, "", "/docker/" ID);
	check_text("4:memory:/docker/" ID "\n1:cpu:/x\n", ID, "", "/x");
	check_text("1:name=systemd:/system.slice/a.service\n0::/system.slice/b.service\n", "", "b.service", "/system.slice/b.service");
	check_text("7:cpu,cpuacct:/system.slice/docker-" ID ".scope", ID, "", "/system.slice/docker-" ID ".scope");
	check_text("2:pids:/docker/" ID, "", "", ""); /* no hierarchy that we read */
	check_text("0::/\n", "", "", "/");
	check_text("", "", "", "");
	check_text("\n\n:::\n0:\n0::\n0::x\n", "", "", "");
	check_text("0::/a:b:/c", "", "", "/a:b:/c");
}

static void test_long_path(void **state)
{
	struct cgroup_owner owner;
	char text[4096] = "0::/";

	memset(text + 4, 'a', sizeof(text) - 5);
	memcpy(text + 3000, "/docker-" ID ".scope", strlen("/docker-" ID ".scope"));
	text[3000 + strlen("/docker-" ID ".scope")] = '\0';
	cgroup_owner_parse(text, &owner);
	assert_string_equal(owner.container_id, ID);
	assert_int_equal(strlen(owner.cgroup), sizeof(owner.cgroup) - 1);
	assert_string_equal(owner.cgroup + sizeof(owner.cgroup) - 4, "...");
}

/* Whatever the text is: what comes out is plain. */
static void test_noise(void **state)
{
	static const char *const parts[] = {
		"0::/", "1:cpu:/", "docker-", ID, ".scope", "/", "kubepods", "-pod", "pod", UID, UID_, ".slice", ":", "\n",
		".service", "user@", "_", "\xff\xfe", "\033", "\xe2\x80\xae", " (deleted)", "libpod-", "conmon-",
	};
	uint32_t seed = 1;

	for (uint32_t i = 0; i < 20000; i++) {
		struct cgroup_owner owner;
		char text[1024] = "0::/";

		for (uint32_t j = 0; j < 10; j++) {
			seed = seed * 1664525 + 1013904223;
			strncat(text, parts[(seed >> 16) % ARRAY_SIZE(parts)], sizeof(text) - strlen(text) - 1);
		}
		cgroup_owner_parse(text, &owner);
		assert_true(strlen(owner.container_id) == 0 || strlen(owner.container_id) == 64);
		assert_true(strlen(owner.pod_uid) == 0 || strlen(owner.pod_uid) == 36 || strlen(owner.pod_uid) == 32);
		for (const char *at = owner.unit, *end = at + strlen(at); at < end;)
			assert_true(utf8_is_plain(utf8_next(&at, end)));
	}
}

/* --- texts ---------------------------------------------------------------------------------------------------------------------------- */

static void check_copy(const char *text, size_t room, const char *want)
{
	char to[64];

	memset(to, 'X', sizeof(to));
	plain_copy(to, room, text, strlen(text));
	assert_string_equal(to, want);
	assert_int_equal(to[room], 'X');
}

static void test_copy(void **state)
{
	check_copy("", 4, "");
	check_copy("abc", 4, "abc");
	check_copy("abcd", 4, "...");
	check_copy("abcdefgh", 8, "abcd...");
	check_copy("abcdefg", 8, "abcdefg");
	check_copy("a\xc3\xa4" "bc\xc3\xa4\xc3\xa4", 8, "a\xc3\xa4" "b...");
	check_copy("ab\xf0\x9f\x98\x80" "cdef", 8, "ab..."); /* never half a character */
	check_copy("a\nb\xff", 8, "a?b?");
}

/* --- environments --------------------------------------------------------------------------------------------------------------------- */

static void test_names(void **state)
{
	struct environment_names names = { 0 };
	char text[ENVIRONMENT_NAME_BYTES + 1];

	assert_int_equal(environment_names_add(&names, ""), -EINVAL);
	assert_int_equal(environment_names_add(&names, "A=B"), -EINVAL);
	assert_int_equal(environment_names_add(&names, "A B"), -EINVAL);
	assert_int_equal(environment_names_add(&names, "A\xc3\xa4"), -EINVAL);
	memset(text, 'A', sizeof(text));
	text[ENVIRONMENT_NAME_BYTES] = '\0';
	assert_int_equal(environment_names_add(&names, text), -EINVAL);
	for (uint32_t i = 0; i < ENVIRONMENT_MAX_NAMES; i++) {
		snprintf(text, sizeof(text), "NAME_%u", i);
		assert_int_equal(environment_names_add(&names, text), 0);
		assert_int_equal(environment_names_add(&names, text), 0);
	}
	assert_int_equal(names.nr, ENVIRONMENT_MAX_NAMES);
	assert_int_equal(environment_names_add(&names, "ANOTHER"), -E2BIG);
}

static pid_t start(const char *program, char *const *environment)
{
	char *argv[] = { (char *)program, "1000", NULL };
	int ready[2];
	pid_t pid = ready_child_fork(ready);

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execve(program, argv, environment);
		_exit(127);
	}
	assert_int_equal(ready_child_wait(ready), 0); /* the exec closed it */
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void read_child(const char *program, char *const *environment, const struct environment_names *names,
		       struct process_identity *ret_identity, struct environment_values *ret_values)
{
	pid_t pid = start(program, environment);
	int err;

	do
		err = process_identity_read((uint32_t)pid, names, ret_identity, ret_values);
	while (err == -EAGAIN);
	end(pid);
	assert_int_equal(err, 0);
}

static void check_service(char *const *environment, const char *want)
{
	static const struct environment_names none;
	struct process_identity identity;
	struct environment_values values;

	read_child("/bin/sleep", environment, &none, &identity, &values);
	assert_string_equal(identity.service, want);
	assert_string_equal(values.values[0], "");
}

static int read_identity(uint32_t pid, struct process_identity *ret_identity)
{
	static const struct environment_names none;
	struct environment_values values;

	return process_identity_read(pid, &none, ret_identity, &values);
}

static void test_services(void **state)
{
	struct process_identity self;

	assert_int_equal(read_identity((uint32_t)getpid(), &self), 0);
	if (self.unit[0] || self.container_id[0])
		skip(); /* the children are in it, too */
	check_service((char *[]){ "A=1", "OTEL_SERVICE_NAME=shop", "OTEL_SERVICE_NAME=second", NULL }, "shop");
	check_service((char *[]){ "OTEL_SERVICE_NAME=", "OTEL_RESOURCE_ATTRIBUTES=a=b, service.name=cart%20%C3%A4,c=d", NULL },
		      "cart \xc3\xa4");
	check_service((char *[]){ "OTEL_RESOURCE_ATTRIBUTES=service.name=", NULL }, "sleep");
	check_service((char *[]){ "OTEL_RESOURCE_ATTRIBUTES=service.names=x,xservice.name=y", NULL }, "sleep");
	check_service((char *[]){ "OTEL_RESOURCE_ATTRIBUTES=service.name=50%,x", NULL }, "50%");
	check_service((char *[]){ "OTEL_RESOURCE_ATTRIBUTES=service.name=%0a%", NULL }, "?%");
	check_service((char *[]){ "XOTEL_SERVICE_NAME=no", "OTEL_SERVICE_NAMES=no", NULL }, "sleep");
	check_service((char *[]){ "OTEL_SERVICE_NAME=a\nb;c\033[1m", NULL }, "a?b;c?[1m");
	check_service((char *[]){ NULL }, "sleep");
}

static void test_values(void **state)
{
	struct environment_names names = { 0 };
	struct environment_values values;
	struct process_identity identity;
	char long_text[400] = "LONG=";

	memset(long_text + 5, 'x', sizeof(long_text) - 6);
	assert_int_equal(environment_names_add(&names, "REGION"), 0);
	assert_int_equal(environment_names_add(&names, "LONG"), 0);
	assert_int_equal(environment_names_add(&names, "ABSENT"), 0);
	read_child("/bin/sleep", (char *[]){ "SECRET=hidden", "REGIONAL=no", "REGION=north", long_text, NULL }, &names, &identity, &values);
	assert_string_equal(values.values[0], "north");
	assert_int_equal(strlen(values.values[1]), ENVIRONMENT_VALUE_BYTES - 1);
	assert_string_equal(values.values[1] + ENVIRONMENT_VALUE_BYTES - 4, "...");
	assert_string_equal(values.values[2], "");
	for (uint32_t i = 3; i < ENVIRONMENT_MAX_NAMES; i++)
		assert_string_equal(values.values[i], "");
	assert_null(memmem(&identity, sizeof(identity), "hidden", 6));
}

/* What is behind the limit is not read, nor a piece of what lies across it. */
static void test_large_environment(void **state)
{
	enum { NR = 4, BYTES = 100000 };
	static char big[NR][BYTES], beyond[] = "BEYOND=yes";
	struct environment_names names = { 0 };
	struct environment_values values;
	struct process_identity identity;
	char *environment[NR + 2] = { NULL };

	assert_int_equal(environment_names_add(&names, "BEYOND"), 0);
	assert_int_equal(environment_names_add(&names, "BIG1"), 0);
	assert_int_equal(environment_names_add(&names, "BIG2"), 0);
	for (int i = 0; i < NR; i++) {
		memset(big[i], 'x', BYTES - 1);
		memcpy(big[i], (char[]){ 'B', 'I', 'G', (char)('0' + i), '=' }, 5);
		environment[i] = big[i];
	}
	environment[NR] = beyond;
	read_child("/bin/sleep", environment, &names, &identity, &values);
	assert_string_equal(values.values[0], "");
	assert_int_equal(strlen(values.values[1]), ENVIRONMENT_VALUE_BYTES - 1);
	assert_string_equal(values.values[2], "");
}

/* --- processes ------------------------------------------------------------------------------------------------------------------------ */

static void test_hostile_executable(void **state)
{
	static const struct environment_names none;
	char directory[] = "/tmp/identity-XXXXXX", path[512], command[640];
	struct process_identity identity;
	struct environment_values values;
	size_t size;

	assert_non_null(mkdtemp(directory));
	size = (size_t)snprintf(path, sizeof(path), "%s/", directory);
	for (int i = 0; i < 255; i++) /* any byte but NUL and the slash */
		path[size++] = (char)(i + 1 == '/' ? 'x' : i + 1);
	path[size] = '\0';
	snprintf(command, sizeof(command), "cp /bin/sleep %s/sleep", directory);
	assert_int_equal(system(command), 0); /* NOLINT */
	snprintf(command, sizeof(command), "%s/sleep", directory);
	assert_int_equal(rename(command, path), 0);
	read_child(path, (char *[]){ NULL }, &none, &identity, &values);
	unlink(path);
	rmdir(directory);
	assert_int_equal(strlen(identity.executable), sizeof(identity.executable) - 1);
	assert_memory_equal(identity.executable, "???????????????????????????????" " !", 33);
	for (const char *at = identity.executable, *last = at + strlen(at); at < last;)
		assert_true(utf8_is_plain(utf8_next(&at, last)));
	if (!identity.unit[0] && !identity.container_id[0])
		assert_string_equal(identity.service, identity.executable);
}

static void test_deleted_executable(void **state)
{
	char path[] = "/tmp/identity-XXXXXX", command[64];
	struct process_identity identity;
	pid_t pid;
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0700), 0);
	close(fd);
	snprintf(command, sizeof(command), "cp /bin/sleep %s", path);
	assert_int_equal(system(command), 0); /* NOLINT */
	pid = start(path, (char *[]){ "A=1", NULL });
	unlink(path);
	while ((err = read_identity((uint32_t)pid, &identity)) == -EAGAIN)
		;
	end(pid);
	assert_int_equal(err, 0);
	assert_string_equal(identity.executable, path + strlen("/tmp/"));
}

static void test_ended(void **state)
{
	struct process_identity identity = { .service = "before" };
	pid_t pid = fork();
	siginfo_t info;

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(read_identity((uint32_t)pid, &identity), -ESRCH); /* a zombie has lost what it was */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(read_identity((uint32_t)pid, &identity), -ESRCH);
	assert_int_equal(read_identity(UINT32_MAX, &identity), -ESRCH);
	assert_string_equal(identity.service, "before");
}

/* The kubelet's links to logs, among others: POD_NAMESPACE_CONTAINER-ID.log. */
static void test_kubernetes(void **state)
{
	static const struct {
		const char *link, *id;
		struct kubelet_names want;
	} links[] = {
		{ "shop-1_prod_web-" OTHER ".log", OTHER, { "shop-1", "prod", "web" } },
		{ "a_b_c-d-" ID ".log", ID, { "a", "b", "c-d" } },
		{ "a_b_c-d-" ID ".log", OTHER, { "", "", "" } },
		{ "no-container-" ID ".log", ID, { "", "", "" } },
		{ "a_\033[1m_c-" ID ".log", ID, { "a", "?[1m", "c" } },
	};
	struct kubelet_names names;
	char directory[] = "/tmp/kubelet.XXXXXX", path[200];

	assert_non_null(mkdtemp(directory));
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, links[i].link);
		assert_int_equal(symlink("/nowhere", path), 0);
		kubelet_names_find(directory, links[i].id, &names);
		assert_string_equal(names.pod, links[i].want.pod);
		assert_string_equal(names.namespace, links[i].want.namespace);
		assert_string_equal(names.container, links[i].want.container);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(directory), 0);
	kubelet_names_find(directory, ID, &names); /* no such directory */
	assert_string_equal(names.pod, "");
}

static void test_kernel_thread(void **state)
{
	struct process_identity identity;
	char text[64];
	FILE *file = fopen("/proc/2/comm", "re");

	if (!file || !fgets(text, sizeof(text), file) || strcmp(text, "kthreadd\n") != 0) {
		if (file)
			fclose(file);
		skip(); /* another pid namespace */
	}
	fclose(file);
	assert_int_equal(read_identity(2, &identity), 0);
	assert_string_equal(identity.service, "");
	assert_string_equal(identity.executable, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_hierarchies),
		cmocka_unit_test(test_long_path),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_large_environment),
		cmocka_unit_test(test_hostile_executable),
		cmocka_unit_test(test_deleted_executable),
		cmocka_unit_test(test_ended),
		cmocka_unit_test(test_kernel_thread),
		cmocka_unit_test(test_kubernetes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
