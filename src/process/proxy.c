// SPDX-License-Identifier: Apache-2.0
#include "process/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/priority.h"
#include "base/process_memory.h"
#include "base/small_file.h"
#include "base/spawn.h"
#include "base/wire.h"
#include "process/debug_path.h"
#include "process/object_table.h"
#include "process/proxy_message.h"
#include "process/stranger.h"

#define PROGRAM "/proc/self/exe"
#define LEAST_NS (2 * NS_PER_MS)
#define BUSY_NS NS_PER_S          /* so long one is waited for that runs, or would if it had a CPU */
#define START_NS (5 * NS_PER_S)   /* and one that has just been started, whose program may have to be read from a disk */
#define GIVEN_BACK 100            /* a hundredth of the time */
#define MAX_CULPRITS 64
#define MAX_OF_USER 4             /* then nothing of his is asked */

/* What was waited for in vain. */
struct culprit {
	uint32_t tgid, uid;
	uint64_t device; /* 0: the process's memory, or what it names */
};

struct proxy {
	struct helper helper;
	bool is_ready;                    /* this helper has said so */
	int nice;
	uint64_t left_ns, given_ns;       /* that may be waited in vain; and when that was last counted */
	struct culprit culprits[MAX_CULPRITS]; /* the last of them */
	struct proxy_counts counts;
	struct proxy_message message;     /* the last answer */
};

static int start(struct proxy *proxy, struct diag *diag)
{
	char *argv[] = { PROXY_NAME, NULL };
	int err = spawn_helper(&(struct spawn_options){ .program = PROGRAM, .argv = argv, .socket_type = SOCK_SEQPACKET }, diag, &proxy->helper);

	proxy->is_ready = false;
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
	proxy->left_ns = PROXY_TOTAL_MS * NS_PER_MS;
	proxy->given_ns = clock_ns();
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
	return proxy ? proxy->counts : (struct proxy_counts){ 0 };
}

/* --- who is not asked again ------------------------------------------------------------------------------------------------------------ */

static bool is_refused(const struct proxy *proxy, const struct proxy_request *request)
{
	uint32_t nr = proxy->counts.nr_timed_out < MAX_CULPRITS ? proxy->counts.nr_timed_out : MAX_CULPRITS, nr_of_user = 0, uid;
	bool is_same = false;

	if (!nr)
		return false;
	uid = request->tgid ? stranger_uid(request->tgid) : 0;
	for (uint32_t i = 0; i < nr; i++) {
		const struct culprit *culprit = &proxy->culprits[i];

		nr_of_user += uid && culprit->uid == uid;
		is_same |= culprit->device == request->device && (request->device || culprit->tgid == request->tgid);
	}
	return is_same || nr_of_user >= MAX_OF_USER;
}

static void note_culprit(struct proxy *proxy, const struct proxy_request *request)
{
	struct culprit culprit = { .tgid = request->tgid, .uid = request->tgid ? stranger_uid(request->tgid) : 0, .device = request->device };

	if (!proxy->counts.nr_timed_out) {
		proxy->counts.tgid = culprit.tgid;
		proxy->counts.uid = culprit.uid;
	}
	proxy->culprits[proxy->counts.nr_timed_out++ % MAX_CULPRITS] = culprit;
}

/* --- asking ---------------------------------------------------------------------------------------------------------------------------- */

/* How long the next answer may take. */
static uint64_t patience_ns(struct proxy *proxy)
{
	uint64_t now = clock_ns(), max_ns = PROXY_DEADLINE_MS * NS_PER_MS;

	proxy->left_ns += (now - proxy->given_ns) / GIVEN_BACK;
	proxy->given_ns = now;
	if (proxy->left_ns > PROXY_TOTAL_MS * NS_PER_MS)
		proxy->left_ns = PROXY_TOTAL_MS * NS_PER_MS;
	if (max_ns > proxy->left_ns)
		max_ns = proxy->left_ns;
	return max_ns > LEAST_NS ? max_ns : LEAST_NS;
}

/* Does it run, or wait for a CPU? Then it is not a stranger who keeps it. */
static bool is_running(const struct proxy *proxy)
{
	char path[40], text[256];
	const char *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", proxy->helper.pid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)))
		return false;
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] == 'R';
}

/* 0: there is an answer. */
static int wait_for_answer(struct proxy *proxy, uint64_t max_ns)
{
	struct pollfd wait = { .fd = proxy->helper.socket, .events = POLLIN };
	uint64_t from_ns = clock_ns(), passed_ns = 0;

	while (passed_ns < max_ns || (passed_ns < BUSY_NS && is_running(proxy))) {
		uint64_t left_ns = passed_ns < max_ns ? max_ns - passed_ns : LEAST_NS;

		if (poll(&wait, 1, (int)(left_ns / NS_PER_MS) + 1) > 0)
			return 0;
		passed_ns = clock_ns() - from_ns;
	}
	proxy->left_ns -= passed_ns < proxy->left_ns ? passed_ns : proxy->left_ns;
	return -ETIMEDOUT;
}

static int receive(struct proxy *proxy, uint64_t max_ns, struct wire_fds *ret_fds)
{
	int err = wait_for_answer(proxy, max_ns);
	ssize_t done = err ? err : wire_receive(proxy->helper.socket, &proxy->message, sizeof(proxy->message), ret_fds, 0);

	if (done < 0)
		return (int)done;
	return (size_t)done < sizeof(proxy->message.answer) || proxy->message.answer.data_bytes != (size_t)done - sizeof(proxy->message.answer) ? -EBADMSG : 0;
}

/* Nobody can keep it from that. */
static int get_ready(struct proxy *proxy)
{
	int err = proxy->helper.pid ? 0 : start(proxy, NULL);

	if (!err && !proxy->is_ready)
		err = receive(proxy, START_NS, NULL);
	proxy->is_ready = !err;
	return err == -ETIMEDOUT ? -ECHILD : err;
}

static int exchange(struct proxy *proxy, const struct proxy_request *request, int fd, struct wire_fds *ret_fds)
{
	const struct wire_fds given = { .fds = { fd }, .nr = fd >= 0 };
	int err = get_ready(proxy);
	ssize_t done = err ? err : wire_send(proxy->helper.socket, request, offsetof(struct proxy_request, path) + strlen(request->path) + 1, &given, 0);

	return done < 0 ? (int)done : receive(proxy, patience_ns(proxy), ret_fds);
}

/* The answer is in proxy->message. *ret_fd: -1, or the caller's. */
static int ask(struct proxy *proxy, const struct proxy_request *request, int fd, int *ret_fd)
{
	CLEANUP(wire_fds_close) struct wire_fds given = { .nr = 0 };
	int err;

	*ret_fd = -1;
	if (is_refused(proxy, request)) {
		proxy->counts.nr_refused++;
		return -EBUSY;
	}
	err = exchange(proxy, request, fd, &given);
	if (err) {
		spawn_leave(&proxy->helper);
		if (err == -ETIMEDOUT)
			note_culprit(proxy, request);
		return err;
	}
	if (given.nr)
		*ret_fd = given.fds[--given.nr];
	return proxy->message.answer.err;
}

/* A request whose answer is a descriptor. */
static int ask_for_fd(struct proxy *proxy, const struct proxy_request *request, int fd, enum file_system_kind *ret_kind)
{
	struct proxy_message here;
	int given = -1, err;

	if (proxy) {
		err = ask(proxy, request, fd, &given);
		*ret_kind = (enum file_system_kind)proxy->message.answer.file_system;
	} else {
		proxy_perform(request, fd, &here, &given);
		err = here.answer.err;
		*ret_kind = (enum file_system_kind)here.answer.file_system;
	}
	if (err)
		closep(&given);
	return err ? err : given < 0 ? -EBADMSG : given;
}

/* False: there is no room for it. */
static bool set_path(struct proxy_request *request, const char *path)
{
	size_t size = strlen(path) + 1;

	if (size > sizeof(request->path))
		return false;
	memcpy(request->path, path, size);
	return true;
}

/* --- what is asked --------------------------------------------------------------------------------------------------------------------- */

/* One message of it. The number of bytes, or a negative errno. */
static ssize_t read_piece(struct proxy *proxy, enum proxy_kind kind, uint32_t tgid, uint64_t from, void *to, size_t size)
{
	const struct proxy_request request = { .kind = kind, .tgid = tgid, .from = from, .to = from + size };
	int fd, err = ask(proxy, &request, -1, &fd);

	closep(&fd);
	if (err)
		return err;
	if (proxy->message.answer.data_bytes > size)
		return -EBADMSG;
	memcpy(to, proxy->message.data, proxy->message.answer.data_bytes);
	return (ssize_t)proxy->message.answer.data_bytes;
}

int proxy_read_memory(struct proxy *proxy, uint32_t tgid, uint64_t from, void *to, size_t size)
{
	if (!proxy)
		return process_memory_read(tgid, from, to, size);
	for (size_t at = 0; at < size;) {
		size_t piece = size - at < PROXY_DATA_BYTES ? size - at : PROXY_DATA_BYTES;
		ssize_t got = read_piece(proxy, PROXY_MEMORY, tgid, from + at, (char *)to + at, piece);

		if (got != (ssize_t)piece)
			return got < 0 ? (int)got : -EFAULT;
		at += piece;
	}
	return 0;
}

size_t proxy_read_memory_some(struct proxy *proxy, uint32_t tgid, uint64_t from, void *to, size_t size)
{
	size_t done = 0;

	if (!proxy)
		return process_memory_read_some(tgid, from, to, size);
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
	const struct proxy_request request = { .kind = PROXY_MAPS, .tgid = tgid, .tid = tid };
	enum file_system_kind kind;
	CLEANUP(closep) int fd = ask_for_fd(proxy, &request, -1, &kind);

	if (fd < 0)
		return fd;
	if (lseek(fd, 0, SEEK_SET) < 0 || !(*ret_file = fdopen(fd, "r")))
		return -errno;
	fd = -1; /* it is the stream's */
	return 0;
}

int proxy_locate(struct proxy *proxy, const struct mapped_region *region, struct found_file *ret_file)
{
	struct proxy_request request = { .kind = PROXY_LOCATE, .tgid = region->tgid, .from = region->start_pc, .to = region->end_pc, .inode = region->inode, .device = region->device };

	if (!set_path(&request, region->path))
		return -ENAMETOOLONG;
	ret_file->fd = ask_for_fd(proxy, &request, -1, &ret_file->kind);
	return ret_file->fd < 0 ? ret_file->fd : 0;
}

int proxy_find(struct proxy *proxy, const char *path, struct found_file *ret_file)
{
	struct proxy_request request = { .kind = PROXY_FIND };

	if (!set_path(&request, path))
		return -ENAMETOOLONG;
	ret_file->fd = ask_for_fd(proxy, &request, -1, &ret_file->kind);
	return ret_file->fd < 0 ? ret_file->fd : 0;
}

int proxy_open(struct proxy *proxy, uint32_t tgid, const struct found_file *file, uint64_t device)
{
	const struct proxy_request request = { .kind = PROXY_OPEN, .tgid = tgid, .file_system = file->kind, .device = device };
	enum file_system_kind kind;

	return ask_for_fd(file->kind == FILE_SYSTEM_LOCAL ? NULL : proxy, &request, file->fd, &kind);
}

int proxy_open_debug(struct proxy *proxy, uint32_t tgid, const char *of, const char *path, uint64_t max_bytes)
{
	struct proxy_request request = { .kind = PROXY_OPEN_DEBUG, .tgid = tgid, .max_bytes = max_bytes };
	enum file_system_kind kind;

	if (path[0] == '/' && !debug_path_is_one(path, of))
		return -EPERM;
	return set_path(&request, path) ? ask_for_fd(proxy, &request, -1, &kind) : -EINVAL;
}

int proxy_open_own(struct proxy *proxy, uint32_t tgid, bool is_ours, const char *path, uint64_t max_bytes)
{
	struct proxy_request request = { .kind = PROXY_OPEN_OWN, .tgid = tgid, .is_ours = is_ours, .max_bytes = max_bytes };
	enum file_system_kind kind;

	return set_path(&request, path) ? ask_for_fd(proxy, &request, -1, &kind) : -EINVAL;
}
