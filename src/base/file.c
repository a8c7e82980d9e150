// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int file_open_regular(const char *path, struct stat *ret_stat)
{
	CLEANUP(closep) int path_fd = open(path, O_PATH | O_CLOEXEC);
	char self[64];
	int fd;

	if (path_fd < 0 || fstat(path_fd, ret_stat))
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return -ENOEXEC;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int file_write(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t written = write(fd, bytes, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -EIO;
		bytes += written;
		size -= (size_t)written;
	}
	return 0;
}
