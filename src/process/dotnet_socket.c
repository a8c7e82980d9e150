// SPDX-License-Identifier: Apache-2.0
#include "process/dotnet_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/process_stat.h"
#include "base/reader.h"
#include "process/jit_files.h"
#include "process/jitdump_path.h"

#define MAGIC	     "DOTNET_IPC_V1" /* with its NUL */
#define HEADER_BYTES 20
#define PACKET_BYTES (HEADER_BYTES + sizeof(uint32_t)) /* of each command and answer that there is here */
#define PROCESS_SET  0x04
#define SERVER_SET   0xff /* of answers */
#define ANSWER_OK    0x00
#define ANSWER_ERROR 0xff
#define PERF_MAP     3	   /* the map alone: 8.0.4 never closes and unmaps a jitdump, so each would leave a descriptor and a mapping */
#define MAX_FILES    65536 /* open files of a process that are looked at */

/* Is it "/perf-NUMBER.map" in some directory, maybe deleted? */
static bool is_map(const char *path, uint32_t number)
{
	const char *slash = strrchr(path, '/');
	char name[32];
	size_t length;

	snprintf(name, sizeof(name), "/perf-%" PRIu32 ".map", number);
	length = strlen(name);
	return slash && !strncmp(slash, name, length) && (!slash[length] || slash[length] == ' ');
}

bool dotnet_writes_perf_map(uint32_t tgid)
{
	uint32_t number = jit_files_number(tgid), nr = 0;
	char path[PATH_MAX];
	CLEANUP(closedirp) DIR *files = NULL;
	const struct dirent *entry;
	bool is_found = false;
	int err;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/fd", tgid);
	files = opendir(path);
	while (files && !is_found && nr++ < MAX_FILES && (entry = dir_next(files, &err))) {
		ssize_t length = readlinkat(dirfd(files), entry->d_name, path, sizeof(path) - 1);

		path[length > 0 ? length : 0] = '\0';
		is_found = is_map(path, number) || jitdump_path_is_of(path, number);
	}
	return is_found;
}

/* The variable TMPDIR that the process was started with. "": none, or it cannot be read. */
static void find_folder(struct proxy *proxy, uint32_t tgid, char *to, size_t size)
{
	struct environment_names names = { 0 };
	struct process_identity identity;
	struct environment_values values;

	to[0] = '\0';
	if (!environment_names_add(&names, "TMPDIR") && !proxy_identity(proxy, tgid, &names, &identity, &values))
		snprintf(to, size, "%s", values.values[0]);
}

static int connect_to(struct proxy *proxy, uint32_t tgid)
{
	char folder[ENVIRONMENT_VALUE_BYTES], path[ENVIRONMENT_VALUE_BYTES + 80];
	struct process_stat stat;
	int err = process_stat_read(tgid, &stat);

	if (err)
		return err == -ENOENT ? -ESRCH : err;
	find_folder(proxy, tgid, folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/dotnet-diagnostic-%" PRIu32 "-%" PRIu64 "-socket", folder[0] ? folder : "/tmp",
		 jit_files_number(tgid), process_stat_number(&stat, PROCESS_STAT_START));
	return proxy_connect_own(proxy, tgid, path);
}

int dotnet_socket_send(struct proxy *proxy, uint32_t tgid, enum dotnet_command command)
{
	const uint8_t size = command == DOTNET_ENABLE_PERF_MAP ? PACKET_BYTES : HEADER_BYTES;
	uint8_t packet[PACKET_BYTES] = MAGIC;
	CLEANUP(closep) int fd = connect_to(proxy, tgid);

	if (fd < 0)
		return fd;
	packet[sizeof(MAGIC)] = size;
	packet[sizeof(MAGIC) + 2] = PROCESS_SET;
	packet[sizeof(MAGIC) + 3] = (uint8_t)command;
	packet[HEADER_BYTES] = PERF_MAP;
	if (send(fd, packet, size, MSG_NOSIGNAL) != size) /* a new connection has room for it */
		return errno == EPIPE ? -EPROTO : -errno;
	return MOVE_FD(fd);
}

/* Waits until there is something to read. */
static int wait_for(int fd, int stop_fd, uint64_t until_ns)
{
	struct pollfd waits[] = { { .fd = fd, .events = POLLIN }, { .fd = stop_fd, .events = POLLIN } };
	uint64_t now_ns = clock_ns();
	int nr = poll(waits, ARRAY_SIZE(waits), until_ns > now_ns ? (int)((until_ns - now_ns) / NS_PER_MS) + 1 : 0);

	if (nr < 0)
		return errno == EINTR ? 0 : -errno;
	return !nr ? -ETIMEDOUT : waits[0].revents ? 0 : -EINTR;
}

static int parse(const uint8_t *packet, uint32_t *ret_reason)
{
	struct reader reader = reader_of(packet, PACKET_BYTES);
	char magic[sizeof(MAGIC)];
	uint16_t size;
	uint8_t set, id;

	reader_copy(&reader, magic, sizeof(magic));
	size = reader_u16(&reader);
	set = reader_u8(&reader);
	id = reader_u8(&reader);
	reader_skip(&reader, 2);
	if (memcmp(magic, MAGIC, sizeof(magic)) != 0 || size < PACKET_BYTES || set != SERVER_SET || (id != ANSWER_OK && id != ANSWER_ERROR))
		return -EPROTO;
	if (id == ANSWER_OK)
		return 0;
	*ret_reason = reader_u32(&reader);
	return -EOPNOTSUPP;
}

int dotnet_socket_wait(int fd, int stop_fd, uint64_t until_ns, uint32_t *ret_reason)
{
	uint8_t packet[PACKET_BYTES];
	size_t size = 0;

	while (size < sizeof(packet)) {
		ssize_t got;
		int err = wait_for(fd, stop_fd, until_ns);

		if (err)
			return err;
		got = recv(fd, packet + size, sizeof(packet) - size, MSG_DONTWAIT);
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
			return -EPROTO;
		size += got > 0 ? (size_t)got : 0;
	}
	return parse(packet, ret_reason);
}
