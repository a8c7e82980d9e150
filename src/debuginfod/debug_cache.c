// SPDX-License-Identifier: Apache-2.0
#include "debuginfod/debug_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buffer.h"
#include "base/u64_map.h"
#include "debuginfod/fetch_message.h"

#define MIN_ID_CHARS 16u
#define SUFFIX	     ".debug"
#define MISSING	     ".missing"
#define CLOCKS_S     60 /* a file's time may be ahead of time(2): by a tick, or a file server's clock */
#define NAME_BYTES   (FETCH_ID_CHARS + 40)

struct debug_cache {
	int dir_fd;
	uint64_t bytes;     /* of the files in it, as far as is known */
	uint64_t max_bytes;
	uint64_t servers;   /* a hash of their URLs */
	uint32_t nr_made;   /* for passing names */
};

bool debug_cache_is_build_id(const char *text)
{
	size_t length = strlen(text);

	return length >= MIN_ID_CHARS && length <= FETCH_ID_CHARS && length % 2 == 0 && strspn(text, "0123456789abcdef") == length;
}

/* --- the directory --------------------------------------------------------------------------------------------------------------------- */

/* Makes all directories of the path. Failures show when it is opened. */
static void make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	mkdir(path, 0700);
}

static int default_path(char *to, size_t size)
{
	const char *own = secure_getenv("SONDE_CACHE_DIR"), *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	int length;

	if (own && *own)
		length = snprintf(to, size, "%s/debuginfo", own);
	else if (!geteuid())
		length = snprintf(to, size, "/var/cache/sonde/debuginfo");
	else if (xdg && *xdg == '/')
		length = snprintf(to, size, "%s/sonde/debuginfo", xdg);
	else if (home && *home == '/')
		length = snprintf(to, size, "%s/.cache/sonde/debuginfo", home);
	else
		return -ENOENT;
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

struct cached_file {
	char name[NAME_BYTES];
	uint64_t bytes;
	int64_t used_s;
};

static int by_use(const void *a, const void *b)
{
	const struct cached_file *x = a, *y = b;

	return x->used_s < y->used_s ? -1 : x->used_s > y->used_s;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), suffix_length = strlen(suffix);

	return length > suffix_length && !strcmp(name + length - suffix_length, suffix);
}

/* Takes down what is there, and removes what is missing no longer. Others may come and go meanwhile. */
static int list_files(struct debug_cache *cache, struct buffer *to)
{
	int fd = openat(cache->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int64_t now_s = time(NULL);

	if (!dir) {
		closep(&fd);
		return -EIO;
	}
	cache->bytes = 0;
	while ((entry = readdir(dir))) {
		struct cached_file file = { 0 };
		struct stat st;

		if (fstatat(cache->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (has_suffix(entry->d_name, MISSING) && now_s - st.st_mtim.tv_sec > DEBUG_CACHE_MISSING_S)
			unlinkat(cache->dir_fd, entry->d_name, 0);
		if (!has_suffix(entry->d_name, SUFFIX) || strlen(entry->d_name) >= sizeof(file.name))
			continue;
		memcpy(file.name, entry->d_name, strlen(entry->d_name));
		file.bytes = (uint64_t)st.st_size;
		file.used_s = st.st_mtim.tv_sec;
		cache->bytes += file.bytes;
		buffer_append(to, &file, sizeof(file));
	}
	return to->err;
}

/* Removes the files that were not used longest until there is room for a quarter of max_bytes. */
static void bound(struct debug_cache *cache)
{
	CLEANUP(buffer_done) struct buffer list = BUFFER_INIT(64u << 20);
	struct cached_file *files;

	if (cache->bytes <= cache->max_bytes || list_files(cache, &list) || !list.size)
		return;
	files = (struct cached_file *)list.data;
	qsort(files, list.size / sizeof(*files), sizeof(*files), by_use);
	for (size_t i = 0; i < list.size / sizeof(*files) && cache->bytes > cache->max_bytes / 4 * 3; i++) {
		if (!unlinkat(cache->dir_fd, files[i].name, 0))
			cache->bytes -= files[i].bytes;
	}
}

int debug_cache_open(const char *path, const char *servers, uint64_t max_bytes, struct diag *diag, struct debug_cache **ret_cache)
{
	CLEANUP(debug_cache_freep) struct debug_cache *cache = calloc(1, sizeof(*cache));
	CLEANUP(buffer_done) struct buffer list = BUFFER_INIT(64u << 20);
	char at[4096];
	struct stat st;
	int err = path ? (snprintf(at, sizeof(at), "%s", path) < (int)sizeof(at) ? 0 : -ENAMETOOLONG) : default_path(at, sizeof(at));

	if (!cache)
		return -ENOMEM;
	cache->dir_fd = -1;
	cache->max_bytes = max_bytes;
	cache->servers = hash_bytes(servers, strlen(servers), 0);
	if (err)
		return diag_errno(diag, -err, "there is no place for a cache of debug files");
	make_directories(at);
	cache->dir_fd = open(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cache->dir_fd < 0 || fstat(cache->dir_fd, &st))
		return diag_errno(diag, errno, "the cache of debug files %s cannot be used: %s", at, strerror(errno));
	if (st.st_uid != geteuid() || st.st_mode & (S_IRWXG | S_IRWXO))
		return diag_errno(diag, EPERM, "the cache of debug files %s is not used: it is not ours alone (mode 0700)", at);
	if (!list_files(cache, &list)) /* how many bytes there are */
		bound(cache);
	*ret_cache = MOVE(cache);
	return 0;
}

void debug_cache_free(struct debug_cache *cache)
{
	if (!cache)
		return;
	closep(&cache->dir_fd);
	free(cache);
}

/* --- files ----------------------------------------------------------------------------------------------------------------------------- */

static void name_of(const char *build_id, char to[NAME_BYTES])
{
	snprintf(to, NAME_BYTES, "%s" SUFFIX, build_id);
}

static void missing_name(const struct debug_cache *cache, const char *build_id, char to[NAME_BYTES])
{
	snprintf(to, NAME_BYTES, "%s.%016" PRIx64 MISSING, build_id, cache->servers);
}

static bool is_missing(const struct debug_cache *cache, const char *build_id)
{
	char name[NAME_BYTES];
	struct stat st;
	int64_t age_s;

	missing_name(cache, build_id, name);
	if (fstatat(cache->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	age_s = time(NULL) - st.st_mtim.tv_sec;
	return age_s >= -CLOCKS_S && age_s <= DEBUG_CACHE_MISSING_S; /* a clock that was set back is no reason never to ask again */
}

int debug_cache_find(struct debug_cache *cache, const char *build_id)
{
	CLEANUP(closep) int fd = -1;
	char name[NAME_BYTES];
	struct stat st;

	name_of(build_id, name);
	fd = openat(cache->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return is_missing(cache, build_id) ? -ENODATA : -ENOENT;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENOENT;
	futimens(fd, NULL); /* it was used now */
	return MOVE_FD(fd);
}

int debug_cache_create(struct debug_cache *cache)
{
	int fd = openat(cache->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char name[NAME_BYTES];

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return fd < 0 ? -errno : fd;
	/* A file system without such files: it serves this run, and cannot be given a name later. */
	snprintf(name, sizeof(name), "%" PRIu32 ".%" PRIu32 ".new", (uint32_t)getpid(), cache->nr_made++);
	fd = openat(cache->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	unlinkat(cache->dir_fd, name, 0);
	return fd;
}

void debug_cache_keep(struct debug_cache *cache, const char *build_id, int fd)
{
	char self[64], name[NAME_BYTES];
	struct stat st;

	name_of(build_id, name);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) || linkat(AT_FDCWD, self, cache->dir_fd, name, AT_SYMLINK_FOLLOW)) /* one that is there already is as good */
		return;
	cache->bytes += (uint64_t)st.st_size;
	bound(cache);
}

void debug_cache_refuse(struct debug_cache *cache, const char *build_id)
{
	CLEANUP(closep) int fd = -1;
	char name[NAME_BYTES];

	name_of(build_id, name);
	unlinkat(cache->dir_fd, name, 0);
	missing_name(cache, build_id, name);
	fd = openat(cache->dir_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd >= 0)
		futimens(fd, NULL);
}
