// SPDX-License-Identifier: Apache-2.0
#include "events/file_name.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

void file_name_parts(struct buffer *name, const struct sonde_file_text *file, const char *parts, size_t bytes)
{
	size_t end = bytes; /* of the part, with its NUL */

	if (file->flags & SONDE_FILE_CUT)
		buffer_text(name, "...");
	if (!end)
		buffer_text(name, "/");
	while (end) {
		size_t begin = end - 1;

		while (begin && parts[begin - 1])
			begin--;
		buffer_text(name, "/");
		buffer_append(name, parts + begin, strnlen(parts + begin, end - begin));
		end = begin;
	}
	if (file->flags & SONDE_FILE_DELETED)
		buffer_text(name, " (deleted)");
}

/* What the kernel keeps for itself has a name but no folder. */
static void anon_name(struct buffer *name, const struct sonde_file_text *file, const char *text)
{
	size_t bytes = strnlen(text, file->bytes);

	if (!bytes || *text == '/') {
		buffer_printf(name, "anon:[%" PRIu64 "]", (uint64_t)file->ino);
		return;
	}
	if (*text == '[')
		buffer_text(name, "anon_inode:");
	buffer_append(name, text, bytes);
}

static void address(struct buffer *name, uint16_t family, const uint8_t *bytes, uint16_t port)
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(family, bytes, text, sizeof(text));
	buffer_printf(name, family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
}

static const char *protocol_name(const struct sonde_socket *socket)
{
	if (socket->type == SOCK_STREAM && socket->protocol == IPPROTO_TCP)
		return "TCP";
	if (socket->type == SOCK_DGRAM && socket->protocol == IPPROTO_UDP)
		return "UDP";
	return socket->protocol == IPPROTO_ICMP || socket->protocol == IPPROTO_ICMPV6 ? "ICMP" : socket->type == SOCK_RAW ? "RAW" : "IP";
}

static void unix_name(struct buffer *name, const struct sonde_socket *socket, uint64_t ino)
{
	size_t bytes = socket->path_bytes < sizeof(socket->path) ? socket->path_bytes : sizeof(socket->path);

	if (!bytes) {
		buffer_printf(name, "UNIX [%" PRIu64 "]", ino);
		return;
	}
	buffer_text(name, socket->is_peers ? "UNIX ->" : "UNIX ");
	if (socket->path[0]) {
		buffer_append(name, socket->path, strnlen(socket->path, bytes));
		return;
	}
	buffer_text(name, "@");
	buffer_append(name, socket->path + 1, strnlen(socket->path + 1, bytes - 1));
}

static void socket_name(struct buffer *name, const struct sonde_socket *socket, uint64_t ino)
{
	switch (socket->family) {
	case AF_UNIX:
		unix_name(name, socket, ino);
		break;
	case AF_INET:
	case AF_INET6:
		buffer_printf(name, "%s ", protocol_name(socket));
		address(name, socket->family, socket->local, socket->local_port);
		if (!socket->remote_port)
			break;
		buffer_text(name, "->");
		address(name, socket->family, socket->remote, socket->remote_port);
		break;
	case AF_NETLINK:
		buffer_printf(name, "NETLINK [%" PRIu64 "]", ino);
		break;
	default:
		buffer_printf(name, "socket:[%" PRIu64 "]", ino);
	}
}

void file_name(struct buffer *name, const struct sonde_file_text *file, const char *text)
{
	struct sonde_socket socket;

	switch (file->kind) {
	case SONDE_FILE_PATH:
		file_name_parts(name, file, text, file->bytes);
		break;
	case SONDE_FILE_PIPE:
		buffer_printf(name, "pipe:[%" PRIu64 "]", (uint64_t)file->ino);
		break;
	case SONDE_FILE_ANON:
		anon_name(name, file, text);
		break;
	case SONDE_FILE_SOCKET:
		if (file->bytes < sizeof(socket))
			break;
		memcpy(&socket, text, sizeof(socket));
		socket_name(name, &socket, file->ino);
		break;
	default:
		buffer_text(name, "[not open]");
	}
}
