// SPDX-License-Identifier: Apache-2.0
/* The diagnostics socket of .NET, by processes that stand in for it, some of them hostile. tests/matrix/jit_maps.py has a real one. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/process_stat.h"
#include "base/stop_fd.h"
#include "process/dotnet_socket.h"

#define MAGIC "DOTNET_IPC_V1\0"
#define SHORT_NS (200 * NS_PER_MS)
#define LONG_NS (20 * NS_PER_S)

/* A process that listens as .NET does, and says what it was sent. */
struct runtime {
	pid_t pid;
	int requests;
	char path[128];
};

static void socket_path(pid_t pid, char *to, size_t size)
{
	struct process_stat stat;

	if (process_stat_read((uint32_t)pid, &stat))
		_exit(1);
	snprintf(to, size, "/tmp/dotnet-diagnostic-%d-%" PRIu64 "-socket", pid, process_stat_number(&stat, PROCESS_STAT_START));
}

static int listen_at(const char *path, int backlog)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, backlog) ? -1 : fd;
}

/* Answers each request with these bytes; without any it is silent. */
static void serve(int listener, int to, const void *answer, size_t size)
{
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		char request[64];
		ssize_t got = recv(fd, request, sizeof(request), 0);

		if (got <= 0 || write(to, request, (size_t)got) != got || (size && send(fd, answer, size, MSG_NOSIGNAL) < 0))
			_exit(1);
		if (size)
			close(fd);
	}
}

enum { LISTENS = 1, ACCEPTS = 2 };

static void runtime_init(struct runtime *runtime, int flags, const void *answer, size_t size)
{
	int pipes[2];
	char byte;

	*runtime = (struct runtime){ 0 };
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	runtime->pid = fork();
	if (runtime->pid == 0) {
		int listener = 0;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		socket_path(getpid(), runtime->path, sizeof(runtime->path));
		if (flags & LISTENS)
			listener = listen_at(runtime->path, 0);
		if (listener < 0 || write(pipes[1], "x", 1) != 1)
			_exit(1);
		if (flags & ACCEPTS)
			serve(listener, pipes[1], answer, size);
		pause();
		_exit(1);
	}
	close(pipes[1]);
	runtime->requests = pipes[0];
	assert_int_equal(read(runtime->requests, &byte, 1), 1);
	socket_path(runtime->pid, runtime->path, sizeof(runtime->path));
}

static void runtime_done(struct runtime *runtime)
{
	if (runtime->pid <= 0)
		return;
	kill(runtime->pid, SIGKILL);
	waitpid(runtime->pid, NULL, 0);
	close(runtime->requests);
	unlink(runtime->path);
}

/* Sends the command and waits for the answer. */
static int tell(const struct runtime *runtime, enum dotnet_command command, uint64_t max_ns, uint32_t *ret_reason)
{
	CLEANUP(closep) int fd = dotnet_socket_send(NULL, (uint32_t)runtime->pid, command);

	return fd < 0 ? fd : dotnet_socket_wait(fd, -1, clock_ns() + max_ns, ret_reason);
}

static void assert_request(const struct runtime *runtime, const char *want, size_t size)
{
	char got[64];

	assert_int_equal(read(runtime->requests, got, sizeof(got)), size);
	assert_memory_equal(got, want, size);
}

/* The bytes are those that 8.0.4 understood. */
static void it_is_told_and_answers(void **state)
{
	static const char enable[] = MAGIC "\x18\0\x04\x05\0\0\x03\0\0", disable[] = MAGIC "\x14\0\x04\x06\0";
	static const char done[24] = MAGIC "\x18\0\xff\0";
	CLEANUP(runtime_done) struct runtime runtime;
	uint32_t reason;

	runtime_init(&runtime, LISTENS | ACCEPTS, done, sizeof(done));
	assert_int_equal(tell(&runtime, DOTNET_ENABLE_PERF_MAP, LONG_NS, &reason), 0);
	assert_request(&runtime, enable, sizeof(enable));
	assert_int_equal(tell(&runtime, DOTNET_DISABLE_PERF_MAP, LONG_NS, &reason), 0);
	assert_request(&runtime, disable, sizeof(disable));
}

/* .NET 7 and older do not know the command. */
static void it_refuses(void **state)
{
	static const char refusal[24] = MAGIC "\x18\0\xff\xff\0\0\x85\x13\x13\x80";
	CLEANUP(runtime_done) struct runtime runtime;
	uint32_t reason = 0;

	runtime_init(&runtime, LISTENS | ACCEPTS, refusal, sizeof(refusal));
	assert_int_equal(tell(&runtime, DOTNET_ENABLE_PERF_MAP, LONG_NS, &reason), -EOPNOTSUPP);
	assert_int_equal(reason, 0x80131385);
}

static void it_is_silent(void **state)
{
	CLEANUP(runtime_done) struct runtime runtime;
	uint32_t reason;
	uint64_t from_ns;

	runtime_init(&runtime, LISTENS | ACCEPTS, NULL, 0);
	from_ns = clock_ns();
	assert_int_equal(tell(&runtime, DOTNET_ENABLE_PERF_MAP, SHORT_NS, &reason), -ETIMEDOUT);
	assert_in_range(clock_ns() - from_ns, SHORT_NS, LONG_NS);
}

static void a_stop_ends_the_wait(void **state)
{
	CLEANUP(runtime_done) struct runtime runtime;
	CLEANUP(closep) int stop_fd = stop_fd_new();
	CLEANUP(closep) int fd = -1;
	uint32_t reason;

	runtime_init(&runtime, LISTENS | ACCEPTS, NULL, 0);
	fd = dotnet_socket_send(NULL, (uint32_t)runtime.pid, DOTNET_ENABLE_PERF_MAP);
	assert_true(fd >= 0);
	stop_fd_set(stop_fd);
	assert_int_equal(dotnet_socket_wait(fd, stop_fd, UINT64_MAX, &reason), -EINTR);
	assert_true(stop_fd_is_set(stop_fd)); /* left to the caller */
}

static void it_answers_nonsense(void **state)
{
	static char huge[1 << 16] = MAGIC "\xff\xff\x01\0";
	static const struct {
		const char *bytes;
		size_t size;
	} answers[] = { { "HTTP/1.1 400 Bad Request\r\n\r\n", 28 },
			{ MAGIC "\x18\0\xff\0", 18 },				/* cut off */
			{ MAGIC "\x10\0\xff\0\0\0\0\0\0\0", 24 },		/* of less than a header */
			{ MAGIC "\x18\0\x04\x05\0\0\x03\0\0\0", 24 },		/* the request */
			{ MAGIC "\x18\0\xff\x07\0\0\0\0\0\0", 24 },
			{ "DOTNET_IPC_V2\0\x18\0\xff\0\0\0\0\0\0\0", 24 },
			{ huge, sizeof(huge) } };

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		CLEANUP(runtime_done) struct runtime runtime;
		uint32_t reason;

		runtime_init(&runtime, LISTENS | ACCEPTS, answers[i].bytes, answers[i].size);
		assert_int_equal(tell(&runtime, DOTNET_ENABLE_PERF_MAP, LONG_NS, &reason), -EPROTO);
	}
}

static void nobody_is_waited_for_to_accept(void **state)
{
	CLEANUP(runtime_done) struct runtime runtime;
	int fds[16], nr = 0, err = 0;

	runtime_init(&runtime, LISTENS, NULL, 0);
	while (err >= 0 && nr < (int)ARRAY_SIZE(fds)) {
		err = dotnet_socket_send(NULL, (uint32_t)runtime.pid, DOTNET_ENABLE_PERF_MAP);
		if (err >= 0)
			fds[nr++] = err;
	}
	assert_int_equal(err, -EAGAIN);
	while (nr)
		close(fds[--nr]);
}

static void only_a_socket_that_it_made_itself(void **state)
{
	CLEANUP(runtime_done) struct runtime runtime;
	CLEANUP(runtime_done) struct runtime other;
	CLEANUP(closep) int own = -1;
	uint32_t reason;

	runtime_init(&runtime, 0, NULL, 0);
	runtime_init(&other, LISTENS | ACCEPTS, NULL, 0);
	assert_int_equal(tell(&runtime, DOTNET_ENABLE_PERF_MAP, SHORT_NS, &reason), -ENOENT);
	own = listen_at(runtime.path, 1); /* we listen in its place */
	assert_true(own >= 0);
	assert_int_equal(tell(&runtime, DOTNET_ENABLE_PERF_MAP, SHORT_NS, &reason), -EPERM);
	assert_int_equal(unlink(runtime.path) || symlink(other.path, runtime.path), 0);
	assert_int_equal(tell(&runtime, DOTNET_ENABLE_PERF_MAP, SHORT_NS, &reason), -ENOTSOCK);
	assert_int_equal(unlink(runtime.path) || rename(other.path, runtime.path), 0);
	assert_int_equal(tell(&runtime, DOTNET_ENABLE_PERF_MAP, SHORT_NS, &reason), -EPERM);
	closep(&own);
	assert_int_equal(unlink(runtime.path), 0);
	own = open(runtime.path, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0600);
	assert_int_equal(tell(&runtime, DOTNET_ENABLE_PERF_MAP, SHORT_NS, &reason), -ENOTSOCK);
}

static void not_a_socket_of_another_user(void **state)
{
	CLEANUP(runtime_done) struct runtime runtime;
	uint32_t reason;

	if (geteuid() != 0) {
		print_message("SKIPPED: only root gives files away\n");
		skip();
	}
	runtime_init(&runtime, LISTENS | ACCEPTS, NULL, 0);
	assert_int_equal(chown(runtime.path, 12345, 12345), 0);
	assert_int_equal(tell(&runtime, DOTNET_ENABLE_PERF_MAP, SHORT_NS, &reason), -EPERM);
}

static void an_ended_process_is_not_told(void **state)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(dotnet_socket_send(NULL, (uint32_t)pid, DOTNET_ENABLE_PERF_MAP), -ESRCH);
	assert_false(dotnet_writes_perf_map((uint32_t)pid));
}

static void an_open_map_is_seen(void **state)
{
	char path[64], like[80];
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	snprintf(like, sizeof(like), "%sx", path);
	fd = open(like, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	unlink(like);
	assert_false(dotnet_writes_perf_map((uint32_t)getpid()));
	close(fd);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_true(dotnet_writes_perf_map((uint32_t)getpid()));
	unlink(path);
	assert_true(dotnet_writes_perf_map((uint32_t)getpid()));
	close(fd);
	assert_false(dotnet_writes_perf_map((uint32_t)getpid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_told_and_answers),
		cmocka_unit_test(it_refuses),
		cmocka_unit_test(it_is_silent),
		cmocka_unit_test(a_stop_ends_the_wait),
		cmocka_unit_test(it_answers_nonsense),
		cmocka_unit_test(nobody_is_waited_for_to_accept),
		cmocka_unit_test(only_a_socket_that_it_made_itself),
		cmocka_unit_test(not_a_socket_of_another_user),
		cmocka_unit_test(an_ended_process_is_not_told),
		cmocka_unit_test(an_open_map_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
