// SPDX-License-Identifier: Apache-2.0
#include "naming/location_files.h"

#include <fcntl.h>
#include <string.h>

#include "base/array.h"
#include "base/u64_map.h"
#include "naming/debug_roots.h"

#define MAX_FILES (1u << 20)

struct location_jit {
	uint32_t tgid;
	struct jit_files files;
	const struct recognised *recognised; /* the process's runtime, or NULL */
};

struct location_files {
	struct location_file *files;
	struct location_jit *jits;
	uint32_t nr_files, max_files, nr_jits, max_jits;
	struct u64_map by_object, by_tgid;
};

void location_files_free(struct location_files *files)
{
	if (!files)
		return;
	for (uint32_t i = 0; i < files->nr_files; i++) {
		elf_file_free(files->files[i].object.elf);
		free((char *)files->files[i].object.path);
		free(files->files[i].images);
		closep(&files->files[i].fetched_fd);
	}
	for (uint32_t i = 0; i < files->nr_jits; i++)
		jit_files_done(&files->jits[i].files);
	free(files->files);
	free(files->jits);
	u64_map_done(&files->by_object);
	u64_map_done(&files->by_tgid);
	free(files);
}

static void location_files_freep(struct location_files **files)
{
	location_files_free(*files);
}

struct location_file *location_files_file(const struct location_files *files, uint32_t object)
{
	const uint32_t *number = object == OBJECT_NONE ? NULL : u64_map_find(&files->by_object, object);

	return number ? &files->files[*number] : NULL;
}

struct jit_files *location_files_jit(const struct location_files *files, uint32_t tgid)
{
	const uint32_t *number = u64_map_find(&files->by_tgid, tgid);

	return number ? &files->jits[*number].files : NULL;
}

const struct recognised *location_files_recognised(const struct location_files *files, uint32_t tgid)
{
	const uint32_t *number = u64_map_find(&files->by_tgid, tgid);

	return number ? files->jits[*number].recognised : NULL;
}

static int add_images(struct location_file *file, const struct runtime_loader *runtimes, uint32_t object)
{
	file->nr_images = runtimes ? runtime_loader_nr_images(runtimes, object) : 0;
	file->images = file->nr_images ? calloc(file->nr_images, sizeof(*file->images)) : NULL;
	for (uint32_t i = 0; file->images && i < file->nr_images; i++)
		file->images[i] = *runtime_loader_image(runtimes, object, i);
	return file->nr_images && !file->images ? -1 : 0;
}

/* 0, or not 0: no memory. */
static int add_file(struct location_files *files, const struct location_files_parts *parts, uint32_t number)
{
	const struct object *object = object_table_at(process_table_objects(parts->processes), number);
	struct location_file *file;

	if (location_files_file(files, number))
		return 0;
	if (!array_grow(&files->files, files->nr_files, &files->max_files, sizeof(*files->files), 64, MAX_FILES))
		return -1;
	file = &files->files[files->nr_files];
	*file = (struct location_file){ .object = *object, .fetched_fd = -1 };
	file->object.elf = object->elf ? elf_file_share(object->elf) : NULL;
	file->object.path = strdup(object->path);
	files->nr_files++; /* from now on location_files_free frees it */
	if (object->elf && debug_files_fd(parts->debug_files, object->elf) >= 0)
		file->fetched_fd = fcntl(debug_files_fd(parts->debug_files, object->elf), F_DUPFD_CLOEXEC, 0);
	return !file->object.path || add_images(file, parts->runtimes, number) ||
	       u64_map_add(&files->by_object, number, files->nr_files - 1);
}

static void open_jit(const struct location_files_parts *parts, uint32_t tgid, struct jit_files *ret_files)
{
	if (parts->jit_file_cache && jit_file_cache_copy(parts->jit_file_cache, tgid, ret_files))
		return;
	jit_files_open(&(struct jit_process){ .proxy = parts->proxy,
					      .processes = parts->processes,
					      .tgid = tgid,
					      .number = jit_file_cache_number(parts->jit_file_cache, tgid),
					      .is_ours = tgid == parts->own_tgid },
		       ret_files);
}

static int add_jit(struct location_files *files, const struct location_files_parts *parts, uint32_t tgid)
{
	if (location_files_jit(files, tgid))
		return 0;
	if (!array_grow(&files->jits, files->nr_jits, &files->max_jits, sizeof(*files->jits), 16, MAX_FILES) ||
	    u64_map_add(&files->by_tgid, tgid, files->nr_jits))
		return -1;
	files->jits[files->nr_jits] = (struct location_jit){ .tgid = tgid };
	if (parts->runtimes)
		files->jits[files->nr_jits].recognised = runtime_loader_recognised(parts->runtimes, tgid);
	open_jit(parts, tgid, &files->jits[files->nr_jits++].files);
	return 0;
}

static bool is_one(void *arg, uint32_t object)
{
	return location_files_file(arg, object);
}

/* 0, or not 0: no memory. */
static int find_askers(struct location_files *files, const struct process_table *processes)
{
	CLEANUP(debug_roots_freep) struct debug_roots *askers = debug_roots_new(processes, is_one, files);
	uint32_t nr = object_table_nr(process_table_objects(processes));

	for (uint32_t i = 0; askers && i < nr; i++) {
		struct location_file *file = location_files_file(files, i);

		if (!file)
			continue;
		file->asker = debug_roots_of(askers, i);
		file->asker_rank = debug_roots_rank(askers, i);
	}
	return !askers;
}

struct location_files *location_files_new(const struct location_files_parts *parts, const struct location_table *locations)
{
	CLEANUP(location_files_freep) struct location_files *files = calloc(1, sizeof(*files));
	int err = !files;

	for (uint32_t i = 0; !err && i < location_nr(locations); i++) {
		const struct location *location = location_at(locations, i);

		if (location->object != OBJECT_NONE)
			err = add_file(files, parts, location->object);
		if (!err && location->tgid && !location->in_elf)
			err = add_jit(files, parts, location->tgid);
	}
	return err || find_askers(files, parts->processes) ? NULL : MOVE(files);
}

void location_files_refuse(const struct location_files *files, struct debug_files *debug_files)
{
	for (uint32_t i = 0; i < files->nr_files; i++) {
		if (files->files[i].is_refused)
			debug_files_refuse(debug_files, files->files[i].object.elf);
	}
}
