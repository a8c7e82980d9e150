// SPDX-License-Identifier: Apache-2.0
#include "debuginfod/debug_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cache_dir.h"
#include "base/hash.h"
#include "debuginfod/fetch_message.h"

#define MIN_ID_CHARS 16u
#define SUFFIX	     ".debug"
#define MISSING	     ".missing"
#define CLOCKS_S     60 /* a file's time may be ahead of time(2), by a tick or by a file server's clock */
#define NAME_BYTES   (FETCH_ID_CHARS + 40)

struct debug_cache {
	struct cache_dir dir;
	uint64_t servers;   /* a hash of their URLs */
	uint32_t nr_made;   /* for temporary names */
};

bool debug_cache_is_build_id(const char *text)
{
	size_t length = strlen(text);

	return length >= MIN_ID_CHARS && length <= FETCH_ID_CHARS && length % 2 == 0 && strspn(text, "0123456789abcdef") == length;
}

int debug_cache_open(const char *path, const char *servers, uint64_t max_bytes, struct diag *diag, struct debug_cache **ret_cache)
{
	const struct cache_dir_options options = { .path = path,
						   .folder = "debuginfo",
						   .what = "debug files",
						   .suffix = SUFFIX,
						   .passing = MISSING,
						   .passing_s = DEBUG_CACHE_MISSING_S,
						   .max_bytes = max_bytes };
	CLEANUP(debug_cache_freep) struct debug_cache *cache = calloc(1, sizeof(*cache));
	int err = cache ? cache_dir_open(&options, diag, &cache->dir) : -ENOMEM;

	if (err)
		return err;
	cache->servers = hash_stable(servers, strlen(servers), 0);
	*ret_cache = MOVE(cache);
	return 0;
}

void debug_cache_free(struct debug_cache *cache)
{
	if (!cache)
		return;
	cache_dir_close(&cache->dir);
	free(cache);
}

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
	if (fstatat(cache->dir.fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	age_s = time(NULL) - st.st_mtim.tv_sec;
	return age_s >= -CLOCKS_S && age_s <= DEBUG_CACHE_MISSING_S; /* a clock that was set back must not keep it missing for ever */
}

int debug_cache_find(struct debug_cache *cache, const char *build_id)
{
	CLEANUP(closep) int fd = -1;
	char name[NAME_BYTES];
	struct stat st;

	name_of(build_id, name);
	fd = openat(cache->dir.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return is_missing(cache, build_id) ? -ENODATA : -ENOENT;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENOENT;
	futimens(fd, NULL); /* marks it as just used */
	return MOVE_FD(fd);
}

int debug_cache_create(struct debug_cache *cache)
{
	int fd = openat(cache->dir.fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char name[NAME_BYTES];

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return fd < 0 ? -errno : fd;
	/* A file system without O_TMPFILE: the file serves this run, and cannot be linked under a name later. */
	snprintf(name, sizeof(name), "%" PRIu32 ".%" PRIu32 ".new", (uint32_t)getpid(), cache->nr_made++);
	fd = openat(cache->dir.fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	unlinkat(cache->dir.fd, name, 0);
	return fd;
}

void debug_cache_keep(struct debug_cache *cache, const char *build_id, int fd)
{
	char self[64], name[NAME_BYTES];
	struct stat st;

	name_of(build_id, name);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) || linkat(AT_FDCWD, self, cache->dir.fd, name, AT_SYMLINK_FOLLOW)) /* an existing file serves as well */
		return;
	cache_dir_grew(&cache->dir, (uint64_t)st.st_size);
}

void debug_cache_refuse(struct debug_cache *cache, const char *build_id)
{
	CLEANUP(closep) int fd = -1;
	char name[NAME_BYTES];

	name_of(build_id, name);
	unlinkat(cache->dir.fd, name, 0);
	missing_name(cache, build_id, name);
	fd = openat(cache->dir.fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd >= 0)
		futimens(fd, NULL);
}
