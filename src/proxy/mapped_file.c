// SPDX-License-Identifier: Apache-2.0
#include "proxy/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define COMPARED_BYTES 65536

static int open_path(int root_fd, const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = root_fd == AT_FDCWD ? 0 : RESOLVE_IN_ROOT };
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static int look(int fd, struct statx *ret_status)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, ret_status) ? -errno : 0;
}

/* Accepts only the file with this inode; 0 accepts any. Takes over the descriptor, or passes the errno on. */
static int with_inode(int fd, uint64_t inode)
{
	CLEANUP(closep) int own = fd;
	struct statx status;

	if (fd < 0)
		return fd;
	if (inode && (look(fd, &status) || status.stx_ino != inode))
		return -ENOENT;
	return MOVE_FD(own);
}

/* Does the address range still map what the event reported? It may have been reused since. The inodes may differ: a stacked file system has
 * two for one file. Then the names must agree. */
static bool is_same_mapping(int fd, const char *link, uint64_t inode, const char *path)
{
	const char *name = strrchr(path, '/'), *target_name;
	char target[4096];
	struct statx status;
	ssize_t size;

	if (!inode || (!look(fd, &status) && status.stx_ino == inode))
		return true;
	size = readlink(link, target, sizeof(target) - 1);
	target[size > 0 ? size : 0] = '\0';
	target_name = strrchr(target, '/');
	return name && target_name && !strncmp(target_name, name, strlen(name)); /* " (deleted)" may follow */
}

int mapped_file_locate(uint32_t tgid, uint64_t start_pc, uint64_t end_pc, uint64_t inode, const char *path)
{
	CLEANUP(closep) int root_fd = -1;
	char at[64];
	int fd;

	snprintf(at, sizeof(at), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, tgid, start_pc, end_pc);
	fd = open(at, O_PATH | O_CLOEXEC);
	if (fd >= 0 && is_same_mapping(fd, at, inode, path))
		return fd;
	closep(&fd);
	if (path[0] != '/')
		return -ENOENT;
	snprintf(at, sizeof(at), "/proc/%" PRIu32 "/root", tgid);
	root_fd = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = root_fd < 0 ? -errno : with_inode(open_path(root_fd, path), inode);
	return fd >= 0 ? fd : with_inode(open_path(AT_FDCWD, path), inode);
}

int mapped_file_identify(int path_fd, struct file_identity *ret_identity)
{
	struct statx status;
	int err = look(path_fd, &status);

	if (err)
		return err;
	if (!S_ISREG(status.stx_mode))
		return -ENOEXEC;
	*ret_identity = (struct file_identity){
		.device = makedev(status.stx_dev_major, status.stx_dev_minor),
		.inode = status.stx_ino,
		.size = status.stx_size,
		.owner = status.stx_uid,
		.changed_s = status.stx_mtime.tv_sec,
		.changed_ns = status.stx_mtime.tv_nsec,
	};
	return 0;
}

int mapped_file_find(const char *path)
{
	return open_path(AT_FDCWD, path);
}

static bool read_whole(const struct elf_file *elf, uint64_t off, char *to, size_t size)
{
	return pread(elf_file_fd(elf), to, size, (off_t)off) == (ssize_t)size;
}

bool mapped_file_is_same(const struct elf_file *a, const struct elf_file *b)
{
	CLEANUP(freep) char *parts = malloc(2 * (size_t)COMPARED_BYTES);
	uint64_t size = elf_file_size(a);
	bool is_same = parts && elf_file_size(b) == size;

	for (uint64_t off = 0; off < size && is_same; off += COMPARED_BYTES) {
		size_t nr = size - off < COMPARED_BYTES ? (size_t)(size - off) : COMPARED_BYTES;

		is_same = read_whole(a, off, parts, nr) && read_whole(b, off, parts + COMPARED_BYTES, nr) &&
			  !memcmp(parts, parts + COMPARED_BYTES, nr);
	}
	return is_same;
}
