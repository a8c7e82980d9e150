// SPDX-License-Identifier: Apache-2.0
/* The helper's side of the proxy. A request may block for ever; then the helper is killed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process_memory.h"
#include "base/spawn.h"
#include "codec/wire.h"
#include "elf/elf_file.h"
#include "proxy/mapped_file.h"
#include "proxy/opener.h"
#include "proxy/proxy.h"
#include "proxy/proxy_message.h"

#define PIECE_BYTES ((size_t)256 << 10)

/* --- copies --------------------------------------------------------------------------------------------------------------------------- */

/* Copies the bytes from `at` to `end`, or to the file's end. */
static int copy_bytes(int from_fd, int to_fd, uint64_t at, uint64_t end)
{
	CLEANUP(freep) void *piece = malloc(PIECE_BYTES);
	ssize_t got = 1;

	while (piece && at < end && got > 0) {
		got = pread(from_fd, piece, end - at < PIECE_BYTES ? end - at : PIECE_BYTES, (off_t)at);
		if (got > 0 && pwrite(to_fd, piece, (size_t)got, (off_t)at) != got)
			return -EIO;
		at += got > 0 ? (uint64_t)got : 0;
	}
	return !piece ? -ENOMEM : got < 0 ? -errno : 0;
}

/* Copies without the holes. */
static int copy_data(int from_fd, int to_fd, uint64_t size)
{
	uint64_t end = 0;
	int err = 0;

	while (!err && end < size) {
		off_t start = lseek(from_fd, (off_t)end, SEEK_DATA), hole;

		if (start < 0)
			return errno == ENXIO ? 0 : copy_bytes(from_fd, to_fd, end, size);
		hole = lseek(from_fd, start, SEEK_HOLE);
		end = hole > start && (uint64_t)hole < size ? (uint64_t)hole : size;
		err = copy_bytes(from_fd, to_fd, (uint64_t)start, end);
	}
	return err;
}

/* Copies the file. 0; -EFBIG: larger than max_bytes; -EXDEV: there is no file to copy to. */
static int copy_file(int from_fd, int to_fd, uint64_t max_bytes)
{
	struct stat st;

	if (to_fd < 0)
		return -EXDEV;
	if (fstat(from_fd, &st))
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size > max_bytes)
		return -EFBIG;
	return ftruncate(to_fd, st.st_size) ? -errno : copy_data(from_fd, to_fd, (uint64_t)st.st_size);
}

/* --- requests ------------------------------------------------------------------------------------------------------------------------- */

static int read_memory(const struct proxy_request *request, struct proxy_message *message)
{
	CLEANUP(closep) int fd = process_memory_open(request->tgid);
	size_t size = (size_t)(request->to - request->from);
	int err = fd < 0 ? fd : size > PROXY_DATA_BYTES ? -EINVAL : 0;

	if (!err && request->kind == PROXY_MEMORY)
		err = process_memory_read(fd, request->from, message->data, size);
	else if (!err)
		size = process_memory_read_some(fd, request->from, message->data, size);
	message->answer.data_bytes = err ? 0 : size;
	return err;
}

int proxy_open_maps(uint32_t tgid, uint32_t tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/maps", tgid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Reads it in one go, as the process may change its mappings meanwhile. */
static int read_maps(const struct proxy_request *request, struct proxy_fds fds)
{
	CLEANUP(closep) int own_fd = fds.file < 0 ? proxy_open_maps(request->tgid, request->tid) : -1;
	int from_fd = fds.file < 0 ? own_fd : fds.file, err;
	struct stat st;

	if (from_fd < 0)
		return from_fd;
	err = copy_bytes(from_fd, fds.copy, 0, request->max_copy_bytes);
	if (!err && fstat(fds.copy, &st))
		err = -errno;
	return err ? err : (uint64_t)st.st_size >= request->max_copy_bytes ? -EFBIG : 0;
}

static int read_identity(struct proxy_request request, struct proxy_message *message)
{
	struct proxy_identity *answer = (struct proxy_identity *)message->data;
	struct environment_names names = { 0 };
	int err = 0;

	for (char *name = request.path, *end; !err && (end = strchr(name, PROXY_NAME_END)); name = end + 1) {
		*end = '\0';
		err = environment_names_add(&names, name);
	}
	if (!err)
		err = process_identity_read(request.tgid, &names, &answer->identity, &answer->values);
	message->answer.data_bytes = err ? 0 : sizeof(*answer);
	return err;
}

/* Takes over the opened file and answers with it, or with a copy. */
static int give(const struct proxy_request *request, int fd, int copy_fd, struct proxy_answer *answer, int *ret_fd)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(closep) int own = fd;

	if (fd < 0)
		return fd;
	answer->file_system = file_system_kind(request->tgid, fd);
	/* To a second request, which wants a copy, the answer is always a copy: by now another file may have the path. */
	if (copy_fd >= 0 || answer->file_system == FILE_SYSTEM_FOREIGN)
		return copy_file(fd, copy_fd, request->max_copy_bytes);
	*ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (*ret_fd < 0)
		return -errno;
	if (answer->file_system == FILE_SYSTEM_NETWORK && !elf_file_open_fd(fd, NULL, &elf)) /* reads its headers into the page cache */
		own = -1;
	return 0;
}

/* `path_fd` is an O_PATH descriptor. */
static int open_found(int path_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int perform(const struct proxy_request *request, struct proxy_fds fds, struct proxy_message *message, int *ret_fd)
{
	struct proxy_answer *answer = &message->answer;

	switch ((enum proxy_kind)request->kind) {
	case PROXY_MEMORY:
	case PROXY_MEMORY_SOME:
		return read_memory(request, message);
	case PROXY_MAPS:
		return read_maps(request, fds);
	case PROXY_IDENTITY:
		return read_identity(*request, message);
	case PROXY_LOCATE:
		*ret_fd = mapped_file_locate(request->tgid, request->from, request->to, request->inode, request->path);
		return *ret_fd < 0 ? *ret_fd : 0;
	case PROXY_FIND:
		*ret_fd = mapped_file_find(request->path);
		return *ret_fd < 0 ? *ret_fd : 0;
	case PROXY_OPEN:
		return give(request, open_found(fds.file), fds.copy, answer, ret_fd);
	case PROXY_OPEN_DEBUG:
		return give(request,
			    opener_open_debug(request->tgid, &(struct debugged){ .device = request->device, .owner = request->owner },
					      request->path, request->max_bytes),
			    fds.copy, answer, ret_fd);
	case PROXY_OPEN_OWN:
		return give(request, opener_open_own(request->tgid, request->is_ours, request->path, request->max_bytes), fds.copy, answer,
			    ret_fd);
	case PROXY_CONNECT_OWN:
		*ret_fd = opener_connect_own(request->tgid, request->path);
		return *ret_fd < 0 ? *ret_fd : 0;
	}
	return -EINVAL;
}

void proxy_perform(const struct proxy_request *request, struct proxy_fds fds, struct proxy_message *ret_message, int *ret_fd)
{
	ret_message->answer = (struct proxy_answer){ 0 };
	*ret_fd = -1;
	ret_message->answer.err = perform(request, fds, ret_message, ret_fd);
	if (ret_message->answer.err)
		*ret_fd = -1;
}

/* Sends an answer to no request: the helper is ready. */
static int send_ready(struct proxy_message *message)
{
	ssize_t sent;

	message->answer = (struct proxy_answer){ 0 };
	sent = wire_send(SPAWN_SOCKET, message, sizeof(message->answer), NULL, 0);
	return sent < 0 ? (int)sent : 0;
}

/* Returns 0, or the error that ends the helper. */
static int serve_one(struct proxy_message *message)
{
	CLEANUP(wire_fds_close) struct wire_fds asked = { .nr = 0 }, given = { .nr = 0 };
	struct proxy_fds fds = { -1, -1 };
	struct proxy_request request = { 0 };
	ssize_t got = wire_receive(SPAWN_SOCKET, &request, sizeof(request) - 1, &asked, 0), sent;

	if (got < 0)
		return (int)got;
	if (request.max_copy_bytes && asked.nr)
		fds.copy = asked.fds[asked.nr - 1];
	if (request.kind == PROXY_OPEN && asked.nr)
		fds.file = asked.fds[0];
	proxy_perform(&request, fds, message, &given.fds[0]);
	given.nr = given.fds[0] >= 0;
	sent = wire_send(SPAWN_SOCKET, message, sizeof(message->answer) + message->answer.data_bytes, &given, 0);
	return sent < 0 ? (int)sent : 0;
}

bool serve_as_proxy(int argc, char **argv, int *ret_code)
{
	CLEANUP(freep) struct proxy_message *message = NULL;
	int err = 0;

	if (argc != 1 || strcmp(argv[0], PROXY_NAME) != 0)
		return false;
	message = malloc(sizeof(*message));
	prctl(PR_SET_NAME, PROXY_NAME); /* for ps and top: it runs as /proc/self/exe */
	close_range(SPAWN_SOCKET + 1, ~0u, 0);
	if (message)
		err = send_ready(message);
	while (message && !err)
		err = serve_one(message);
	*ret_code = err != -EPIPE; /* the owner has closed its end */
	return true;
}
