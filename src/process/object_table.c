// SPDX-License-Identifier: Apache-2.0
#include "process/object_table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/u64_map.h"

#define MAX_OBJECTS (1u << 20)
#define VDSO_BYTES_MAX (64u << 10)

struct object_table {
	struct object *objects;
	uint32_t nr_objects, capacity, nr_refused;
	struct u64_map by_identity; /* hash of struct identity -> object */
	struct u64_map by_build_id; /* hash of build id and size -> object */
	struct u64_map by_path;     /* hash of the path -> object, for those that could not be opened */
};

/* What tells a file from all others on this machine, and from what it was before it was written to. Zeroed before it is filled. */
struct identity {
	uint64_t device, inode, size;
	int64_t changed_s, changed_ns;
};

struct object_table *object_table_new(void)
{
	return calloc(1, sizeof(struct object_table));
}

void object_table_free(struct object_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->nr_objects; i++) {
		elf_file_free(table->objects[i].elf);
		free((char *)table->objects[i].path);
	}
	free(table->objects);
	u64_map_done(&table->by_identity);
	u64_map_done(&table->by_build_id);
	u64_map_done(&table->by_path);
	free(table);
}

const struct object *object_table_at(const struct object_table *table, uint32_t object)
{
	return &table->objects[object];
}

uint32_t object_table_nr_refused(const struct object_table *table)
{
	return table->nr_refused;
}

uint32_t object_table_nr(const struct object_table *table)
{
	return table->nr_objects;
}

/* Takes over `elf` in any case. */
static uint32_t add_object(struct object_table *table, struct elf_file *elf, const char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *owned = elf;
	CLEANUP(freep) char *copy = strdup(path);

	if (table->nr_objects == table->capacity) {
		uint32_t capacity = table->capacity ? table->capacity * 2 : 64;
		struct object *objects = capacity > MAX_OBJECTS ? NULL : reallocarray(table->objects, capacity, sizeof(*objects));

		if (!objects)
			return OBJECT_NONE;
		table->objects = objects;
		table->capacity = capacity;
	}
	if (!copy)
		return OBJECT_NONE;
	table->objects[table->nr_objects] = (struct object){ .elf = MOVE(owned), .path = MOVE(copy) };
	return table->nr_objects++;
}

/* A descriptor of O_PATH, which has no side effects on a device or FIFO. Only the file with this inode will do, unless it is 0. */
static int open_same(const char *path, uint64_t inode)
{
	CLEANUP(closep) int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || (inode && (fstat(fd, &st) || st.st_ino != inode)))
		return -1;
	return MOVE_FD(fd);
}

/* What the mapping or, if that cannot be had, its path leads to: in the process's own root, or in ours when it has ended. */
static int locate(uint32_t tgid, uint64_t start_pc, uint64_t end_pc, uint64_t inode, const char *path)
{
	char at[4096 + 64];
	int fd;

	snprintf(at, sizeof(at), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, tgid, start_pc, end_pc);
	fd = open_same(at, 0);
	if (fd >= 0 || path[0] != '/')
		return fd;
	snprintf(at, sizeof(at), "/proc/%" PRIu32 "/root%s", tgid, path);
	fd = open_same(at, inode);
	return fd >= 0 ? fd : open_same(path, inode);
}

static int reopen(int path_fd)
{
	char at[64];

	snprintf(at, sizeof(at), "/proc/self/fd/%d", path_fd);
	return open(at, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Opens the ELF file behind `path_fd`, or finds the object that has the same build id. */
static uint32_t open_object(struct object_table *table, int path_fd, const char *path)
{
	CLEANUP(closep) int fd = reopen(path_fd);
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	const struct build_id *id;
	uint32_t object, *known;
	uint64_t key;

	table->nr_refused += fd < 0 && errno == EMFILE;
	if (fd < 0 || elf_file_open_fd(fd, NULL, &elf))
		return add_object(table, NULL, path);
	fd = -1;
	id = elf_file_build_id(elf);
	key = hash_bytes(id->bytes, id->size, elf_file_size(elf));
	known = id->size ? u64_map_find(&table->by_build_id, key) : NULL;
	if (known)
		return *known;
	object = add_object(table, MOVE(elf), path);
	if (id->size && object != OBJECT_NONE && u64_map_add(&table->by_build_id, key, object))
		return OBJECT_NONE;
	return object;
}

static uint32_t met_unreadable(struct object_table *table, const char *path)
{
	uint64_t key = hash_bytes(path, strlen(path), 0);
	uint32_t object, *known = u64_map_find(&table->by_path, key);

	if (known)
		return *known;
	object = add_object(table, NULL, path);
	if (object != OBJECT_NONE && u64_map_add(&table->by_path, key, object))
		return OBJECT_NONE;
	return object;
}

/* The vdso has no file, but is the same image in all 64-bit processes: ours. */
static uint32_t met_vdso(struct object_table *table)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint64_t key = hash_bytes("[vdso]", 6, 0);
	struct elf_file *elf = NULL;
	uint32_t object, *known = u64_map_find(&table->by_path, key);
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	if (known)
		return *known;
	for (size_t size = VDSO_BYTES_MAX; image && !elf && size >= page_bytes; size -= page_bytes) {
		CLEANUP(freep) unsigned char *pages = calloc(1, size / page_bytes);

		/* mincore fails when not all of the range is mapped: so the image's size is found without reading past it */
		if (pages && !mincore((void *)image, size, pages) && elf_file_open_memory(image, size, NULL, &elf))
			elf = NULL;
	}
	object = add_object(table, elf, "[vdso]");
	if (object != OBJECT_NONE && u64_map_add(&table->by_path, key, object))
		return OBJECT_NONE;
	return object;
}

uint32_t object_table_met(struct object_table *table, uint32_t tgid, uint64_t start_pc, uint64_t end_pc, uint64_t inode, const char *path)
{
	CLEANUP(closep) int path_fd = -1;
	struct identity identity = { 0 };
	struct stat st;
	uint32_t object, *known;
	uint64_t key;

	if (!strcmp(path, "[vdso]"))
		return met_vdso(table);
	path_fd = locate(tgid, start_pc, end_pc, inode, path);
	table->nr_refused += path_fd < 0 && errno == EMFILE;
	if (path_fd < 0 || fstat(path_fd, &st) || !S_ISREG(st.st_mode))
		return met_unreadable(table, path);
	identity = (struct identity){
		.device = st.st_dev,
		.inode = st.st_ino,
		.size = (uint64_t)st.st_size,
		.changed_s = st.st_mtim.tv_sec,
		.changed_ns = st.st_mtim.tv_nsec,
	};
	key = hash_bytes(&identity, sizeof(identity), 0);
	known = u64_map_find(&table->by_identity, key);
	if (known)
		return *known;
	object = open_object(table, path_fd, path);
	if (object != OBJECT_NONE && u64_map_add(&table->by_identity, key, object))
		return OBJECT_NONE;
	return object;
}
