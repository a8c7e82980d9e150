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

/* Returns the directory of a path's file. */
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

/* Returns the path of the file that a symbolic link leads to: a report replaces that file, not the link (/dev/stdout, if stdout is a file).
 * The kernel follows the link, so that its protection of links in /tmp applies. Returns `path` if it is no link or leads nowhere. NULL: the
 * file has lost its name, or is in another mount namespace; its former path may be another file's by now. */
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

/* Must `path` be written directly? True for devices and FIFOs, and for a regular file that cannot be replaced. */
static bool is_special(const char *path)
{
	char target[PATH_MAX];
	struct stat st;

	return !stat(path, &st) && (!S_ISREG(st.st_mode) || !follow(path, target));
}

/* Detects a closed stdout before the run, not after it. */
static bool can_write_to_stdout(void)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

/* If we are root by sudo, returns true, and the user and group of its caller. */
static bool by_sudo(uint64_t *ret_uid, uint64_t *ret_gid)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");

	return !geteuid() && uid && gid && !number_u64(uid, UINT32_MAX - 1, ret_uid) && !number_u64(gid, UINT32_MAX - 1, ret_gid);
}

/* Is it another user's FIFO in a sticky directory that everybody may write to (/tmp)? Its owner may be waiting for reports. The kernel's
 * fs.protected_fifos applies the same rule. */
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

/* Refuses a FIFO without a reader instead of waiting for one. */
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
	if (fd < 0 && errno != EOPNOTSUPP && errno != EISDIR) /* these two: no support for O_TMPFILE */
		return cannot_write(diag, errno, path);
	return access(directory, W_OK | X_OK) ? cannot_write(diag, errno, path) : 0;
}

/* A file being written. */
struct output_stream {
	char path[PATH_MAX];    /* as given, for messages */
	char target[PATH_MAX];  /* the file it replaces or creates; "": written directly */
	char passing[PATH_MAX]; /* its name until it is complete; "": it has none, and disappears if we end */
	int fd;
};

/* Gives the nameless file its name. If the name is taken, gives it a temporary name, then renames it over the other file. */
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
	unlink(passing); /* left by an earlier process with our id that was killed here */
	if (linkat(AT_FDCWD, self, AT_FDCWD, passing, AT_SYMLINK_FOLLOW))
		return -errno;
	if (rename(passing, path)) {
		int err = -errno;

		unlink(passing);
		return err;
	}
	return 0;
}

/* A report contains kernel addresses, and paths and command lines of all users, so only the user who requested it gets access. If it
 * replaces a file of that user or of ours, it gets that file's owner and mode; not so with another user's file. */
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

/* For file systems without nameless files (NFS, vfat): creates a file beside the target under a temporary name. */
static int open_passing(struct output_stream *stream)
{
	int length = snprintf(stream->passing, sizeof(stream->passing), "%s.%d.part", stream->target, (int)getpid()), fd;

	if ((size_t)length >= sizeof(stream->passing)) {
		stream->passing[0] = '\0';
		return -ENAMETOOLONG;
	}
	unlink(stream->passing); /* left by a killed process with our id; or created by another user to read our report */
	fd = open(stream->passing, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		stream->passing[0] = '\0';
	return fd < 0 ? -errno : fd;
}

/* Returns the descriptor, or a negative errno. */
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
		return -ESTALE; /* changed since is_special */
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
				 stream->target); /* fails on file systems without owners: the file stays ours, with mode 0600 */
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
