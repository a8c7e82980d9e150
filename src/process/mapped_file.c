// SPDX-License-Identifier: Apache-2.0
/* Without asking the file system: a descriptor of O_PATH by a link of procfs, what the kernel has in its caches (RESOLVE_CACHED, AT_STATX_DONT_SYNC), and
 * closing a descriptor of O_PATH. */
#include "process/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/local_fs.h"
#include "process/patience.h"

#define COMPARED_BYTES 65536

/* What runs in a thread, and what it gives. */
struct job {
	int fd, other_fd; /* given to it, or -1 */
	char *path;
	uint64_t size;
	int result; /* a descriptor, yes or no, or a negative errno */
	struct elf_file *elf;
};

void mapped_files_done(struct mapped_files *files)
{
	u64_map_done(&files->answering);
}

static void job_free(struct job *job)
{
	if (!job)
		return;
	closep(&job->fd);
	closep(&job->other_fd);
	elf_file_free(job->elf);
	free(job->path);
	free(job);
}

static void job_freep(struct job **job)
{
	job_free(*job);
}

static void lose_job(void *arg)
{
	job_free(arg);
}

/* Takes over the descriptor. NULL: no memory. */
static struct job *job_new(int fd)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job) {
		closep(&fd);
		return NULL;
	}
	job->fd = fd;
	job->other_fd = -1;
	return job;
}

static bool is_hanging(const struct mapped_files *files, uint64_t device)
{
	for (uint32_t i = 0; i < files->nr_hanging; i++) {
		if (files->hanging[i] == device)
			return true;
	}
	return files->nr_hanging == MAPPED_FILE_MAX_HANGING && !u64_map_find(&files->answering, device);
}

/* When it is given up, *job is gone. */
static int run(void (*fn)(void *arg), struct job **job)
{
	int err = patience_run(fn, lose_job, *job, MAPPED_FILE_DEADLINE_MS);

	if (err == -ETIMEDOUT)
		*job = NULL;
	return err;
}

/* --- finding --------------------------------------------------------------------------------------------------------------------------- */

static int open_path(int root_fd, const char *path, uint64_t resolve)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = resolve | (root_fd == AT_FDCWD ? 0 : RESOLVE_IN_ROOT) };
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static void open_path_job(void *arg)
{
	struct job *job = arg;

	job->other_fd = open_path(job->fd < 0 ? AT_FDCWD : job->fd, job->path, 0);
	job->result = job->other_fd < 0 ? job->other_fd : 0;
}

/* In the root, which is taken over; ours when it is -1. */
static int find_path(struct mapped_files *files, int root_fd, const char *path)
{
	int fd = open_path(root_fd < 0 ? AT_FDCWD : root_fd, path, RESOLVE_CACHED);
	CLEANUP(job_freep) struct job *job = NULL;
	int err;

	if (fd != -EAGAIN && fd != -EINVAL) { /* before Linux 5.12 it does not know the cache */
		closep(&root_fd);
		return fd;
	}
	job = job_new(root_fd);
	if (!job || !(job->path = strdup(path)))
		return -ENOMEM;
	if (files->nr_hung_paths == MAPPED_FILE_MAX_TRIES)
		return -EBUSY;
	err = run(open_path_job, &job);
	files->nr_hung_paths += err == -ETIMEDOUT;
	if (err || job->result)
		return err ? err : job->result;
	return MOVE_FD(job->other_fd);
}

static int look(int fd, struct statx *ret_status)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, ret_status) ? -errno : 0;
}

/* Only the file with this inode will do, unless it is 0. Takes over the descriptor, or the errno that is there instead. */
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

/* Does the mapping still show what the event told of? The address may have been used again since. The inode need not agree: file systems on top of others
 * have two for one file, but then the name does. */
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

int mapped_file_locate(struct mapped_files *files, uint32_t tgid, uint64_t start_pc, uint64_t end_pc, uint64_t inode, const char *path)
{
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
	fd = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = fd < 0 ? -errno : with_inode(find_path(files, fd, path), inode);
	return fd >= 0 ? fd : with_inode(find_path(files, -1, path), inode);
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
		.changed_s = status.stx_mtime.tv_sec,
		.changed_ns = status.stx_mtime.tv_nsec,
	};
	return 0;
}

int mapped_file_find(struct mapped_files *files, const char *path, const struct file_identity *identity)
{
	CLEANUP(closep) int fd = with_inode(find_path(files, -1, path), identity ? identity->inode : 0);
	struct file_identity found;

	if (fd < 0 || !identity)
		return MOVE_FD(fd);
	return mapped_file_identify(fd, &found) || memcmp(&found, identity, sizeof(found)) ? -ENOENT : MOVE_FD(fd);
}

/* --- opening and reading --------------------------------------------------------------------------------------------------------------- */

static void open_job(void *arg)
{
	struct job *job = arg;
	char at[64];

	snprintf(at, sizeof(at), "/proc/self/fd/%d", job->fd);
	job->other_fd = open(at, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	job->result = job->other_fd < 0 ? -errno : elf_file_open_fd(job->other_fd, NULL, &job->elf);
	if (!job->result && !local_fs_has(job->other_fd)) /* may wait, too */
		elf_file_disown(job->elf);
	if (!job->result)
		job->other_fd = -1; /* it is the ELF file's now */
	closep(&job->other_fd);
	job->other_fd = -1;
}

int mapped_file_open(struct mapped_files *files, int path_fd, uint64_t device, struct elf_file **ret_elf)
{
	CLEANUP(job_freep) struct job *job = job_new(path_fd);
	int err;

	if (!job)
		return -ENOMEM;
	if (is_hanging(files, device))
		return -EBUSY;
	err = run(open_job, &job);
	if (err == -ETIMEDOUT && files->nr_hanging < MAPPED_FILE_MAX_HANGING)
		files->hanging[files->nr_hanging++] = device;
	if (!err && !u64_map_find(&files->answering, device))
		err = u64_map_add(&files->answering, device, 1);
	if (!err)
		err = job->result;
	if (!err)
		*ret_elf = MOVE(job->elf);
	return err;
}

static bool read_whole(int fd, uint64_t off, char *to, size_t size)
{
	return pread(fd, to, size, (off_t)off) == (ssize_t)size;
}

static void compare_job(void *arg)
{
	struct job *job = arg;
	CLEANUP(freep) char *parts = malloc(2 * (size_t)COMPARED_BYTES);

	job->result = parts != NULL;
	for (uint64_t off = 0; off < job->size && job->result; off += COMPARED_BYTES) {
		size_t nr = job->size - off < COMPARED_BYTES ? (size_t)(job->size - off) : COMPARED_BYTES;

		job->result = read_whole(job->fd, off, parts, nr) && read_whole(job->other_fd, off, parts + COMPARED_BYTES, nr) &&
			      !memcmp(parts, parts + COMPARED_BYTES, nr);
	}
	closep(&job->fd); /* here, as that may wait, too */
	closep(&job->other_fd);
	job->fd = job->other_fd = -1;
}

bool mapped_file_is_same(struct mapped_files *files, const struct elf_file *a, uint64_t device_a, const struct elf_file *b, uint64_t device_b)
{
	CLEANUP(job_freep) struct job *job = NULL;
	int err;

	if (files->nr_hung_comparisons == MAPPED_FILE_MAX_TRIES || is_hanging(files, device_a) || is_hanging(files, device_b))
		return false;
	job = job_new(fcntl(elf_file_fd(a), F_DUPFD_CLOEXEC, 0));
	if (!job)
		return false;
	job->other_fd = fcntl(elf_file_fd(b), F_DUPFD_CLOEXEC, 0);
	job->size = elf_file_size(a);
	if (job->fd < 0 || job->other_fd < 0)
		return false;
	err = run(compare_job, &job);
	files->nr_hung_comparisons += err == -ETIMEDOUT;
	return !err && job->result;
}
