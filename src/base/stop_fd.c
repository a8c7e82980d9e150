// SPDX-License-Identifier: Apache-2.0
#include "base/stop_fd.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/readable.h"

int stop_fd_new(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

void stop_fd_set(int fd)
{
	const uint64_t one = 1;
	int saved = errno;

	if (write(fd, &one, sizeof(one)) < 0)
		errno = saved; /* full: it is set already */
	errno = saved;
}

bool stop_fd_take(int fd)
{
	uint64_t count;

	return read(fd, &count, sizeof(count)) == sizeof(count);
}

bool stop_fd_is_set(int fd)
{
	return fd_is_readable(fd);
}
