// SPDX-License-Identifier: Apache-2.0
#include "output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/number.h"

static int cannot_write(struct diag *diag, int err, const char *path)
{
	return diag_errno(diag, err, "cannot write %s: %s", path, strerror(err));
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

/* The file that a symbolic link leads to: a report takes its place, not the link's (/dev/stdout, where stdout is a file). The kernel
 * follows the link, so that its protection of links in /tmp holds. `path` itself where the link leads nowhere; NULL where it leads to a
 * file that has lost its name, or to one of another name space: that of another file may stand there by now. */
static const char *follow(const char *path, char to[PATH_MAX])
{
	CLEANUP(closep) int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat link, file, named;
	char self[64];
	ssize_t size;

	if (fd < 0 || fstat(fd, &file) || lstat(path, &link) || !S_ISLNK(link.st_mode))
		return path;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	size = readlink(self, to, PATH_MAX - 1);
	if (size <= 0)
		return path;
	to[size] = '\0';
	return !stat(to, &named) && named.st_dev == file.st_dev && named.st_ino == file.st_ino ? to : NULL;
}

/* Is there something at `path` to be written through: no regular file (a device, a FIFO), or one whose place nothing can take? */
static bool is_special(const char *path)
{
	char target[PATH_MAX];
	struct stat st;

	return !stat(path, &st) && (!S_ISREG(st.st_mode) || !follow(path, target));
}

/* A closed stdout is found out before the run, not after it. */
static bool can_write_to_stdout(void)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

/* Who has asked for the report: by sudo another one than we are. False: nobody else. */
static bool by_sudo(uint64_t *ret_uid, uint64_t *ret_gid)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");

	return !geteuid() && uid && gid && !number_u64(uid, UINT32_MAX - 1, ret_uid) && !number_u64(gid, UINT32_MAX - 1, ret_gid);
}

/* In a folder where everybody may put things (/tmp), somebody else's FIFO is where he waits for reports; fs.protected_fifos tells them
 * apart likewise. */
static bool is_trap(int fd, const char *path)
{
	char directory[PATH_MAX];
	struct stat fifo, folder;
	uint64_t uid = geteuid(), gid;

	if (fstat(fd, &fifo) || !S_ISFIFO(fifo.st_mode) || directory_of(path, directory, sizeof(directory)) || stat(directory, &folder))
		return false;
	(void)by_sudo(&uid, &gid);
	return (folder.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH) && fifo.st_uid != geteuid() && fifo.st_uid != uid &&
	       fifo.st_uid != folder.st_uid;
}

/* A FIFO that nobody reads is refused, not waited for. */
static int open_special(const char *path)
{
	CLEANUP(closep) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_TRUNC);

	if (fd < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK))
		return -errno;
	return is_trap(fd, path) ? -EACCES : MOVE_FD(fd);
}

int output_check(const char *path, struct diag *diag)
{
	char directory[PATH_MAX], target[PATH_MAX];
	CLEANUP(closep) int fd = -1;
	const char *name;
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
	name = follow(path, target);
	err = name ? directory_of(name, directory, sizeof(directory)) : -ESTALE;
	if (err)
		return cannot_write(diag, -err, path);
	fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EOPNOTSUPP && errno != EISDIR) /* the two: a file system without such files */
		return cannot_write(diag, errno, path);
	return access(directory, W_OK | X_OK) ? cannot_write(diag, errno, path) : 0;
}

/* A file that is on its way. */
struct output_stream {
	char path[PATH_MAX];    /* as it was given, for messages */
	char target[PATH_MAX];  /* whose place it takes; "": it is written through */
	char passing[PATH_MAX]; /* its name as long as it is not whole; "": it has none, and is gone when we are */
	int fd;
};

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

/* A report holds addresses of the kernel, and paths and command lines of all users: it is for whoever asked for it. A file of theirs keeps
 * its owner and mode; one that somebody else has put there does not. */
static int give_owner(int fd, const char *target)
{
	uint64_t uid = geteuid(), gid = getegid();
	bool is_other = by_sudo(&uid, &gid);
	struct stat st;

	if (!stat(target, &st) && (st.st_uid == uid || st.st_uid == geteuid()))
		return fchown(fd, st.st_uid, st.st_gid) || fchmod(fd, st.st_mode & 07777) ? -errno : 0;
	return is_other && fchown(fd, (uid_t)uid, (gid_t)gid) ? -errno : 0;
}

static int open_nameless(const char *target)
{
	char directory[PATH_MAX];
	int err = directory_of(target, directory, sizeof(directory)), fd;

	if (err)
		return err;
	fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* For file systems that know no nameless files (NFS, vfat): beside the target under a passing name. */
static int open_passing(struct output_stream *stream)
{
	int length = snprintf(stream->passing, sizeof(stream->passing), "%s.%d.part", stream->target, (int)getpid()), fd;

	if ((size_t)length >= sizeof(stream->passing)) {
		stream->passing[0] = '\0';
		return -ENAMETOOLONG;
	}
	unlink(stream->passing); /* an earlier process's of our number, that was killed here; or somebody's, who would read along */
	fd = open(stream->passing, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		stream->passing[0] = '\0';
	return fd < 0 ? -errno : fd;
}

/* The descriptor, or a negative errno. */
static int open_any(struct output_stream *stream, const char *path)
{
	char followed[PATH_MAX];
	const char *name;
	int fd;

	if (!strcmp(path, "-")) {
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	if (is_special(path))
		return open_special(path);
	name = follow(path, followed);
	if (!name)
		return -ESTALE; /* since it was asked */
	if ((size_t)snprintf(stream->target, sizeof(stream->target), "%s", name) >= sizeof(stream->target))
		return -ENAMETOOLONG;
	if (!stream->target[0])
		return -ENOENT;
	fd = open_nameless(stream->target);
	return fd == -EOPNOTSUPP || fd == -EISDIR ? open_passing(stream) : fd;
}

int output_stream_open(const char *path, struct diag *diag, struct output_stream **ret_stream)
{
	CLEANUP(output_stream_freep) struct output_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return cannot_write(diag, ENOMEM, path);
	stream->fd = -1;
	snprintf(stream->path, sizeof(stream->path), "%s", strcmp(path, "-") ? path : "standard output");
	stream->fd = open_any(stream, path);
	if (stream->fd < 0)
		return cannot_write(diag, -stream->fd, stream->path);
	*ret_stream = MOVE(stream);
	return 0;
}

void output_stream_free(struct output_stream *stream)
{
	if (!stream)
		return;
	if (stream->passing[0])
		unlink(stream->passing);
	closep(&stream->fd);
	free(stream);
}

int output_stream_write(struct output_stream *stream, const void *bytes, size_t size, struct diag *diag)
{
	int err = file_write(stream->fd, bytes, size);

	return err ? cannot_write(diag, -err, stream->path) : 0;
}

static int finish(struct output_stream *stream)
{
	if (stream->target[0])
		(void)give_owner(stream->fd,
				 stream->target); /* not on file systems without owners; then it stays ours, and closed to others */
	if (stream->target[0] && !stream->passing[0]) {
		int err = name_file(stream->fd, stream->target);

		if (err)
			return err;
	}
	if (close(MOVE_FD(stream->fd))) /* NFS reports a full disk here */
		return -errno;
	if (stream->passing[0]) {
		if (rename(stream->passing, stream->target))
			return -errno;
		stream->passing[0] = '\0';
	}
	return 0;
}

int output_stream_finish(struct output_stream *stream, struct diag *diag)
{
	int err = finish(stream);

	return err ? cannot_write(diag, -err, stream->path) : 0;
}
