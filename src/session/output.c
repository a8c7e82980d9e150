// SPDX-License-Identifier: Apache-2.0
#include "session/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

static int cannot_write(struct diag *diag, int err, const char *path)
{
	return diag_errno(diag, err, "cannot write %s: %s", path, strerror(err));
}

static int write_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t written = write(fd, bytes, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		bytes += written;
		size -= (size_t)written;
	}
	return 0;
}

/* The directory that a path's file stands in. */
static int directory_of(const char *path, char *to, size_t size)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (length >= size)
		return -ENAMETOOLONG;
	if (!slash)
		snprintf(to, size, ".");
	else
		snprintf(to, size, "%.*s", (int)(length ? length : 1), path);
	return 0;
}

/* Is there something at `path` that is no regular file (a device, a FIFO), to be written through? */
static bool is_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

/* The file that a symbolic link leads to: a report takes its place, not the link's (/dev/stdout, where stdout is a file). The kernel follows the
 * link, so that its protection of links in /tmp holds. `path` itself where the link leads nowhere. */
static const char *follow(const char *path, char to[PATH_MAX])
{
	CLEANUP(closep) int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat link, file;
	char self[64];
	ssize_t size;

	if (fd < 0 || lstat(path, &link) || !S_ISLNK(link.st_mode))
		return path;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	size = readlink(self, to, PATH_MAX - 1);
	if (size <= 0)
		return path;
	to[size] = '\0';
	return stat(to, &file) || !S_ISREG(file.st_mode) ? path : to;
}

/* A closed stdout is found out before the run, not after it. */
static bool can_write_to_stdout(void)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

/* A FIFO that nobody reads is refused, not waited for. */
static int open_special(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK)) {
		close(fd);
		return -1;
	}
	return fd;
}

int output_check(const char *path, struct diag *diag)
{
	char directory[PATH_MAX], target[PATH_MAX];
	CLEANUP(closep) int fd = -1;
	struct stat st;
	int err;

	if (!strcmp(path, "-"))
		return can_write_to_stdout() ? 0 : cannot_write(diag, EBADF, "standard output");
	if (!*path || (stat(path, &st) && errno != ENOENT))
		return cannot_write(diag, *path ? errno : ENOENT, *path ? path : "''");
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return cannot_write(diag, EISDIR, path);
	if (is_special(path))
		return access(path, W_OK) ? cannot_write(diag, errno, path) : 0;
	err = directory_of(follow(path, target), directory, sizeof(directory));
	if (err)
		return cannot_write(diag, -err, path);
	fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EOPNOTSUPP && errno != EISDIR) /* the two: a file system without such files */
		return cannot_write(diag, errno, path);
	return access(directory, W_OK | X_OK) ? cannot_write(diag, errno, path) : 0;
}

/* For file systems that know no nameless files (NFS, vfat): beside `path` under a passing name, which then takes its place. */
static int overwrite(const char *path, const void *bytes, size_t size)
{
	char passing[PATH_MAX];
	CLEANUP(closep) int fd = -1;
	int err;

	if ((size_t)snprintf(passing, sizeof(passing), "%s.%d.part", path, (int)getpid()) >= sizeof(passing))
		return -ENAMETOOLONG;
	fd = open(passing, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	err = write_all(fd, bytes, size);
	if (close(MOVE_FD(fd)) && !err) /* NFS reports a full disk here */
		err = -errno;
	if (!err && rename(passing, path))
		err = -errno;
	if (err)
		unlink(passing);
	return err;
}

/* Gives the nameless file its name; where something has that name, by a passing one that then takes its place. */
static int name_file(int fd, const char *path)
{
	char self[64], passing[PATH_MAX];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (!linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW))
		return 0;
	if (errno != EEXIST)
		return -errno;
	if ((size_t)snprintf(passing, sizeof(passing), "%s.%d.part", path, (int)getpid()) >= sizeof(passing))
		return -ENAMETOOLONG;
	unlink(passing); /* an earlier process's of our number, that was killed here */
	if (linkat(AT_FDCWD, self, AT_FDCWD, passing, AT_SYMLINK_FOLLOW))
		return -errno;
	if (rename(passing, path)) {
		int err = -errno;

		unlink(passing);
		return err;
	}
	return 0;
}

/* A file without a name is gone when we are: nothing half-written stays, whatever happens. */
static int replace(const char *path, const void *bytes, size_t size)
{
	char directory[PATH_MAX];
	CLEANUP(closep) int fd = -1;
	int err = directory_of(path, directory, sizeof(directory));

	if (err)
		return err;
	fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno == EOPNOTSUPP || errno == EISDIR ? overwrite(path, bytes, size) : -errno;
	err = write_all(fd, bytes, size);
	return err ? err : name_file(fd, path);
}

int output_write(const char *path, const void *bytes, size_t size, struct diag *diag)
{
	int err;

	if (!strcmp(path, "-")) {
		err = write_all(STDOUT_FILENO, bytes, size);
		return err ? cannot_write(diag, -err, "standard output") : 0;
	}
	if (is_special(path)) {
		CLEANUP(closep) int fd = open_special(path);

		err = fd < 0 ? -errno : write_all(fd, bytes, size);
	} else {
		char target[PATH_MAX];

		err = replace(follow(path, target), bytes, size);
	}
	return err ? cannot_write(diag, -err, path) : 0;
}
