// SPDX-License-Identifier: Apache-2.0
#include "base/cache_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buffer.h"
#include "base/suffix.h"

#define LIST_BYTES_MAX (64u << 20)

/* Creates all directories of the path. Failures show when it is opened. */
static void make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	mkdir(path, 0700);
}

static int path_of(const struct cache_dir_options *options, char *to, size_t size)
{
	const char *own = secure_getenv("SONDE_CACHE_DIR"), *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	int length;

	if (options->path)
		length = snprintf(to, size, "%s", options->path);
	else if (own && *own)
		length = snprintf(to, size, "%s/%s", own, options->folder);
	else if (!geteuid())
		length = snprintf(to, size, "/var/cache/sonde/%s", options->folder);
	else if (xdg && *xdg == '/')
		length = snprintf(to, size, "%s/sonde/%s", xdg, options->folder);
	else if (home && *home == '/')
		length = snprintf(to, size, "%s/.cache/sonde/%s", home, options->folder);
	else
		return -ENOENT;
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

struct cached_file {
	char name[NAME_MAX + 1];
	uint64_t bytes;
	int64_t used_s;
};

static int by_use(const void *a, const void *b)
{
	const struct cached_file *x = a, *y = b;

	return x->used_s < y->used_s ? -1 : x->used_s > y->used_s;
}

/* Lists the files that count, and removes passing files that are too old. Others may add and remove files meanwhile. */
static int list_files(struct cache_dir *dir, struct buffer *to)
{
	int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedirp) DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int64_t now_s = time(NULL);

	if (!stream) {
		closep(&fd);
		return -EIO;
	}
	dir->bytes = 0;
	while ((entry = readdir(stream))) {
		struct cached_file file = { 0 };
		struct stat st;

		if (fstatat(dir->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (has_suffix(entry->d_name, strlen(entry->d_name), dir->options.passing) &&
		    now_s - st.st_mtim.tv_sec > dir->options.passing_s)
			unlinkat(dir->fd, entry->d_name, 0);
		if (!has_suffix(entry->d_name, strlen(entry->d_name), dir->options.suffix))
			continue;
		snprintf(file.name, sizeof(file.name), "%s", entry->d_name);
		file.bytes = (uint64_t)st.st_size;
		file.used_s = st.st_mtim.tv_sec;
		dir->bytes += file.bytes;
		buffer_append(to, &file, sizeof(file));
	}
	return to->err;
}

/* If the files exceed max_bytes, removes the least recently used until they take three quarters of it. */
static void bound(struct cache_dir *dir)
{
	CLEANUP(buffer_done) struct buffer list = BUFFER_INIT(LIST_BYTES_MAX);
	struct cached_file *files;

	if (list_files(dir, &list) || !list.size || dir->bytes <= dir->options.max_bytes)
		return;
	files = (struct cached_file *)list.data;
	qsort(files, list.size / sizeof(*files), sizeof(*files), by_use);
	for (size_t i = 0; i < list.size / sizeof(*files) && dir->bytes > dir->options.max_bytes / 4 * 3; i++) {
		if (!unlinkat(dir->fd, files[i].name, 0))
			dir->bytes -= files[i].bytes;
	}
}

int cache_dir_open(const struct cache_dir_options *options, struct diag *diag, struct cache_dir *ret_dir)
{
	CLEANUP(closep) int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	int err = path_of(options, path, sizeof(path));

	*ret_dir = (struct cache_dir){ .options = *options, .fd = -1 };
	if (err)
		return diag_errno(diag, -err, "there is no place for a cache of %s", options->what);
	make_directories(path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return diag_errno(diag, errno, "the cache of %s %s cannot be used: %s", options->what, path, strerror(errno));
	if (st.st_uid != geteuid() || st.st_mode & (S_IRWXG | S_IRWXO))
		return diag_errno(diag, EPERM, "the cache of %s %s is not used: it must belong to this user, with mode 0700", options->what,
				  path);
	ret_dir->fd = MOVE_FD(fd);
	bound(ret_dir);
	return 0;
}

void cache_dir_close(struct cache_dir *dir)
{
	closep(&dir->fd);
	dir->fd = -1;
}

void cache_dir_grew(struct cache_dir *dir, uint64_t bytes)
{
	dir->bytes += bytes;
	if (dir->bytes > dir->options.max_bytes)
		bound(dir);
}
