// SPDX-License-Identifier: Apache-2.0
#include "base/local_fs.h"

#include <linux/magic.h>
#include <stdint.h>
#include <sys/vfs.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#define ZFS_SUPER_MAGIC 0x2fc12fc1
#define EROFS_MAGIC 0xe0f5e1e2

bool local_fs_has(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	switch ((uint32_t)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
	case SQUASHFS_MAGIC:
	case TMPFS_MAGIC:
	case ZFS_SUPER_MAGIC:
	case EROFS_MAGIC:
		return true;
	}
	return false;
}
