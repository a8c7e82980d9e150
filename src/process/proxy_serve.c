// SPDX-License-Identifier: Apache-2.0
/* The proxy's side. What it does may never come back; then it is killed. */
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
#include "base/wire.h"
#include "elf/elf_file.h"
#include "process/mapped_file.h"
#include "process/opener.h"
#include "process/proxy.h"
#include "process/proxy_message.h"
#include "process/stranger.h"

#define MAPS_BYTES_MAX ((uint64_t)64 << 20)
#define PIECE_BYTES ((size_t)256 << 10)

/* --- copies ---------------------------------------------------------------------------------------------------------------------------- */

/* The bytes from `at` to `end`, or up to the file's end. */
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

/* Without its holes. */
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

/* The file's bytes in memory, where nobody changes them any more. It belongs to the user of process `tgid`, whatever its server says. */
static int copy_file(uint32_t tgid, int from_fd)
{
	CLEANUP(closep) int copy_fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;
	int err;

	if (copy_fd < 0 || fstat(from_fd, &st))
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size > PROXY_COPY_BYTES_MAX)
		return -EFBIG;
	if (ftruncate(copy_fd, st.st_size) || fchown(copy_fd, stranger_uid(tgid), (gid_t)-1))
		return -errno;
	err = copy_data(from_fd, copy_fd, (uint64_t)st.st_size);
	if (err)
		return err;
	if (fcntl(copy_fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		return -errno;
	return MOVE_FD(copy_fd);
}

/* --- requests -------------------------------------------------------------------------------------------------------------------------- */

/* A text in memory; read at once, or the process would be looked at while others change it. */
static int read_maps(const struct proxy_request *request)
{
	CLEANUP(closep) int from_fd = -1, to_fd = -1;
	struct stat st;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/maps", request->tgid, request->tid);
	from_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (from_fd < 0)
		return -errno;
	to_fd = memfd_create("maps", MFD_CLOEXEC);
	if (to_fd < 0)
		return -errno;
	err = copy_bytes(from_fd, to_fd, 0, MAPS_BYTES_MAX);
	if (!err && fstat(to_fd, &st))
		err = -errno;
	return err ? err : (uint64_t)st.st_size >= MAPS_BYTES_MAX ? -EFBIG : MOVE_FD(to_fd);
}

static int found(uint32_t tgid, int fd, struct proxy_answer *answer)
{
	if (fd >= 0)
		answer->file_system = file_system_kind(tgid, fd);
	return fd;
}

/* `file_fd` is of O_PATH. */
static int open_file(uint32_t tgid, enum file_system_kind kind, int file_fd)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(closep) int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (kind == FILE_SYSTEM_FOREIGN)
		return copy_file(tgid, fd);
	if (kind == FILE_SYSTEM_NETWORK && !elf_file_open_fd(fd, NULL, &elf)) /* whose headers the kernel has then */
		return fcntl(MOVE_FD(fd), F_DUPFD_CLOEXEC, 0);
	return MOVE_FD(fd);
}

/* Takes over what the opener has opened. */
static int copied_if_foreign(uint32_t tgid, int fd)
{
	CLEANUP(closep) int own = fd;

	return fd >= 0 && file_system_kind(tgid, fd) == FILE_SYSTEM_FOREIGN ? copy_file(tgid, fd) : MOVE_FD(own);
}

static int open_what_is_asked(const struct proxy_request *request, int fd, struct proxy_answer *answer)
{
	switch ((enum proxy_kind)request->kind) {
	case PROXY_MAPS:
		return read_maps(request);
	case PROXY_LOCATE:
		return found(request->tgid, mapped_file_locate(request->tgid, request->from, request->to, request->inode, request->path), answer);
	case PROXY_FIND:
		return found(0, mapped_file_find(request->path), answer);
	case PROXY_OPEN:
		return open_file(request->tgid, (enum file_system_kind)request->file_system, fd);
	case PROXY_OPEN_DEBUG:
		return copied_if_foreign(request->tgid, opener_open_debug(request->tgid, request->path, request->max_bytes));
	case PROXY_OPEN_OWN:
		return copied_if_foreign(request->tgid, opener_open_own(request->tgid, request->is_ours, request->path, request->max_bytes));
	default:
		return -EINVAL;
	}
}

void proxy_perform(const struct proxy_request *request, int fd, struct proxy_message *ret_message, int *ret_fd)
{
	struct proxy_answer *answer = &ret_message->answer;
	size_t size = (size_t)(request->to - request->from);

	*answer = (struct proxy_answer){ 0 };
	*ret_fd = -1;
	if (request->kind == PROXY_MEMORY) {
		answer->err = size <= PROXY_DATA_BYTES ? process_memory_read(request->tgid, request->from, ret_message->data, size) : -EINVAL;
		answer->data_bytes = answer->err ? 0 : size;
	} else if (request->kind == PROXY_MEMORY_SOME) {
		answer->data_bytes = process_memory_read_some(request->tgid, request->from, ret_message->data, size < PROXY_DATA_BYTES ? size : PROXY_DATA_BYTES);
	} else {
		*ret_fd = open_what_is_asked(request, fd, answer);
		answer->err = *ret_fd < 0 ? *ret_fd : 0;
	}
}

/* An answer to nothing. */
static int send_ready(struct proxy_message *message)
{
	ssize_t sent;

	message->answer = (struct proxy_answer){ 0 };
	sent = wire_send(SPAWN_SOCKET, message, sizeof(message->answer), NULL, 0);
	return sent < 0 ? (int)sent : 0;
}

/* 0, or what ends the proxy. */
static int serve_one(struct proxy_message *message)
{
	CLEANUP(wire_fds_close) struct wire_fds asked = { .nr = 0 }, given = { .nr = 0 };
	struct proxy_request request = { 0 };
	ssize_t got = wire_receive(SPAWN_SOCKET, &request, sizeof(request) - 1, &asked, 0), sent;

	if (got < 0)
		return (int)got;
	proxy_perform(&request, asked.nr ? asked.fds[0] : -1, message, &given.fds[0]);
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
	prctl(PR_SET_NAME, PROXY_NAME); /* for ps and top: it was executed as /proc/self/exe */
	close_range(SPAWN_SOCKET + 1, ~0u, 0);
	if (message)
		err = send_ready(message);
	while (message && !err)
		err = serve_one(message);
	*ret_code = err != -EPIPE; /* the owner has closed */
	return true;
}
