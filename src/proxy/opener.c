// SPDX-License-Identifier: Apache-2.0
#include "proxy/opener.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>

#include "base/caller.h"
#include "proxy/credentials.h"
#include "proxy/debug_path.h"
#include "proxy/file_system.h"

struct job { /* one opening */
	bool is_zombie;
	int result;	   /* a descriptor or negative errno */

	struct credentials as;
	uint32_t tgid;	   /* 0: no process */
	int proc_fd;	   /* the process's directory in /proc, for its root; -1: our root */
	/* Who may own the file, beside root: the process's user or, for a debug file, the owner of the file that it describes. */
	uint32_t owner;
	bool is_debug, is_socket;
	uint64_t device;   /* of the file that a debug file describes */
	uint64_t max_bytes;
	char path[PATH_MAX];
};

static void job_free(struct job *job)
{
	if (!job)
		return;
	credentials_done(&job->as);
	closep(&job->proc_fd);
	free(job);
}

static void job_freep(struct job **job)
{
	job_free(*job);
}

static struct job *job_new(const char *path, uint64_t max_bytes)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->proc_fd = -1;
	job->max_bytes = max_bytes;
	memcpy(job->path, path, strlen(path) + 1);
	return job;
}

/* --- in the thread ------------------------------------------------------------------------------------------------------------- */

static int open_root(const struct job *job)
{
	int fd =
	    job->proc_fd < 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : openat(job->proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* May this debug file describe the file it is for? A file server can report any owner, so on a foreign file system only the device
 * counts. */
static bool is_believed(const struct job *job, int path_fd, const struct stat *st)
{
	if (file_system_kind(job->tgid, path_fd) == FILE_SYSTEM_FOREIGN)
		return job->device && st->st_dev == job->device;
	if (!st->st_uid && st->st_mode & S_IWOTH)
		return false;
	return st->st_uid == job->owner || caller_is(st->st_uid);
}

static bool is_own(const struct job *job, const struct stat *st)
{
	return (st->st_uid == job->owner || !st->st_uid) && st->st_nlink == 1;
}

static int check_file(const struct job *job, int path_fd)
{
	struct statfs fs;
	struct stat st;

	if (fstat(path_fd, &st) || fstatfs(path_fd, &fs))
		return -errno;
	if (!S_ISREG(st.st_mode) || fs.f_type == PROC_SUPER_MAGIC)
		return -ENOEXEC;
	if (job->is_debug ? !is_believed(job, path_fd, &st) : !is_own(job, &st))
		return -EPERM;
	return st.st_size < 0 || (uint64_t)st.st_size > job->max_bytes ? -EFBIG : 0;
}

/* A debug file must be ELF: whoever requests it may want to read another file. */
static bool is_wanted(const struct job *job, int fd)
{
	char magic[SELFMAG];

	return !job->is_debug || (pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) && !memcmp(magic, ELFMAG, SELFMAG));
}

static int check_socket(const struct job *job, int path_fd)
{
	struct stat st;

	if (fstat(path_fd, &st))
		return -errno;
	return !S_ISSOCK(st.st_mode) ? -ENOTSOCK : st.st_uid == job->owner ? 0 : -EPERM;
}

/* The kernel says which process called listen(2). */
static int connect_to(const struct job *job, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred listener;
	socklen_t size = sizeof(listener);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &size))
		return -errno;
	return (uint32_t)listener.pid == job->tgid ? MOVE_FD(fd) : -EPERM;
}

/* Checks the file before opening it for reading, as opening alone triggers some devices. Then opens that same inode, even if the path is
 * renamed meanwhile. */
static int open_as_stranger(struct job *job)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | (job->is_debug ? 0 : O_NOFOLLOW),
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	CLEANUP(closep) int root_fd = open_root(job);
	CLEANUP(closep) int path_fd = -1;
	CLEANUP(closep) int fd = -1;
	char self[64];
	int err;

	if (root_fd < 0)
		return root_fd;
	err = credentials_become(&job->as);
	if (err)
		return err;
	path_fd = (int)syscall(SYS_openat2, root_fd, job->path, &how, sizeof(how));
	if (path_fd < 0)
		return -errno;
	err = job->is_socket ? check_socket(job, path_fd) : check_file(job, path_fd);
	if (err)
		return err;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd); /* any thread of this process may follow it */
	if (job->is_socket)
		return connect_to(job, self);
	fd = open(self, O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	return is_wanted(job, fd) ? MOVE_FD(fd) : -ENOEXEC;
}

static void *run_job(void *arg)
{
	struct job *job = arg;

	job->result = open_as_stranger(job);
	return NULL;
}

/* --- the caller's side --------------------------------------------------------------------------------------------------------- */

/* A thread takes on the credentials, as it cannot get its own back. */
static int run(struct job *job)
{
	pthread_t thread;
	int err;

	if (credentials_pass_all(&job->as))
		return open_as_stranger(job);
	err = pthread_create(&thread, NULL, run_job, job);
	if (err)
		return -err;
	pthread_join(thread, NULL);
	return job->result;
}

/* Finds the process's directory in /proc (job->proc_fd; -1: it has ended) and its credentials. */
static int find_credentials(struct job *job, uint32_t tgid)
{
	char path[32];
	int err = -ESRCH;

	job->tgid = tgid;
	snprintf(path, sizeof(path), "/proc/%u", tgid);
	job->proc_fd = tgid ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (job->proc_fd >= 0)
		err = credentials_read(job->proc_fd, &job->as);
	if (!err && job->as.has_root)
		return 0;
	job->is_zombie = !err;
	closep(&job->proc_fd);
	job->proc_fd = -1;
	return err == -ENOMEM ? err : -ESRCH;
}

static struct job *debug_job_new(const struct debugged *of, const char *path, uint64_t max_bytes)
{
	struct job *job = job_new(path, max_bytes);

	if (!job)
		return NULL;
	job->is_debug = true;
	job->owner = of->owner;
	job->device = of->device;
	return job;
}

static int open_as_nobody(const struct debugged *of, const char *path, uint64_t max_bytes)
{
	CLEANUP(job_freep) struct job *job = debug_job_new(of, path, max_bytes);

	if (!job)
		return -ENOMEM;
	credentials_init_nobody(&job->as);
	return run(job);
}

static bool is_path(const char *path)
{
	return path[0] == '/' && strlen(path) < PATH_MAX;
}

int opener_open_debug(uint32_t tgid, const struct debugged *of, const char *path, uint64_t max_bytes)
{
	CLEANUP(job_freep) struct job *job = is_path(path) ? debug_job_new(of, path, max_bytes) : NULL;
	bool is_below_prefix = debug_path_is_below_prefix(path);
	int fd, in_ours;

	if (!job)
		return is_path(path) ? -ENOMEM : -EINVAL;
	fd = find_credentials(job, tgid);
	if (fd == -ESRCH && is_below_prefix)
		return open_as_nobody(of, path, max_bytes);
	if (!fd)
		fd = run(job);
	if (fd >= 0 || fd == -ESRCH || !is_below_prefix || credentials_see_our_files(job->proc_fd))
		return fd;
	in_ours = open_as_nobody(of, path, max_bytes);
	return in_ours >= 0 ? in_ours : fd;
}

/* Chooses owner and credentials for a process that has ended and has no root any more. */
static int become_of_the_gone(struct job *job, bool is_ours)
{
	CLEANUP(closep) int self_fd = -1;

	if (!is_ours && (strncmp(job->path, "/tmp/", 5) || strstr(job->path, "/../")))
		return -ESRCH;
	job->owner = job->is_zombie ? job->as.uid : geteuid();
	if (job->is_zombie)
		return 0;
	if (!is_ours) {
		credentials_init_nobody(&job->as);
		return 0;
	}
	self_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return self_fd < 0 ? -errno : credentials_read(self_fd, &job->as);
}

int opener_open_own(uint32_t tgid, bool is_ours, const char *path, uint64_t max_bytes)
{
	CLEANUP(job_freep) struct job *job = is_path(path) ? job_new(path, max_bytes) : NULL;
	int err;

	if (!job)
		return is_path(path) ? -ENOMEM : -EINVAL;
	err = find_credentials(job, tgid);
	if (!err)
		job->owner = job->as.uid;
	else if (err == -ESRCH)
		err = become_of_the_gone(job, is_ours);
	return err ? err : run(job);
}

int opener_connect_own(uint32_t tgid, const char *path)
{
	CLEANUP(job_freep) struct job *job = is_path(path) ? job_new(path, 0) : NULL;
	int err;

	if (!job)
		return is_path(path) ? -ENOMEM : -EINVAL;
	err = find_credentials(job, tgid);
	job->owner = job->as.uid;
	job->is_socket = true;
	return err ? err : run(job);
}
