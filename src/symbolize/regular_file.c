// SPDX-License-Identifier: Apache-2.0
#include "symbolize/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The file that an O_PATH descriptor stands for, checked and opened for reading: the same inode, whoever renames meanwhile. */
static int reopen(int path_fd, uint64_t max_bytes, struct stat *ret_stat)
{
	char self[64];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	if (st.st_size < 0 || (uint64_t)st.st_size > max_bytes)
		return -EFBIG;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	*ret_stat = st;
	return fd;
}

int regular_file_open(const char *path, uint64_t max_bytes)
{
	CLEANUP(closep) int path_fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	return path_fd < 0 ? -errno : reopen(path_fd, max_bytes, &st);
}

/* Without openat2 (refused by a seccomp filter that does not know it): no link at all on the way. */
static int open_path_plainly(int root_fd, const char *path)
{
	CLEANUP(closep) int dir_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	const char *slash;
	char part[256];
	int fd;

	while (dir_fd >= 0 && (slash = strchr(path, '/'))) {
		if ((size_t)(slash - path) >= sizeof(part))
			return -ENAMETOOLONG;
		memcpy(part, path, (size_t)(slash - path));
		part[slash - path] = '\0';
		if (strcmp(part, "..") == 0)
			return -ELOOP;
		fd = openat(dir_fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		close(dir_fd);
		dir_fd = fd;
		path = slash + 1;
	}
	fd = openat(dir_fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int regular_file_open_in(int root_fd, const char *path, uint64_t max_bytes, struct stat *ret_stat)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	CLEANUP(closep) int path_fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	if (path_fd < 0 && (errno == ENOSYS || errno == EPERM))
		path_fd = open_path_plainly(root_fd, path);
	else if (path_fd < 0)
		return -errno;
	return path_fd < 0 ? path_fd : reopen(path_fd, max_bytes, ret_stat);
}
