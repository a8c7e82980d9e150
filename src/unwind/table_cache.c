// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cache_dir.h"
#include "base/file.h"
#include "base/hash.h"
#include "unwind/table_image.h"

#define MIN_ROWS 2500               /* for fewer rows compiling takes less time than opening a file */
#define MIN_AGE_S 2                 /* a file that has just changed may change again within the resolution of its times */
#define TEMPORARY_AGE_S 3600        /* age of files that an interrupted writer left behind */
#define MIN_BUILD_ID_BYTES 8
#define SUFFIX ".table"
#define TEMPORARY ".new"
#define NAME_BYTES (2 * BUILD_ID_MAX + 64)
#define INTERPRETER ".interpreter" /* symbolic links to them */

struct table_cache {
	struct cache_dir dir;
	uint32_t nr_written; /* for the names of temporary files */
};

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

int table_cache_open(const char *path, uint64_t max_bytes, struct diag *diag, struct table_cache **ret_cache)
{
	const struct cache_dir_options options = { .path = path,
						   .folder = "unwind",
						   .what = "unwind tables",
						   .suffix = SUFFIX,
						   .passing = TEMPORARY,
						   .passing_s = TEMPORARY_AGE_S,
						   .max_bytes = max_bytes };
	CLEANUP(table_cache_freep) struct table_cache *cache = calloc(1, sizeof(*cache));
	int err = cache ? cache_dir_open(&options, diag, &cache->dir) : -ENOMEM;

	if (!err)
		*ret_cache = MOVE(cache);
	return err;
}

void table_cache_free(struct table_cache *cache)
{
	if (!cache)
		return;
	cache_dir_close(&cache->dir);
	free(cache);
}

/* --- which files ---------------------------------------------------------------------------------------------------------------------- */

static bool key_of(const struct elf_file *elf, const char *path, struct table_key *key)
{
	const struct build_id *id = elf_file_build_id(elf);
	int fd = elf_file_fd(elf);
	struct stat st, here;

	if (fd < 0 || elf_file_owner(elf) || id->size < MIN_BUILD_ID_BYTES || fstat(fd, &st) || st.st_uid != 0 ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return false;
	if (path[0] != '/' || stat(path, &here) || here.st_dev != st.st_dev || here.st_ino != st.st_ino)
		return false;
	if (time(NULL) - st.st_ctim.tv_sec < MIN_AGE_S)
		return false;
	*key = (struct table_key){ .device = st.st_dev, .inode = st.st_ino, .size = (uint64_t)st.st_size, .modified_s = st.st_mtim.tv_sec,
				   .modified_ns = st.st_mtim.tv_nsec, .changed_s = st.st_ctim.tv_sec, .changed_ns = st.st_ctim.tv_nsec };
	key->build_id.size = id->size;
	memcpy(key->build_id.bytes, id->bytes, id->size);
	return true;
}

static void name_of(const struct table_key *key, char *to, size_t size)
{
	char id[2 * BUILD_ID_MAX + 1];

	build_id_text(&key->build_id, id);
	snprintf(to, size, "%s.%016" PRIx64 SUFFIX, id, hash_stable(key, sizeof(*key), 0));
}

/* --- reading and writing -------------------------------------------------------------------------------------------------------------- */

static void *read_whole(int fd, size_t size)
{
	CLEANUP(freep) char *bytes = malloc(size);

	for (size_t off = 0; bytes && off < size;) {
		ssize_t nr = pread(fd, bytes + off, size - off, (off_t)off);

		if (nr <= 0)
			return NULL;
		off += (size_t)nr;
	}
	return MOVE(bytes);
}

int table_cache_load(struct table_cache *cache, const struct elf_file *elf, const char *path, struct rule_table *rules,
		     struct unwind_table **ret_table)
{
	CLEANUP(freep) void *bytes = NULL;
	CLEANUP(closep) int fd = -1;
	char name[NAME_BYTES];
	struct table_key key;
	struct stat st;
	int err;

	if (!key_of(elf, path, &key))
		return -ENOENT;
	name_of(&key, name, sizeof(name));
	fd = openat(cache->dir.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_ours(&st) || st.st_size <= 0 || st.st_size > TABLE_IMAGE_BYTES_MAX)
		return -ENOENT;
	bytes = read_whole(fd, (size_t)st.st_size);
	err = bytes ? table_image_read(bytes, (size_t)st.st_size, &key, rules, elf_file_owner(elf), ret_table) : -EIO;
	if (!err)
		futimens(fd, NULL); /* marks it as used now */
	return err == -ENOMEM || err == -EXFULL || !err ? err : -ENOENT;
}

void table_cache_keep(struct table_cache *cache, const struct elf_file *elf, const char *path, const struct rule_table *rules,
		      const struct unwind_table *table)
{
	struct buffer image = BUFFER_INIT(TABLE_IMAGE_BYTES_MAX);
	CLEANUP(closep) int fd = -1;
	char name[NAME_BYTES], temporary[64];
	struct table_key key;

	if (table->nr_rows < MIN_ROWS || !key_of(elf, path, &key) || table_image_make(table, rules, &key, &image)) {
		buffer_done(&image);
		return;
	}
	name_of(&key, name, sizeof(name));
	snprintf(temporary, sizeof(temporary), "%" PRIu32 ".%" PRIu32 TEMPORARY, (uint32_t)getpid(), cache->nr_written++);
	fd = openat(cache->dir.fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && (file_write(fd, image.data, image.size) || renameat(cache->dir.fd, temporary, cache->dir.fd, name)))
		unlinkat(cache->dir.fd, temporary, 0);
	else if (fd >= 0)
		cache_dir_grew(&cache->dir, image.size);
	buffer_done(&image);
}

/* --- interpreters --------------------------------------------------------------------------------------------------------------------- */

struct link {
	char name[64];
	struct timespec noted;
};

static bool is_older(const struct link *a, const struct link *b)
{
	return a->noted.tv_sec != b->noted.tv_sec ? a->noted.tv_sec < b->noted.tv_sec : a->noted.tv_nsec < b->noted.tv_nsec;
}

/* The most recently noted links, in no order. Removes older ones. */
static uint32_t list_links(const struct table_cache *cache, struct link *links)
{
	int fd = openat(cache->dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedirp) DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	uint32_t nr = 0;

	if (!stream)
		closep(&fd);
	while (stream && (entry = readdir(stream))) {
		struct link link, *oldest = links;
		struct stat st;

		if (!strstr(entry->d_name, INTERPRETER) || strlen(entry->d_name) >= sizeof(link.name) ||
		    fstatat(cache->dir.fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		snprintf(link.name, sizeof(link.name), "%s", entry->d_name);
		link.noted = st.st_mtim;
		if (nr < TABLE_CACHE_INTERPRETERS) {
			links[nr++] = link;
			continue;
		}
		for (uint32_t i = 1; i < nr; i++)
			oldest = is_older(&links[i], oldest) ? &links[i] : oldest;
		if (is_older(&link, oldest)) {
			unlinkat(cache->dir.fd, link.name, 0);
		} else {
			unlinkat(cache->dir.fd, oldest->name, 0);
			*oldest = link;
		}
	}
	return nr;
}

void table_cache_note_interpreter(struct table_cache *cache, const struct elf_file *elf, const char *path)
{
	struct link links[TABLE_CACHE_INTERPRETERS];
	struct table_key key;
	char name[64];

	if (!key_of(elf, path, &key))
		return;
	snprintf(name, sizeof(name), "%016" PRIx64 INTERPRETER, hash_stable(path, strlen(path), 0));
	if (!symlinkat(path, cache->dir.fd, name))
		list_links(cache, links);
	else if (errno == EEXIST)
		utimensat(cache->dir.fd, name, NULL, AT_SYMLINK_NOFOLLOW); /* marks it as used now */
}

int table_cache_interpreters(const struct table_cache *cache, table_cache_path_fn fn, void *arg)
{
	struct link links[TABLE_CACHE_INTERPRETERS];
	uint32_t nr = list_links(cache, links);
	int err = 0;

	for (uint32_t i = 0; i < nr && !err; i++) {
		char path[PATH_MAX];
		ssize_t size = readlinkat(cache->dir.fd, links[i].name, path, sizeof(path) - 1);

		path[size > 0 ? size : 0] = '\0';
		err = size > 0 ? fn(arg, path) : 0;
	}
	return err;
}
