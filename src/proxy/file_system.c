// SPDX-License-Identifier: Apache-2.0
#include "proxy/file_system.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/cleanup.h"

/* Some kernel headers lack these. */
#define FUSE_MAGIC 0x65735546u
#define CEPH_MAGIC 0x00c36400u
#define LUSTRE_MAGIC 0x0bd00bd0u
#define CIFS_MAGIC 0xff534d42u
#define SMB2_MAGIC 0xfe534d42u

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000u
#endif

struct mount {
	uint64_t id, device;
	char type[32];
};

static bool is_network(uint32_t magic)
{
	static const uint32_t magics[] = { NFS_SUPER_MAGIC, V9FS_MAGIC,	  AFS_SUPER_MAGIC, CODA_SUPER_MAGIC,
					   CEPH_MAGIC,	    LUSTRE_MAGIC, CIFS_MAGIC,	   SMB2_MAGIC };
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
		found |= magic == magics[i];
	return found;
}

/* proc_pid_mountinfo(5): "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw". */
static bool parse_mount(const char *line, struct mount *ret_mount)
{
	const char *type = strstr(line, " - ");
	unsigned int major, minor;

	if (!type || sscanf(line, "%" SCNu64 " %*u %u:%u", &ret_mount->id, &major, &minor) != 3 ||
	    sscanf(type, " - %31s", ret_mount->type) != 1) /* NOLINT: numbers of the kernel */
		return false;
	ret_mount->device = makedev(major, minor);
	return true;
}

static bool find_mount(const char *path, bool (*is_it)(const struct mount *mount, uint64_t wanted), uint64_t wanted,
		       struct mount *ret_mount)
{
	CLEANUP(fclosep) FILE *file = fopen(path, "re");
	CLEANUP(freep) char *line = NULL;
	size_t capacity = 0;
	bool found = false;

	while (file && !found && getline(&line, &capacity, file) > 0)
		found = parse_mount(line, ret_mount) && is_it(ret_mount, wanted);
	return found;
}

static bool has_id(const struct mount *mount, uint64_t id)
{
	return mount->id == id;
}

static bool has_device(const struct mount *mount, uint64_t device)
{
	return mount->device == device;
}

/* Did root mount it? Root made the mounts of our own mount namespace. A container's mounts are also there when root's daemon made them. */
static bool is_ours(uint32_t tgid, int fd, struct mount *ret_mount)
{
	const char *own = "/proc/self/mountinfo";
	struct statx status;
	char path[40];

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &status) || !(status.stx_mask & STATX_MNT_ID))
		return false;
	if (find_mount(own, has_device, makedev(status.stx_dev_major, status.stx_dev_minor), ret_mount) ||
	    find_mount(own, has_id, status.stx_mnt_id, ret_mount))
		return true;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/mountinfo", tgid);
	return tgid && find_mount(path, has_id, status.stx_mnt_id, ret_mount) && find_mount(own, has_device, ret_mount->device, ret_mount);
}

enum file_system_kind file_system_kind(uint32_t tgid, int fd)
{
	struct statfs status;
	struct mount mount;

	if (fstatfs(fd, &status))
		return FILE_SYSTEM_FOREIGN;
	switch ((uint32_t)status.f_type) {
	case FUSE_MAGIC: /* virtiofs has the same number */
		return is_ours(tgid, fd, &mount) && !strcmp(mount.type, "virtiofs") ? FILE_SYSTEM_NETWORK : FILE_SYSTEM_FOREIGN;
	case OVERLAYFS_SUPER_MAGIC:
		return is_ours(tgid, fd, &mount) ? FILE_SYSTEM_LOCAL : FILE_SYSTEM_FOREIGN;
	}
	return is_network((uint32_t)status.f_type) ? FILE_SYSTEM_NETWORK : FILE_SYSTEM_LOCAL;
}
