// SPDX-License-Identifier: Apache-2.0
#include "codec/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	char bytes[CMSG_SPACE(WIRE_MAX_FDS * sizeof(int))];
	struct cmsghdr align;
};

void wire_fds_close(struct wire_fds *fds)
{
	for (uint32_t i = 0; i < fds->nr; i++)
		close(fds->fds[i]);
	fds->nr = 0;
}

ssize_t wire_send(int fd, const void *bytes, size_t size, const struct wire_fds *fds, int flags)
{
	struct iovec part = { .iov_base = (void *)bytes, .iov_len = size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	union control control = { 0 };
	ssize_t sent;

	if (fds && fds->nr) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fds->nr * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(fds->nr * sizeof(int));
		memcpy(CMSG_DATA(header), fds->fds, fds->nr * sizeof(int));
	}
	do
		sent = sendmsg(fd, &message, flags | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

static void take_fds(struct msghdr *message, struct wire_fds *fds)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		size_t nr = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < nr; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
			if (fds && fds->nr < WIRE_MAX_FDS)
				fds->fds[fds->nr++] = fd;
			else
				close(fd);
		}
	}
}

ssize_t wire_receive(int fd, void *bytes, size_t size, struct wire_fds *fds, int flags)
{
	struct iovec part = { .iov_base = bytes, .iov_len = size };
	union control control;
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)
	};
	ssize_t got;

	do
		got = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	take_fds(&message, fds);
	return got ? got : -EPIPE;
}
