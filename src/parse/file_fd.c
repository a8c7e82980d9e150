// SPDX-License-Identifier: Apache-2.0
#include "parse/file_fd.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int file_fd_of(const struct elf_file *elf, int *ret_own)
{
	int fd = elf_file_fd(elf);
	uint64_t size = elf_file_size(elf);

	if (fd >= 0)
		return fd;
	fd = memfd_create("elf", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_own = fd;
	return write(fd, elf_file_bytes(elf), size) == (ssize_t)size ? fd : -EIO;
}
