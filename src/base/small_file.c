// SPDX-License-Identifier: Apache-2.0
#include "base/small_file.h"

#include <errno.h>
#include <unistd.h>

int small_file_read(int dir_fd, const char *path, char *text, size_t room)
{
	CLEANUP(closep) int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t nr;

	if (fd < 0)
		return -errno;
	while (size < room - 1 && (nr = read(fd, text + size, room - 1 - size)) != 0) {
		if (nr < 0)
			return -errno;
		size += (size_t)nr;
	}
	while (size > 0 && text[size - 1] == '\n')
		size--;
	text[size] = '\0';
	return 0;
}
