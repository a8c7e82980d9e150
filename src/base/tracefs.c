// SPDX-License-Identifier: Apache-2.0
#include "base/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/number.h"
#include "base/small_file.h"

static const char *const targets[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

/* Opens the directory, unless it is only an empty mount point. */
static int open_target(const char *path, int *ret_fd)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || faccessat(fd, "events", X_OK, 0))
		return -errno;
	*ret_fd = MOVE_FD(fd);
	return 0;
}

/* fsopen(2) and the like need Linux 5.2. glibc 2.36 wraps them, older versions do not. */
static int mount_own(int *ret_fd)
{
	CLEANUP(closep) int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int fd;

	if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	fd = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int tracefs_open(struct diag *diag, int *ret_fd, const char **ret_where)
{
	bool is_mounted = false;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		err = open_target(targets[i], ret_fd);
		*ret_where = targets[i];
		if (!err)
			return 0;
		is_mounted |= i == 0 && (err == -EACCES || err == -EPERM); /* the other path is below debugfs, which only root may enter */
	}
	err = mount_own(ret_fd);
	*ret_where = "a mount of tracefs that only sonde sees";
	if (!err)
		return 0;
	if (is_mounted)
		return diag_errno(diag, EACCES, "tracefs may not be read (%s): run as root", targets[0]);
	if (err == -EPERM)
		return diag_errno(diag, EPERM, "tracefs is not mounted, and mounting it needs CAP_SYS_ADMIN: sudo mount -t tracefs none %s",
				  targets[0]);
	if (err == -ENODEV)
		return diag_errno(diag, ENODEV, "this kernel has no tracepoints for perf events (CONFIG_EVENT_TRACING)");
	return diag_errno(diag, -err, "tracefs is not mounted, and cannot be: %s", strerror(-err));
}

int tracefs_id(const char *subsystem, const char *name, struct diag *diag, uint64_t *ret_id)
{
	CLEANUP(closep) int fd = -1;
	char path[256], text[24];
	const char *where;
	int err = tracefs_open(diag, &fd, &where);

	if (err)
		return err;
	if (strchr(subsystem, '/') || strchr(name, '/') || *subsystem == '.' || *name == '.' ||
	    (size_t)snprintf(path, sizeof(path), "events/%s/%s/id", subsystem, name) >= sizeof(path))
		return diag_errno(diag, EINVAL, "'%.60s:%.60s' is no name of a tracepoint", subsystem, name);
	err = small_file_read(fd, path, text, sizeof(text));
	if (err == -ENOENT)
		return diag_errno(diag, ENOENT, "this kernel has no tracepoint '%s:%s'", subsystem, name);
	if (err)
		return diag_errno(diag, -err, "the number of '%s:%s' cannot be read from tracefs: %s", subsystem, name, strerror(-err));
	return number_u64(text, UINT64_MAX, ret_id)
		   ? diag_errno(diag, EBADMSG, "the number of '%s:%s' makes no sense: '%s'", subsystem, name, text)
		   : 0;
}
