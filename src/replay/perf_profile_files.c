// SPDX-License-Identifier: Apache-2.0
#include "replay/perf_profile_files.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/u64_map.h"

#define FILES_BYTES_MAX ((size_t)256 << 20)
#define DEBUG_DIR "/usr/lib/debug"

struct known_file { /* the result of the search for a recorded file */
	struct build_id id;
	uint64_t inode;
	char *recorded_path;
	char *path; /* NULL: not found */
	uint64_t found_inode;
};

struct perf_files {
	const struct perf_data_info *info;
	int64_t recorded_ns;
	bool is_ours;
	struct u64_map id_by_path; /* hash of the path -> info.build_ids */
	uint32_t nr_ids;           /* number of info.build_ids already in it */
	struct buffer files;       /* struct known_file each */
	struct u64_map by_key;
	uint32_t nr_missing, nr_changed;
	char *first_missing;
};

struct perf_files *perf_files_new(const struct perf_data_info *info, int64_t recorded_ns)
{
	struct perf_files *files = calloc(1, sizeof(*files));
	struct utsname name;

	if (!files)
		return NULL;
	files->info = info;
	files->recorded_ns = recorded_ns;
	files->is_ours = !uname(&name) && (!info->host[0] || !strncmp(info->host, name.nodename, sizeof(info->host) - 1));
	files->files = BUFFER_INIT(FILES_BYTES_MAX);
	return files;
}

static struct known_file *file_at(const struct perf_files *files, uint32_t i)
{
	return (struct known_file *)files->files.data + i;
}

void perf_files_free(struct perf_files *files)
{
	if (!files)
		return;
	for (uint32_t i = 0; i < files->files.size / sizeof(struct known_file); i++) {
		free(file_at(files, i)->recorded_path);
		free(file_at(files, i)->path);
	}
	buffer_done(&files->files);
	u64_map_done(&files->id_by_path);
	u64_map_done(&files->by_key);
	free(files->first_missing);
	free(files);
}

bool perf_files_are_ours(const struct perf_files *files)
{
	return files->is_ours;
}

uint32_t perf_files_nr_missing(const struct perf_files *files, uint32_t *ret_nr_changed, const char **ret_path)
{
	*ret_nr_changed = files->nr_changed;
	*ret_path = files->first_missing ? files->first_missing : "";
	return files->nr_missing;
}

const struct build_id *perf_files_build_id(struct perf_files *files, const char *path)
{
	uint32_t cursor = 0, *known;

	for (; files->nr_ids < files->info->nr_build_ids; files->nr_ids++) { /* a stream brings more while it is read */
		const char *name = files->info->build_ids[files->nr_ids].path;

		if (u64_map_add(&files->id_by_path, hash_bytes(name, strlen(name), 0), files->nr_ids))
			return NULL; /* no memory: the file is found by its inode, or not at all */
	}
	while ((known = u64_map_each(&files->id_by_path, hash_bytes(path, strlen(path), 0), &cursor))) {
		if (!strcmp(files->info->build_ids[*known].path, path))
			return &files->info->build_ids[*known].id;
	}
	return NULL;
}

/* perf pads ids of less than 20 bytes with zeros. */
static bool is_id(const struct build_id *recorded, const struct build_id *found)
{
	uint8_t nr = found->size < recorded->size ? found->size : recorded->size;

	if (!found->size || memcmp(recorded->bytes, found->bytes, nr))
		return false;
	for (uint8_t i = nr; i < recorded->size; i++) {
		if (recorded->bytes[i])
			return false;
	}
	return nr == found->size || nr == 20; /* perf cuts longer ones to 20 */
}

/* 0: it is the recorded file; -ESTALE: another; or as open(2). */
static int check_file(const struct perf_files *files, const char *path, const struct build_id *id, uint64_t inode, uint64_t *ret_inode)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct stat st;
	CLEANUP(closep) int fd = file_open_regular(path, &st);
	int err = 0;

	if (fd < 0)
		return fd;
	*ret_inode = st.st_ino;
	if (id) {
		err = elf_file_open_fd(fd, NULL, &elf);
		if (err)
			return err;
		fd = -1; /* elf owns it now */
		return is_id(id, elf_file_build_id(elf)) ? 0 : -ESTALE;
	}
	/* mtime, not ctime: a hard link changes ctime, and perf's own cache makes hard links */
	if (!inode || !files->is_ours || st.st_ino != inode ||
	    (files->recorded_ns && (int64_t)clock_timespec_ns(st.st_mtim) > files->recorded_ns))
		return -ESTALE;
	return 0;
}

/* Looks for the file by its build id: in perf's cache in ~/.debug, then among the debug files. */
static int check_by_id(const struct perf_files *files, const struct build_id *id, char *path, size_t size, uint64_t *ret_inode)
{
	const char *home = getenv("HOME"); /* NOLINT: one thread */
	char text[2 * BUILD_ID_MAX + 1];
	int err = -ENOENT;

	build_id_text(id, text);
	if (strlen(text) < 3)
		return err;
	if (home && home[0] == '/') {
		snprintf(path, size, "%s/.debug/.build-id/%.2s/%s/elf", home, text, text + 2);
		err = check_file(files, path, id, 0, ret_inode);
	}
	if (!err)
		return 0;
	snprintf(path, size, DEBUG_DIR "/.build-id/%.2s/%s.debug", text, text + 2);
	return check_file(files, path, id, 0, ret_inode);
}

static int look_for(struct perf_files *files, struct known_file *file)
{
	const struct build_id *id = file->id.size ? &file->id : NULL;
	char other[PATH_MAX];
	int at_path = check_file(files, file->recorded_path, id, file->inode, &file->found_inode);

	if (!at_path || (id && !check_by_id(files, id, other, sizeof(other), &file->found_inode))) {
		file->path = strdup(at_path ? other : file->recorded_path);
		return file->path ? 0 : -ENOMEM;
	}
	file->found_inode = UINT64_MAX;
	files->nr_missing++;
	files->nr_changed += at_path == -ESTALE;
	if (!files->first_missing)
		files->first_missing = strdup(file->recorded_path);
	return 0;
}

static bool is_same(const struct known_file *file, const struct perf_data_mmap *mmap, const struct build_id *id)
{
	return file->inode == mmap->inode && file->id.size == id->size && !memcmp(file->id.bytes, id->bytes, id->size) &&
	       !strcmp(file->recorded_path, mmap->path);
}

int perf_files_find(struct perf_files *files, const struct perf_data_mmap *mmap, struct perf_file *ret_file)
{
	const struct build_id none = { 0 }, *recorded = perf_files_build_id(files, mmap->path),
			      *id = mmap->build_id.size ? &mmap->build_id
				    : recorded		? recorded
							: &none;
	uint64_t key = hash_bytes(mmap->path, strlen(mmap->path), mmap->inode);
	uint32_t cursor = 0, *known, number = (uint32_t)(files->files.size / sizeof(struct known_file));
	struct known_file file = { .id = *id, .inode = mmap->inode };
	const struct known_file *found = NULL;
	int err = 0;

	while (!found && (known = u64_map_each(&files->by_key, key, &cursor))) {
		if (is_same(file_at(files, *known), mmap, id))
			found = file_at(files, *known);
	}
	if (!found) {
		file.recorded_path = strdup(mmap->path);
		err = file.recorded_path ? look_for(files, &file) : -ENOMEM;
		if (!err)
			buffer_append(&files->files, &file, sizeof(file));
		if (err || files->files.err) {
			free(file.recorded_path);
			free(file.path);
			return -ENOMEM;
		}
		err = u64_map_add(&files->by_key, key, number);
		found = file_at(files, number);
	}
	*ret_file = (struct perf_file){ .path = found->path ? found->path : found->recorded_path, .inode = found->found_inode };
	return err;
}
