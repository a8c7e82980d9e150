// SPDX-License-Identifier: Apache-2.0
#include "parse/file_owner.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/caller.h"
#include "base/clock.h"
#include "base/number.h"

#define MAX_MOUNTS 16
#define MAX_IDLE_NS (100 * NS_PER_MS) /* a disk answers within this time */

/* Among file systems without a device of their own. All others of these may have a server. */
static const char *const local_types[] = { "bcachefs", "btrfs", "overlay", "ramfs", "rootfs", "tmpfs", "zfs" };

struct mount {
	uint64_t id;
	bool is_local, is_users;
};

struct file_owners {
	struct mount mounts[MAX_MOUNTS];
	uint32_t nr_mounts, next_mount;
};

struct file_owners *file_owners_new(void)
{
	return calloc(1, sizeof(struct file_owners));
}

void file_owners_free(struct file_owners *owners)
{
	free(owners);
}

static bool is_local_type(const char *type)
{
	bool is_local = false;

	for (size_t i = 0; i < ARRAY_SIZE(local_types); i++)
		is_local |= !strcmp(type, local_types[i]);
	return is_local;
}

/* A mount that is not in our namespace is in one that its user may have made. */
static struct mount read_mount(uint64_t id)
{
	CLEANUP(fclosep) FILE *file = fopen("/proc/self/mountinfo", "re");
	CLEANUP(freep) char *line = NULL;
	struct mount mount = { .id = id, .is_users = true };
	size_t room = 0;

	while (file && getline(&line, &room, file) > 0) {
		char *behind = strchr(line, ' '), *type = strstr(line, " - ");
		uint64_t line_id;

		if (!behind || !type)
			continue;
		*behind = '\0';
		if (number_u64(line, UINT64_MAX, &line_id) || line_id != id)
			continue;
		type += 3;
		type[strcspn(type, " \n")] = '\0';
		mount.is_users = !strncmp(type, "fuse", 4);
		mount.is_local = is_local_type(type);
	}
	return mount;
}

static struct mount find_mount(struct file_owners *owners, uint64_t id)
{
	struct mount *mount;

	for (uint32_t i = 0; i < owners->nr_mounts; i++)
		if (owners->mounts[i].id == id)
			return owners->mounts[i];
	mount = &owners->mounts[owners->next_mount];
	owners->next_mount = (owners->next_mount + 1) % MAX_MOUNTS;
	owners->nr_mounts += owners->nr_mounts < MAX_MOUNTS;
	*mount = read_mount(id);
	return *mount;
}

struct file_owner file_owner_of(struct file_owners *owners, int fd)
{
	struct file_owner owner = { .is_users = true };
	struct mount mount = { .is_local = true };
	struct statx st;

	if (fd < 0)
		return (struct file_owner){ .is_trusted = true, .is_local = true };
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID | STATX_MNT_ID, &st))
		return owner;
	/* Neither on a disk nor in memory. Memory includes the proxy's copies of files that users serve; those have the uid that is
	 * charged. */
	if (!st.stx_dev_major && fcntl(fd, F_GET_SEALS) < 0)
		mount = st.stx_mask & STATX_MNT_ID ? find_mount(owners, st.stx_mnt_id) : (struct mount){ .is_users = true };
	owner.device = makedev(st.stx_dev_major, st.stx_dev_minor);
	owner.uid = st.stx_uid;
	owner.is_local = mount.is_local;
	owner.is_users = mount.is_users;
	owner.is_trusted = !mount.is_users && caller_is(owner.uid);
	return owner;
}

uint64_t file_owner_idle_ns(const struct file_owner *owner)
{
	return owner->is_local ? 0 : MAX_IDLE_NS;
}

bool file_owner_is_same(const struct file_owner *a, const struct file_owner *b)
{
	return a->is_users == b->is_users && (a->is_users ? a->device == b->device : a->uid == b->uid);
}
