// SPDX-License-Identifier: Apache-2.0
#include "base/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

int process_memory_open(uint32_t tgid)
{
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/mem", tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ESRCH : errno == EACCES || errno == EPERM ? -EFAULT : -errno;
}

int process_memory_read(int fd, uint64_t from, void *to, size_t size)
{
	size_t done = process_memory_read_some(fd, from, to, size);
	char byte;

	if (done == size)
		return 0;
	return !done && pread(fd, &byte, sizeof(byte), (off_t)from) == 0 ? -ESRCH : -EFAULT;
}

size_t process_memory_read_some(int fd, uint64_t from, void *to, size_t size)
{
	size_t done = 0;
	ssize_t got = 1;

	while (done < size && got > 0) {
		got = pread(fd, (char *)to + done, size - done, (off_t)(from + done));
		done += got > 0 ? (size_t)got : 0;
	}
	return done;
}
