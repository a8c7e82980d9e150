// SPDX-License-Identifier: Apache-2.0
#include "serve/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/number.h"

#define BACKLOG	    16
#define UNIX_PREFIX "unix:"

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un local;
	};
	socklen_t size;
};

static int bad(const char *text, struct diag *diag)
{
	return diag_errno(diag, EINVAL, "'%.100s' is no address to listen on: 127.0.0.1:PORT, [::1]:PORT, :PORT or unix:PATH", text);
}

static int set_path(const char *path, struct address *address)
{
	size_t length = strlen(path);

	if (!length || length >= sizeof(address->local.sun_path))
		return -ENAMETOOLONG;
	address->local = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->local.sun_path, path, length + 1);
	address->size = sizeof(address->local);
	return 0;
}

static bool set_host(const char *host, in_port_t port, struct address *address)
{
	size_t length = strlen(host);
	char inner[INET6_ADDRSTRLEN];

	if (!length || !strcmp(host, "localhost"))
		host = "127.0.0.1";
	if (*host != '[') {
		address->v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port };
		address->size = sizeof(address->v4);
		return inet_pton(AF_INET, host, &address->v4.sin_addr) == 1;
	}
	if (host[length - 1] != ']' || length - 2 >= sizeof(inner))
		return false;
	memcpy(inner, host + 1, length - 2);
	inner[length - 2] = '\0';
	address->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = port };
	address->size = sizeof(address->v6);
	return inet_pton(AF_INET6, inner, &address->v6.sin6_addr) == 1;
}

static int parse(const char *text, struct address *address, struct diag *diag)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port = 0;

	if (!strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)))
		return set_path(text + strlen(UNIX_PREFIX), address) ? bad(text, diag) : 0;
	if (!colon || (size_t)(colon - text) >= sizeof(host) || number_u64(colon + 1, UINT16_MAX, &port))
		return bad(text, diag);
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	return set_host(host, htons((uint16_t)port), address) ? 0 : bad(text, diag);
}

int listener_check(const char *text, struct diag *diag)
{
	struct address address;

	return parse(text, &address, diag);
}

/* The socket of a process that was killed is still there. One that somebody listens on, and a file of another kind, is not ours to remove:
 * then it cannot be bound. */
static void remove_left_over(const struct address *address)
{
	CLEANUP(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat status;

	if (fd < 0 || lstat(address->local.sun_path, &status) || !S_ISSOCK(status.st_mode))
		return;
	if (connect(fd, &address->any, address->size) && errno == ECONNREFUSED)
		unlink(address->local.sun_path);
}

/* The rights are set before anybody can connect. */
static int bind_and_listen(int fd, const struct address *address)
{
	bool is_local = address->any.sa_family == AF_UNIX;
	int one = 1;

	if (is_local)
		remove_left_over(address);
	else
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &address->any, address->size) || (is_local && chmod(address->local.sun_path, 0600)) || listen(fd, BACKLOG))
		return -errno;
	return 0;
}

/* A descriptor or a negative errno. */
static int open_address(const struct address *address)
{
	CLEANUP(closep) int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = fd < 0 ? -errno : bind_and_listen(fd, address);

	return err ? err : MOVE_FD(fd);
}

static void name_bound(int fd, const char *text, char bound[LISTENER_ADDRESS_BYTES])
{
	struct address address = { .size = sizeof(address.local) };
	char host[INET6_ADDRSTRLEN] = "";

	snprintf(bound, LISTENER_ADDRESS_BYTES, "%s", text);
	if (getsockname(fd, &address.any, &address.size))
		return;
	if (address.any.sa_family == AF_INET && inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof(host)))
		snprintf(bound, LISTENER_ADDRESS_BYTES, "%s:%u", host, ntohs(address.v4.sin_port));
	if (address.any.sa_family == AF_INET6 && inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof(host)))
		snprintf(bound, LISTENER_ADDRESS_BYTES, "[%s]:%u", host, ntohs(address.v6.sin6_port));
}

int listener_open(const char *text, char bound[LISTENER_ADDRESS_BYTES], struct diag *diag)
{
	struct address address;
	int fd = parse(text, &address, diag);

	if (fd)
		return fd;
	fd = open_address(&address);
	if (fd < 0)
		return diag_errno(diag, -fd, "cannot listen on %.200s: %s", text, strerror(-fd));
	name_bound(fd, text, bound);
	return fd;
}

void listener_close(int fd, const char *text)
{
	close(fd);
	if (!strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)))
		unlink(text + strlen(UNIX_PREFIX));
}

/* --- in a directory ------------------------------------------------------------------------------------------------------------------- */

/* The address has room for a short path alone: the directory is reached by its descriptor. */
static int address_in(const char *directory, const char *name, struct address *address)
{
	int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), err;
	char path[64];

	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", fd, name);
	err = set_path(path, address);
	if (err)
		close(fd);
	return err ? err : fd;
}

int listener_open_in(const char *directory, const char *name, struct diag *diag)
{
	struct address address;
	CLEANUP(closep) int directory_fd = address_in(directory, name, &address);
	int fd = directory_fd < 0 ? directory_fd : open_address(&address);

	return fd < 0 ? diag_errno(diag, -fd, "cannot listen on %.200s/%s: %s", directory, name, strerror(-fd)) : fd;
}

void listener_close_in(int fd, const char *directory, const char *name)
{
	CLEANUP(closep) int directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

	close(fd);
	if (directory_fd >= 0)
		unlinkat(directory_fd, name, 0);
}

int listener_connect_in(const char *directory, const char *name)
{
	struct address address;
	CLEANUP(closep) int directory_fd = address_in(directory, name, &address);
	CLEANUP(closep) int fd = -1;

	if (directory_fd < 0)
		return directory_fd;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd < 0 || connect(fd, &address.any, address.size) ? -errno : MOVE_FD(fd);
}
