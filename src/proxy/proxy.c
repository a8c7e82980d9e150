// SPDX-License-Identifier: Apache-2.0
#include "proxy/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/priority.h"
#include "base/process_memory.h"
#include "base/process_stat.h"
#include "base/small_file.h"
#include "base/spawn.h"
#include "codec/wire.h"
#include "proxy/credentials.h"
#include "proxy/debug_path.h"
#include "proxy/proxy_budget.h"
#include "proxy/proxy_message.h"
#include "proxy/trusted.h"

#define PROGRAM "/proc/self/exe"
#define STEP_NS (2 * NS_PER_MS)
#define BUSY_NS NS_PER_S          /* longest wait for a helper that is runnable but gets no CPU */
#define START_NS (5 * NS_PER_S)   /* and for one just started, which may have to be read from a disk */
#define MAPS_BYTES_MAX ((uint64_t)64 << 20)

struct proxy {
	struct helper helper;
	bool is_ready;                    /* this helper has reported that it is ready */
	uint64_t delay_ns;                /* how long it has waited for a CPU in all, at the last reading */
	int nice;
	struct proxy_budget budget;
	struct trusted trusted;
	struct proxy_message message;     /* the last answer */
};

static int start(struct proxy *proxy, struct diag *diag)
{
	char *argv[] = { PROXY_NAME, NULL };
	int err =
	    spawn_helper(&(struct spawn_options){ .program = PROGRAM, .argv = argv, .socket_type = SOCK_SEQPACKET }, diag, &proxy->helper);

	proxy->is_ready = false;
	proxy->delay_ns = 0;
	if (!err && proxy->nice)
		priority_set(proxy->helper.pid, proxy->nice);
	return err;
}

int proxy_new(struct diag *diag, struct proxy **ret_proxy)
{
	CLEANUP(proxy_freep) struct proxy *proxy = calloc(1, sizeof(*proxy));
	int err;

	if (!proxy)
		return -ENOMEM;
	proxy->helper = (struct helper)HELPER_NONE;
	trusted_init(&proxy->trusted);
	proxy_budget_init(&proxy->budget, &proxy->trusted);
	err = start(proxy, diag);
	if (!err)
		*ret_proxy = MOVE(proxy);
	return err;
}

void proxy_free(struct proxy *proxy)
{
	if (!proxy)
		return;
	spawn_leave(&proxy->helper);
	proxy_budget_done(&proxy->budget);
	trusted_done(&proxy->trusted);
	free(proxy);
}

void proxy_set_nice(struct proxy *proxy, int nice)
{
	if (!proxy)
		return;
	proxy->nice = nice;
	if (proxy->helper.pid)
		priority_set(proxy->helper.pid, nice);
}

struct proxy_counts proxy_counts(const struct proxy *proxy)
{
	return proxy ? proxy->budget.counts : (struct proxy_counts){ 0 };
}

/* --- asking --------------------------------------------------------------------------------------------------------------------------- */

uint64_t proxy_cpu_ns(const struct proxy *proxy)
{
	clockid_t clock;

	return !proxy || !proxy->helper.pid || clock_getcpuclockid(proxy->helper.pid, &clock) ? 0 : clock_of_ns(clock);
}

/* Does the helper want a CPU? Then no other user blocks it, unless it had a CPU all the time (copying). */
static bool is_runnable(const struct proxy *proxy)
{
	struct process_stat stat;

	return !process_stat_read((uint32_t)proxy->helper.pid, &stat) && process_stat_char(&stat, PROCESS_STAT_STATE) == 'R';
}

/* Returns 0 when there is an answer. */
static int wait_for_answer(struct proxy *proxy, uint64_t max_ns)
{
	struct pollfd wait = { .fd = proxy->helper.socket, .events = POLLIN };
	uint64_t from_ns = clock_ns(), from_cpu_ns = proxy_cpu_ns(proxy), passed_ns = 0;

	while (passed_ns < max_ns || (passed_ns < BUSY_NS && proxy_cpu_ns(proxy) - from_cpu_ns < max_ns && is_runnable(proxy))) {
		uint64_t left_ns = passed_ns < max_ns ? max_ns - passed_ns : STEP_NS;

		if (poll(&wait, 1, (int)(left_ns / NS_PER_MS) + 1) > 0)
			return 0;
		passed_ns = clock_ns() - from_ns;
	}
	return -ETIMEDOUT;
}

static int receive(struct proxy *proxy, uint64_t max_ns, struct wire_fds *ret_fds)
{
	int err = wait_for_answer(proxy, max_ns);
	ssize_t done = err ? err : wire_receive(proxy->helper.socket, &proxy->message, sizeof(proxy->message), ret_fds, 0);

	if (done < 0)
		return (int)done;
	return (size_t)done < sizeof(proxy->message.answer) ||
		       proxy->message.answer.data_bytes != (size_t)done - sizeof(proxy->message.answer)
		   ? -EPROTO
		   : 0;
}

/* Starts the helper if there is none, and waits until it is ready. No other user can delay that. */
static int get_ready(struct proxy *proxy)
{
	int err = proxy->helper.pid ? 0 : start(proxy, NULL);

	if (!err && !proxy->is_ready)
		err = receive(proxy, START_NS, NULL);
	proxy->is_ready = !err;
	if (err)
		spawn_leave(&proxy->helper);
	return err ? -ECHILD : 0;
}

/* Time since from_ns, without the time that the helper waited for a CPU: /proc/PID/schedstat (Linux
 * Documentation/scheduler/sched-stats.rst). */
static uint64_t waited_ns(struct proxy *proxy, uint64_t from_ns)
{
	uint64_t waited = clock_ns() - from_ns, run_ns, delay_ns, before_ns = proxy->delay_ns;
	char path[40], text[80];

	if (waited < NS_PER_MS) /* not worth reading the file */
		return waited;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", proxy->helper.pid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)) ||
	    sscanf(text, "%" SCNu64 " %" SCNu64, &run_ns, &delay_ns) != 2) /* NOLINT: numbers of the kernel */
		return waited;
	proxy->delay_ns = delay_ns;
	return delay_ns > before_ns ? (delay_ns - before_ns < waited ? waited - (delay_ns - before_ns) : 0) : waited;
}

static int exchange(struct proxy *proxy, const struct proxy_request *request, struct proxy_fds fds, struct wire_fds *ret_fds)
{
	struct wire_fds given = { .nr = 0 };
	ssize_t done;

	if (fds.file >= 0)
		given.fds[given.nr++] = fds.file;
	if (fds.copy >= 0)
		given.fds[given.nr++] = fds.copy;
	done = wire_send(proxy->helper.socket, request, offsetof(struct proxy_request, path) + strlen(request->path) + 1, &given, 0);
	return done < 0 ? (int)done : receive(proxy, proxy_budget_wait_ns(&proxy->budget, request), ret_fds);
}

/* The answer is in proxy->message. *ret_fd: -1, or owned by the caller. */
static int ask(struct proxy *proxy, const struct proxy_request *request, struct proxy_fds fds, int *ret_fd)
{
	CLEANUP(wire_fds_close) struct wire_fds given = { .nr = 0 };
	uint64_t from_ns;
	int err;

	*ret_fd = -1;
	if (!proxy_budget_allows(&proxy->budget, request))
		return -EBUSY;
	err = get_ready(proxy);
	if (err)
		return err;
	from_ns = clock_ns();
	err = exchange(proxy, request, fds, &given);
	/* a request that ended the helper counts, too: it would end the next one */
	proxy_budget_charge(&proxy->budget, request, waited_ns(proxy, from_ns), err ? NULL : &proxy->message.answer);
	if (err) {
		spawn_leave(&proxy->helper);
		return -ETIMEDOUT;
	}
	if (given.nr)
		*ret_fd = given.fds[--given.nr];
	return proxy->message.answer.err;
}

/* Without a proxy, performs the request here. ret_kind may be NULL. */
static int ask_or_do(struct proxy *proxy, const struct proxy_request *request, struct proxy_fds fds, enum file_system_kind *ret_kind,
		     int *ret_fd)
{
	struct proxy_message here;
	const struct proxy_message *message = proxy ? &proxy->message : &here;
	int err;

	if (proxy) {
		err = ask(proxy, request, fds, ret_fd);
	} else {
		proxy_perform(request, fds, &here, ret_fd);
		err = here.answer.err;
	}
	if (!err && ret_kind)
		*ret_kind = (enum file_system_kind)message->answer.file_system;
	return err;
}

/* For a request whose answer is a descriptor. */
static int ask_for_fd(struct proxy *proxy, const struct proxy_request *request, int file_fd, enum file_system_kind *ret_kind)
{
	int fd, err = ask_or_do(proxy, request, (struct proxy_fds){ file_fd, -1 }, ret_kind, &fd);

	if (err)
		closep(&fd);
	return err ? err : fd < 0 ? -EPROTO : fd;
}

/* For a request whose answer is a file in memory. We create that file, so that we can empty it after a timeout, even if the helper still
 * has it. */
static int ask_for_copy(struct proxy *proxy, const struct proxy_request *request, int file_fd, enum file_system_kind *ret_kind)
{
	CLEANUP(closep) int copy_fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int fd = -1, err = copy_fd < 0 ? -errno : ask_or_do(proxy, request, (struct proxy_fds){ file_fd, copy_fd }, ret_kind, &fd);

	closep(&fd);
	if (copy_fd < 0)
		return err;
	if (err && ftruncate(copy_fd, 0))
		err = -errno;
	if (fcntl(copy_fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		err = -errno;
	return err ? err : MOVE_FD(copy_fd);
}

/* Makes the user that the copy is charged to its owner. */
static int ask_for_owned_copy(struct proxy *proxy, struct proxy_request *request, int file_fd, enum file_system_kind *ret_kind)
{
	uint32_t uid = credentials_file_uid(request->tgid);
	CLEANUP(closep) int fd = -EFBIG;
	struct stat st;

	request->max_copy_bytes = proxy ? proxy_budget_copies_left(&proxy->budget, uid) : PROXY_COPIES_MAX;
	if (request->max_copy_bytes)
		fd = ask_for_copy(proxy, request, file_fd, ret_kind);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || fchown(fd, uid, (gid_t)-1))
		return -errno;
	if (proxy)
		proxy_budget_copied(&proxy->budget, uid, (uint64_t)st.st_size);
	return MOVE_FD(fd);
}

/* Requests an open; a file on a foreign file system is copied. */
static int ask_to_open(struct proxy *proxy, struct proxy_request *request, int file_fd, enum file_system_kind *ret_kind)
{
	int fd = ask_for_fd(proxy, request, file_fd, ret_kind);

	return fd == -EXDEV ? ask_for_owned_copy(proxy, request, file_fd, ret_kind) : fd;
}

/* False: the path is too long. */
static bool set_path(struct proxy_request *request, const char *path)
{
	size_t size = strlen(path) + 1;

	if (size > sizeof(request->path))
		return false;
	memcpy(request->path, path, size);
	return true;
}

/* --- requests ------------------------------------------------------------------------------------------------------------------------- */

/* Reads what fits one message. Returns the number of bytes or a negative errno. */
static ssize_t read_piece(struct proxy *proxy, enum proxy_kind kind, uint32_t tgid, uint64_t from, void *to, size_t size)
{
	const struct proxy_request request = { .kind = kind, .tgid = tgid, .from = from, .to = from + size };
	int fd, err = ask(proxy, &request, (struct proxy_fds){ -1, -1 }, &fd);

	closep(&fd);
	if (err)
		return err;
	if (proxy->message.answer.data_bytes > size)
		return -EPROTO;
	memcpy(to, proxy->message.data, proxy->message.answer.data_bytes);
	return (ssize_t)proxy->message.answer.data_bytes;
}

/* Many requests are about processes of root or our user, and one takes the proxy some 20 us. Without a proxy, all processes are trusted. */
bool proxy_trusts(struct proxy *proxy, uint32_t tgid)
{
	return !proxy || trusted_is(&proxy->trusted, tgid);
}

/* Opens the memory of a trusted process. The descriptor stays with that memory, even if the process executes another program. So the
 * process must be trusted before and after the open. -EPERM: it is not. */
static int open_trusted_memory(struct proxy *proxy, uint32_t tgid)
{
	CLEANUP(closep) int fd = proxy_trusts(proxy, tgid) ? process_memory_open(tgid) : -EPERM;

	if (fd < 0)
		return fd;
	return proxy_trusts(proxy, tgid) ? MOVE_FD(fd) : -EPERM;
}

/* Opens it at the first read. -EPERM: the proxy must read it. */
static int open_memory(struct proxy_memory *memory)
{
	if (memory->fd >= 0)
		return proxy_trusts(memory->proxy, memory->tgid) ? memory->fd : -EPERM;
	memory->fd = open_trusted_memory(memory->proxy, memory->tgid);
	return memory->fd;
}

int proxy_memory_read(struct proxy_memory *memory, uint64_t from, void *to, size_t size)
{
	int fd = open_memory(memory);

	if (fd != -EPERM)
		return fd < 0 ? fd : process_memory_read(fd, from, to, size);
	for (size_t at = 0; at < size;) {
		size_t piece = size - at < PROXY_DATA_BYTES ? size - at : PROXY_DATA_BYTES;
		ssize_t got = read_piece(memory->proxy, PROXY_MEMORY, memory->tgid, from + at, (char *)to + at, piece);

		if (got != (ssize_t)piece)
			return got < 0 ? (int)got : -EFAULT;
		at += piece;
	}
	return 0;
}

void proxy_memory_done(struct proxy_memory *memory)
{
	closep(&memory->fd);
}

int proxy_read_memory(struct proxy *proxy, uint32_t tgid, uint64_t from, void *to, size_t size)
{
	CLEANUP(proxy_memory_done) struct proxy_memory memory = PROXY_MEMORY_OF(proxy, tgid);

	return proxy_memory_read(&memory, from, to, size);
}

size_t proxy_read_memory_some(struct proxy *proxy, uint32_t tgid, uint64_t from, void *to, size_t size)
{
	CLEANUP(closep) int fd = open_trusted_memory(proxy, tgid);
	size_t done = 0;

	if (fd != -EPERM)
		return fd < 0 ? 0 : process_memory_read_some(fd, from, to, size);
	while (done < size) {
		size_t piece = size - done < PROXY_DATA_BYTES ? size - done : PROXY_DATA_BYTES;
		ssize_t got = read_piece(proxy, PROXY_MEMORY_SOME, tgid, from + done, (char *)to + done, piece);

		done += got > 0 ? (size_t)got : 0;
		if (got != (ssize_t)piece)
			break;
	}
	return done;
}

int proxy_maps(struct proxy *proxy, uint32_t tgid, uint32_t tid, FILE **ret_file)
{
	const struct proxy_request request = { .kind = PROXY_MAPS, .tgid = tgid, .tid = tid, .max_copy_bytes = MAPS_BYTES_MAX };
	CLEANUP(closep) int maps_fd = proxy_trusts(proxy, tgid) ? proxy_open_maps(tgid, tid) : -1;
	bool is_here = !proxy || (maps_fd >= 0 && proxy_trusts(proxy, tgid)); /* checked as for memory */
	CLEANUP(closep) int fd = ask_for_copy(is_here ? NULL : proxy, &request, is_here ? maps_fd : -1, NULL);

	if (fd < 0)
		return fd;
	if (!(*ret_file = fdopen(fd, "r")))
		return -errno;
	fd = -1; /* the stream owns it */
	return 0;
}

int proxy_identity(struct proxy *proxy, uint32_t tgid, const struct environment_names *names, struct process_identity *ret_identity,
		   struct environment_values *ret_values)
{
	struct proxy_request request = { .kind = PROXY_IDENTITY, .tgid = tgid };
	const struct proxy_identity *answer;
	size_t size = 0;
	int fd, err;

	if (!proxy)
		return process_identity_read(tgid, names, ret_identity, ret_values);
	for (uint32_t i = 0; i < names->nr; i++)
		size += (size_t)snprintf(request.path + size, sizeof(request.path) - size, "%s%c", names->names[i], PROXY_NAME_END);
	err = ask(proxy, &request, (struct proxy_fds){ -1, -1 }, &fd);
	closep(&fd);
	if (err)
		return err;
	if (proxy->message.answer.data_bytes != sizeof(*answer))
		return -EPROTO;
	answer = (const struct proxy_identity *)proxy->message.data;
	*ret_identity = answer->identity;
	*ret_values = answer->values;
	return 0;
}

int proxy_locate(struct proxy *proxy, const struct mapped_region *region)
{
	struct proxy_request request = {
		.kind = PROXY_LOCATE, .tgid = region->tgid, .from = region->start_pc, .to = region->end_pc, .inode = region->inode
	};

	return set_path(&request, region->path) ? ask_for_fd(proxy, &request, -1, NULL) : -ENAMETOOLONG;
}

int proxy_find(struct proxy *proxy, const char *path)
{
	struct proxy_request request = { .kind = PROXY_FIND };

	return set_path(&request, path) ? ask_for_fd(proxy, &request, -1, NULL) : -ENAMETOOLONG;
}

int proxy_open(struct proxy *proxy, uint32_t tgid, int path_fd, uint64_t device, enum file_system_kind *ret_kind)
{
	struct proxy_request request = { .kind = PROXY_OPEN, .tgid = tgid, .device = device };

	return ask_to_open(proxy, &request, path_fd, ret_kind);
}

int proxy_open_debug(struct proxy *proxy, uint32_t tgid, const struct debugged *of, const char *path, uint64_t max_bytes)
{
	struct proxy_request request = {
		.kind = PROXY_OPEN_DEBUG, .tgid = tgid, .max_bytes = max_bytes, .device = of->device, .owner = of->owner
	};

	if (path[0] == '/' && !debug_path_is_one(path, of->path))
		return -EPERM;
	return set_path(&request, path) ? ask_to_open(proxy, &request, -1, NULL) : -EINVAL;
}

int proxy_open_own(struct proxy *proxy, uint32_t tgid, bool is_ours, const char *path, uint64_t max_bytes)
{
	struct proxy_request request = { .kind = PROXY_OPEN_OWN, .tgid = tgid, .is_ours = is_ours, .max_bytes = max_bytes };

	return set_path(&request, path) ? ask_to_open(proxy, &request, -1, NULL) : -EINVAL;
}

int proxy_connect_own(struct proxy *proxy, uint32_t tgid, const char *path)
{
	struct proxy_request request = { .kind = PROXY_CONNECT_OWN, .tgid = tgid };

	return set_path(&request, path) ? ask_for_fd(proxy, &request, -1, NULL) : -EINVAL;
}
