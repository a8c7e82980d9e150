// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/number.h"
#include "base/u64_map.h"

#define MAX_CGROUPS (1u << 20)
#define KTHREADD 2

struct mount {
	char point[PATH_MAX];
	uint32_t level; /* of the cgroup at that point */
};

/* Depth below the root cgroup of a path as in /proc/PID/cgroup; each leading ".." is one step up. */
static int depth_of(const char *path)
{
	int depth = 0;

	while (*path) {
		size_t length = strcspn(path, "/\n");

		if (length)
			depth += length == 2 && !strncmp(path, "..", 2) ? -1 : 1;
		path += length + (path[length] != '\0');
		if (length && path[-1] == '\n')
			break;
	}
	return depth;
}

/* In a cgroup namespace, paths begin at the namespace's root. kthreadd never leaves the real root, so its path as seen from here gives the
 * depth of ours. -EXDEV: kthreadd is not visible. */
static int namespace_level(uint32_t *ret_level)
{
	char path[32], line[PATH_MAX];
	CLEANUP(fclosep) FILE *file = NULL;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", KTHREADD);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		int depth = depth_of(line + 3);

		if (!strncmp(line, "0::", 3) && depth <= 0) {
			*ret_level = (uint32_t)-depth;
			return 0;
		}
	}
	return -EXDEV;
}

/* Replaces octal escapes such as \040 by their characters. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] && text[3]) {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/* Parses a line of /proc/self/mountinfo. Returns its root and mount point if it is cgroup v2. */
static bool parse_mount(char *line, char **ret_root, char **ret_point)
{
	char *fields[5], *rest = line, *kind = strstr(line, " - ");

	if (!kind || strncmp(kind, " - cgroup2 ", 11))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		fields[i] = strsep(&rest, " ");
	if (!rest)
		return false;
	unescape(fields[3]);
	unescape(fields[4]);
	*ret_root = fields[3];
	*ret_point = fields[4];
	return true;
}

/* Finds the cgroup v2 mount that shows most of the tree or, with a path, the one that contains the path. -ENOENT: there is none; -EXDEV:
 * found, but its depth is not known. */
static int find_mount(const char *path, struct mount *ret_mount)
{
	CLEANUP(fclosep) FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[3 * PATH_MAX], *root, *point;
	bool found = false;
	uint32_t base = 0;
	int err = file ? namespace_level(&base) : -errno;

	if (!file)
		return err;
	while (fgets(line, sizeof(line), file)) {
		int depth;
		size_t length;

		if (!parse_mount(line, &root, &point))
			continue;
		depth = (int)base + depth_of(root);
		length = strlen(point);
		if (depth < 0 || length >= sizeof(ret_mount->point))
			continue;
		if (path && (strncmp(path, point, length) != 0 || (path[length] && path[length] != '/')))
			continue;
		if (found && (path ? length < strlen(ret_mount->point) : (uint32_t)depth >= ret_mount->level))
			continue;
		memcpy(ret_mount->point, point, length + 1);
		ret_mount->level = (uint32_t)depth;
		found = true;
	}
	return found ? err : -ENOENT;
}

/* Calls fn for `path` and each cgroup below it, until fn returns something other than 0. */
typedef int (*cgroup_fn)(void *arg, const char *path, const struct cgroup *cgroup);
static int each_below(struct buffer *path, const struct cgroup *cgroup, cgroup_fn fn, void *arg)
{
	CLEANUP(closedirp) DIR *dir = NULL;
	const size_t size = path->size;
	const struct dirent *entry;
	int err = path->err ?: fn(arg, path->data, cgroup);

	if (!err)
		dir = opendir(path->data); /* fails if it was removed meanwhile */
	while (!err && dir && (entry = readdir(dir))) {
		const struct cgroup below = { .id = entry->d_ino, .level = cgroup->level + 1 };

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.') /* no cgroup's name begins with a dot */
			continue;
		buffer_printf(path, "/%s", entry->d_name);
		err = each_below(path, &below, fn, arg);
		path->size = size;
		path->data[size] = '\0';
	}
	return err;
}

static int each_cgroup(const struct mount *mount, cgroup_fn fn, void *arg)
{
	struct buffer path = BUFFER_INIT(1 << 20);
	struct stat st;
	int err;

	if (stat(mount->point, &st))
		return -errno;
	buffer_text(&path, mount->point);
	err = each_below(&path, &(struct cgroup){ .id = st.st_ino, .level = mount->level }, fn, arg);
	buffer_done(&path);
	return err;
}

/* Opens a cgroup's directory. -ENOENT: there is none; -ENOTDIR: a file; -EXDEV: cgroup version 1. */
static int open_directory(const char *path, int *ret_fd)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs))
		return -errno;
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return fs.f_type == CGROUP_SUPER_MAGIC ? -EXDEV : -ENOENT;
	*ret_fd = MOVE_FD(fd);
	return 0;
}

struct wanted {
	uint64_t id;
	int fd;
};

static int take_id(void *arg, const char *path, const struct cgroup *cgroup)
{
	struct wanted *wanted = arg;

	return cgroup->id != wanted->id ? 0 : open_directory(path, &wanted->fd) ?: 1;
}

static int open_by_id(uint64_t id, const struct mount *mount, struct diag *diag, int *ret_fd)
{
	struct wanted wanted = { .id = id };
	int found = each_cgroup(mount, take_id, &wanted);

	if (found < 0)
		return diag_errno(diag, -found, "the cgroup with the id %" PRIu64 " cannot be opened: %s", id, strerror(-found));
	if (!found)
		return diag_errno(diag, ENOENT,
				  "there is no cgroup with the id %" PRIu64
				  " ('ls -id %.100s/*' shows ids; a name of digits alone is written /%" PRIu64 ")",
				  id, mount->point, id);
	*ret_fd = wanted.fd;
	return 0;
}

/* Opens a cgroup by its path, with or without the mount point. */
static int open_by_path(const char *text, const struct mount *mount, struct diag *diag, int *ret_fd)
{
	char joined[2 * PATH_MAX];
	int err = *text == '/' ? open_directory(text, ret_fd) : -ENOENT, below = err;

	if (err) {
		snprintf(joined, sizeof(joined), "%s/%s", mount->point, text);
		below = open_directory(joined, ret_fd);
	}
	if (!below)
		return 0;
	if (below != -ENOENT)
		err = below;
	switch (err) {
	case -EXDEV:
		return diag_errno(diag, EINVAL, "'%.200s' is a cgroup of version 1: those of version 2 are below %.100s", text,
				  mount->point);
	case -ENOTDIR:
		return diag_errno(diag, EINVAL, "'%.200s' is a file: a cgroup is a directory", text);
	case -ENOENT:
		return diag_errno(diag, ENOENT,
				  "there is no cgroup '%.200s': give a path below %.100s, as /proc/PID/cgroup shows it, or an id",
				  text, mount->point);
	default:
		return diag_errno(diag, -err, "cannot open the cgroup '%.200s': %s", text, strerror(-err));
	}
}

int cgroup_open(const char *text, struct diag *diag, int *ret_fd)
{
	struct mount mount;
	uint64_t id;
	int err;

	if (!*text || strlen(text) >= PATH_MAX)
		return diag_errno(diag, EINVAL, "a cgroup is given by its path or its id");
	err = find_mount(NULL, &mount);
	if (err && err != -ENOENT && err != -EXDEV)
		return diag_errno(diag, -err, "cannot read /proc/self/mountinfo: %s", strerror(-err));
	if (err == -ENOENT)
		return diag_errno(diag, EOPNOTSUPP,
				  "cgroup version 2 is not mounted here: mount -t cgroup2 none DIRECTORY, then it is found");
	return number_u64(text, UINT64_MAX, &id) ? open_by_path(text, &mount, diag, ret_fd) : open_by_id(id, &mount, diag, ret_fd);
}

int cgroup_find(const char *text, struct diag *diag, struct cgroup *ret_cgroup)
{
	CLEANUP(closep) int fd = -1;
	char self[32], path[PATH_MAX];
	struct mount mount;
	struct stat st;
	ssize_t length;
	int err = cgroup_open(text, diag, &fd);

	if (err)
		return err;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	length = readlink(self, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	err = find_mount(path, &mount);
	if (err == -EXDEV)
		return diag_errno(
		    diag, EXDEV,
		    "a container cannot see where a cgroup is in the whole tree: run sonde in the host's pid namespace");
	if (err || fstat(fd, &st))
		return diag_errno(diag, ENOENT, "the cgroup '%.200s' has just been removed", text);
	ret_cgroup->id = st.st_ino;
	ret_cgroup->level = mount.level + (uint32_t)depth_of(path + strlen(mount.point));
	return 0;
}

struct cgroup_paths {
	struct mount mount;
	struct u64_map by_id; /* -> index in `paths` */
	char **paths;
	uint32_t nr, max;
};

struct cgroup_paths *cgroup_paths_new(void)
{
	return calloc(1, sizeof(struct cgroup_paths));
}

void cgroup_paths_free(struct cgroup_paths *paths)
{
	if (!paths)
		return;
	for (uint32_t i = 0; i < paths->nr; i++)
		free(paths->paths[i]);
	free(paths->paths);
	u64_map_done(&paths->by_id);
	free(paths);
}

static int add_path(void *arg, const char *path, const struct cgroup *cgroup)
{
	struct cgroup_paths *paths = arg;
	const char *below = path + strlen(paths->mount.point);
	const uint32_t *known = u64_map_find(&paths->by_id, cgroup->id);
	char *copy = strdup(*below ? below : "/");

	if (!copy)
		return -ENOMEM;
	if (known) { /* it may have been renamed */
		free(paths->paths[*known]);
		paths->paths[*known] = copy;
		return 0;
	}
	if (!array_grow(&paths->paths, paths->nr, &paths->max, sizeof(*paths->paths), 64, MAX_CGROUPS) ||
	    u64_map_add(&paths->by_id, cgroup->id, paths->nr)) {
		free(copy);
		return -ENOMEM;
	}
	paths->paths[paths->nr++] = copy;
	return 0;
}

int cgroup_paths_read(struct cgroup_paths *paths)
{
	int err = find_mount(NULL, &paths->mount);

	if (err && err != -EXDEV) /* the depth does not matter for paths below the mount point */
		return 0;
	err = each_cgroup(&paths->mount, add_path, paths);
	return err == -ENOMEM ? err : 0;
}

const char *cgroup_paths_find(const struct cgroup_paths *paths, uint64_t id)
{
	const uint32_t *index = u64_map_find(&paths->by_id, id);

	return index ? paths->paths[*index] : NULL;
}
