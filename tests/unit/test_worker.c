// SPDX-License-Identifier: Apache-2.0
/* This program is its own worker: the request selects how it misbehaves. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/spawn.h"
#include "worker/serve.h"
#include "worker/worker.h"

enum {
	ECHO,
	READ_FD,
	COUNT,
	OPEN,
	WRITE_OPEN,
	CRASH,
	SPIN,
	HOARD,
	REFUSE,
	SOCKET,
	PTRACE,
	KILL,
	UNLINK,
	BIG,
	FORBIDDEN /* and the numbers that follow: one of forbidden[] */
};

static struct worker *worker;
static uint32_t nr_counted; /* requests of that kind, on the worker's side: 1 means a new worker */

/* What a worker must not do, whoever controls it. A pointer is NULL: the call is refused before the kernel looks at it. */
static const struct call {
	const char *name;
	long number, arguments[6];
} forbidden[] = {
	{ "a record lock", SYS_fcntl, { SPAWN_SOCKET, F_SETLK } },
	{ "an open file description's lock", SYS_fcntl, { SPAWN_SOCKET, F_OFD_SETLK } },
	{ "a question after a lock", SYS_fcntl, { SPAWN_SOCKET, F_GETLK } },
	{ "flags of the shared description", SYS_fcntl, { SPAWN_SOCKET, F_SETFL, O_NONBLOCK } },
	{ "whom a description signals", SYS_fcntl, { SPAWN_SOCKET, F_SETOWN, 1 } },
	{ "a lease", SYS_fcntl, { SPAWN_SOCKET, F_SETLEASE, F_RDLCK } },
	{ "dirt above a command", SYS_fcntl, { SPAWN_SOCKET, 1l << 32 | F_GETFD } },
	{ "flock", SYS_flock, { SPAWN_SOCKET, 1 } },
	{ "the shared offset", SYS_lseek, { 0, 0, SEEK_SET } },
	{ "read at the shared offset", SYS_read, { 0, 0, 0 } },
	{ "code", SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 } },
	{ "code by mprotect", SYS_mprotect, { 0, 4096, PROT_EXEC } },
	{ "memory that no limit counts", SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0 } },
	{ "a second stack", SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0 } },
	{ "merged pages", SYS_madvise, { 0, 0, MADV_MERGEABLE } },
	{ "a futex of all who map a file", SYS_futex, { 0, FUTEX_WAKE, 1 } },
	{ "another process's clock", SYS_clock_gettime, { (long)(int)(~1u << 3 | 2), 0 } },
	{ "another socket", SYS_sendmsg, { 0, 0, 0 } },
	{ "a thread", SYS_clone, { CLONE_VM, 0 } },
	{ "a process", SYS_clone3, { 0, 0 } },
	{ "another's memory", SYS_process_vm_readv, { 1 } },
	{ "another's descriptors", SYS_pidfd_open, { 1, 0 } },
	{ "prctl", SYS_prctl, { 0 } },
	{ "another filter", SYS_seccomp, { 0 } },
	{ "openat2", SYS_openat2, { AT_FDCWD } },
	{ "a handle", SYS_open_by_handle_at, { AT_FDCWD } },
	{ "io_uring", SYS_io_uring_setup, { 1 } },
	{ "a memory file", SYS_memfd_create, { 0 } },
#ifdef __x86_64__
	{ "a number of x32", 0x40000000 + SYS_close, { -1 } },
#endif
};

/* --- the worker's side ---------------------------------------------------------------------------------------------------------------- */

static int read_to(int fd, struct buffer *to)
{
	char text[64];
	ssize_t got = fd < 0 ? -1 : pread(fd, text, sizeof(text), 0);

	if (got < 0)
		return -errno;
	buffer_append(to, text, (size_t)got);
	return 0;
}

static int open_and_read(const char *path, int flags, struct buffer *to)
{
	CLEANUP(closep) int fd = open(path, flags);

	return read_to(fd, to);
}

static int hoard(void)
{
	for (size_t i = 0; i < 4096; i++) {
		char *bytes = malloc(1u << 20);

		if (!bytes)
			return -ENOMEM; /* its memory is not given back: the worker lives on with it */
		memset(bytes, 1, 1u << 20);
	}
	return 0;
}

static int do_forbidden(const struct call *call)
{
	const long *a = call->arguments;

	return syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? -errno : 0;
}

static int answer(void *arg, uint32_t kind, struct wire_fds *fds, const void *body, size_t size, struct diag *diag, struct buffer *to)
{
	volatile bool forever = true;

	if (kind >= FORBIDDEN)
		return do_forbidden(&forbidden[kind - FORBIDDEN]);
	switch (kind) {
	case ECHO:
		buffer_append(to, body, size);
		return 0;
	case COUNT:
		nr_counted++;
		buffer_append(to, &nr_counted, sizeof(nr_counted));
		return 0;
	case READ_FD:
		return read_to(fds->nr ? fds->fds[0] : -1, to);
	case OPEN:
		return open_and_read(body, O_RDONLY, to);
	case WRITE_OPEN:
		return open_and_read(body, O_RDWR, to);
	case CRASH:
		raise(SIGSEGV); /* the call itself is forbidden; what matters is that the worker ends */
		return 0;
	case SPIN:
		while (forever)
			;
		return 0;
	case HOARD:
		return hoard();
	case REFUSE:
		return diag_errno(diag, EBADMSG, "byte %d is wrong", 7);
	case SOCKET:
		return socket(AF_INET, SOCK_STREAM, 0);
	case PTRACE:
		return (int)ptrace(PTRACE_TRACEME, 0, 0, 0);
	case KILL:
		return kill(getppid(), 0);
	case UNLINK:
		return unlink(body);
	case BIG:
		return buffer_reserve(to, 64u << 20) ? 0 : -ENOMEM;
	}
	return -ENOSYS;
}

/* --- the owner's ---------------------------------------------------------------------------------------------------------------------- */

static int ask(uint32_t kind, const char *text, worker_open_fn open_file, struct diag *diag, struct buffer *to)
{
	return worker_ask(
	    worker,
	    &(struct worker_request){
		.kind = kind, .body = text, .payload_bytes = text ? strlen(text) + 1 : 0, .max_cpu_ns = 2000000000, .open = open_file },
	    diag, to);
}

/* Checks that it answers, regardless of what happened before. */
static void check_echo(void)
{
	CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(1 << 20);

	assert_int_equal(ask(ECHO, "hello", NULL, NULL, &to), 0);
	assert_string_equal(to.data, "hello");
}

static void check_failure(uint32_t kind, const char *body, int err, const char *text)
{
	CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(1 << 20);
	struct diag diag = { 0 };

	assert_int_equal(ask(kind, body, NULL, &diag, &to), err);
	if (text && !strstr(diag.text, text))
		fail_msg("'%s' is not in '%s'", text, diag.text);
	check_echo();
}

static int set_up(void **state)
{
	return worker_new("/proc/self/exe", 128u << 20, NULL, &worker);
}

static int tear_down(void **state)
{
	worker_free(worker);
	return 0;
}

static void test_answers(void **state)
{
	CLEANUP(freep) char *large = malloc(8u << 20);
	CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(16u << 20);

	check_echo();
	assert_non_null(large);
	for (size_t i = 0; i < 8u << 20; i++)
		large[i] = (char)(i * 7 % 251 + 1);
	large[(8u << 20) - 1] = '\0';
	assert_int_equal(ask(ECHO, large, NULL, NULL, &to), 0);
	assert_int_equal(to.size, 8u << 20);
	assert_memory_equal(to.data, large, 8u << 20);
	check_failure(REFUSE, NULL, -EBADMSG, "byte 7 is wrong");
}

static void test_descriptor(void **state)
{
	CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(1 << 20);
	CLEANUP(closep) int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);

	assert_int_equal(
	    worker_ask(worker, &(struct worker_request){ .kind = READ_FD, .fds = &fd, .nr_fds = 1, .max_cpu_ns = 1000000000 }, NULL, &to),
	    0);
	assert_non_null(strstr(to.data, "test_worker"));
}

static int give_only_comm(void *arg, const char *path)
{
	return strcmp(path, "/the/comm") ? -EACCES : open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
}

static void test_opens_by_its_owner_only(void **state)
{
	CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(1 << 20);

	assert_int_equal(ask(OPEN, "/the/comm", give_only_comm, NULL, &to), 0);
	assert_non_null(strstr(to.data, "test_worker"));
	assert_int_equal(ask(OPEN, "/etc/passwd", give_only_comm, NULL, &to), -EACCES);
	assert_int_equal(ask(WRITE_OPEN, "/the/comm", give_only_comm, NULL, &to), -EPERM);
	assert_int_equal(ask(OPEN, "comm", give_only_comm, NULL, &to), -EPERM);
	assert_int_equal(ask(OPEN, "/etc/passwd", NULL, NULL, &to), -EPERM);
	check_echo();
}

/* Returns a file of that user's. */
static int owned_by(uid_t uid)
{
	int fd = memfd_create("owned", MFD_CLOEXEC);

	assert_int_equal(fchown(fd, uid, (gid_t)-1), 0);
	return fd;
}

/* Returns how many such requests that worker has answered; 0 when it was to open a file. */
static uint32_t ask_about(uid_t uid, worker_open_fn open_file)
{
	CLEANUP(closep) int fd = owned_by(uid);
	CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(1 << 20);
	const char path[] = "/of/another";
	const struct worker_request request = { .kind = open_file ? OPEN : COUNT,
						.fds = &fd,
						.nr_fds = 1,
						.max_cpu_ns = 1000000000,
						.open = open_file,
						.body = path,
						.payload_bytes = sizeof(path) };
	uint32_t nr = 0;

	assert_int_equal(worker_ask(worker, &request, NULL, &to), 0);
	if (!open_file)
		memcpy(&nr, to.data, sizeof(nr));
	return nr;
}

static int give_another_user_s(void *arg, const char *path)
{
	return owned_by(54321);
}

/* A worker that still has its files answers more requests about that user's files and root's, and stays the same. Another user's are
 * refused. */
static void test_keeps_one_user_s_files(void **state)
{
	CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(1 << 20);
	const uid_t uids[] = { 0, 12345, 0, 12345 };
	struct worker_request request = { .kind = COUNT, .nr_fds = 1, .has_earlier = true, .max_cpu_ns = 1000000000 };

	if (geteuid() != 0) {
		print_message("SKIPPED: only root can give files away\n");
		skip();
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(uids); i++) {
		CLEANUP(closep) int fd = owned_by(uids[i]);
		uint32_t nr;

		request.fds = &fd;
		to.size = 0;
		assert_int_equal(worker_ask(worker, &request, NULL, &to), 0);
		memcpy(&nr, to.data, sizeof(nr));
		assert_int_equal(nr, i + 1);
	}
	request.fds = (int[]){ owned_by(54321) };
	assert_int_equal(worker_ask(worker, &request, NULL, &to), -EPERM);
	close(request.fds[0]);
	assert_int_equal(ask_about(0, NULL), 1); /* a request that does not refer to them gets a new worker */
}

/* A worker that has read one user's files gets no request about another's, nor about root's. */
static void test_reads_one_user_s_files(void **state)
{
	if (geteuid() != 0) {
		print_message("SKIPPED: only root can give files away\n");
		skip();
	}
	assert_int_equal(ask_about(0, NULL), 1);
	assert_int_equal(ask_about(0, NULL), 2);
	assert_int_equal(ask_about(12345, NULL), 3); /* it has not read another user's file */
	assert_int_equal(ask_about(12345, NULL), 4);
	assert_int_equal(ask_about(54321, NULL), 1);
	assert_int_equal(ask_about(0, NULL), 1);
	ask_about(0, give_another_user_s); /* files opened on its behalf count, too */
	assert_int_equal(ask_about(54321, NULL), 2);
	assert_int_equal(ask_about(0, NULL), 1);
	ask_about(0, give_another_user_s);
	assert_int_equal(ask_about(0, NULL), 1);
	ask_about(12345, give_another_user_s); /* files of two users: it gets no more requests */
	assert_int_equal(ask_about(12345, NULL), 1);
}

static void on_alarm(int signo)
{
}

static void set_timer(int every_us)
{
	const struct itimerval interval = { .it_interval.tv_usec = every_us, .it_value.tv_usec = every_us };

	assert_int_equal(setitimer(ITIMER_REAL, &interval, NULL), 0);
}

/* Signals of the program that uses the library. */
static void test_signals(void **state)
{
	const struct sigaction interrupt = { .sa_handler = on_alarm }; /* no SA_RESTART */

	assert_int_equal(sigaction(SIGALRM, &interrupt, NULL), 0);
	set_timer(200);
	for (int i = 0; i < 500; i++) {
		CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(1 << 20);

		assert_int_equal(ask(OPEN, "/the/comm", give_only_comm, NULL, &to), 0);
	}
	set_timer(0);
}

static void test_ends_alone(void **state)
{
	check_failure(CRASH, NULL, -ECHILD, NULL);
	check_failure(BIG, NULL, -EFBIG, NULL); /* the buffer for the answer takes 1 MiB */
	check_failure(SPIN, NULL, -ETIMEDOUT, "more than");
#ifndef __SANITIZE_ADDRESS__ /* a worker has no memory limit then */
	check_failure(HOARD, NULL, -ENOBUFS, NULL); /* the worker's lack of memory is not our own, which would end a session */
#endif
}

static void test_is_shut_in(void **state)
{
	const uint32_t kinds[] = { SOCKET, PTRACE, KILL, UNLINK };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		check_failure(kinds[i], "/nothing", -ECHILD, "exceeded its rights");
	for (uint32_t i = 0; i < ARRAY_SIZE(forbidden); i++) {
		print_message("%s\n", forbidden[i].name);
		check_failure(FORBIDDEN + i, NULL, -ECHILD, "exceeded its rights");
	}
}

/* A file offset is shared with whoever passed the descriptor on. A worker does not move it. */
static void test_leaves_the_offset(void **state)
{
	CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(1 << 20);
	CLEANUP(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(
	    worker_ask(worker, &(struct worker_request){ .kind = READ_FD, .fds = &fd, .nr_fds = 1, .max_cpu_ns = 1000000000 }, NULL, &to),
	    0);
	assert_int_equal(to.size, 64);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
}

static void test_no_program(void **state)
{
	struct worker *none;
	struct diag diag = { 0 };

	assert_int_equal(worker_new("/nothing/here", 1 << 20, &diag, &none), -ENOENT);
	assert_non_null(strstr(diag.text, "/nothing/here"));
}

static void test_not_a_worker(void **state)
{
	struct worker *other;
	struct diag diag = { 0 };
	CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(1 << 20);

	assert_int_equal(worker_new("/bin/true", 1 << 20, &diag, &other), 0);
	assert_int_equal(worker_ask(other, &(struct worker_request){ .kind = ECHO, .max_cpu_ns = 1000000000 }, &diag, &to), -ELOOP);
	assert_non_null(strstr(diag.text, "sonde_is_worker"));
	worker_free(other);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_descriptor, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_opens_by_its_owner_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reads_one_user_s_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_keeps_one_user_s_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_signals, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ends_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_is_shut_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_leaves_the_offset, set_up, tear_down),
		cmocka_unit_test(test_no_program),
		cmocka_unit_test(test_not_a_worker),
	};
	int code;

	return serve_as_worker(argc, argv, answer, NULL, &code) ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
