// SPDX-License-Identifier: Apache-2.0
#include "naming/place_files.h"

#include <fcntl.h>
#include <string.h>

#include "base/array.h"
#include "base/u64_map.h"
#include "naming/debug_askers.h"

#define MAX_FILES (1u << 20)

struct place_jit {
	uint32_t tgid;
	struct jit_files files;
};

struct place_files {
	struct place_file *files;
	struct place_jit *jits;
	uint32_t nr_files, max_files, nr_jits, max_jits;
	struct u64_map by_object, by_tgid;
};

void place_files_free(struct place_files *files)
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

static void place_files_freep(struct place_files **files)
{
	place_files_free(*files);
}

struct place_file *place_files_file(const struct place_files *files, uint32_t object)
{
	const uint32_t *number = object == OBJECT_NONE ? NULL : u64_map_find(&files->by_object, object);

	return number ? &files->files[*number] : NULL;
}

struct jit_files *place_files_jit(const struct place_files *files, uint32_t tgid)
{
	const uint32_t *number = u64_map_find(&files->by_tgid, tgid);

	return number ? &files->jits[*number].files : NULL;
}

static int add_images(struct place_file *file, const struct runtime_keeper *runtimes, uint32_t object)
{
	file->nr_images = runtimes ? runtime_keeper_nr_images(runtimes, object) : 0;
	file->images = file->nr_images ? calloc(file->nr_images, sizeof(*file->images)) : NULL;
	for (uint32_t i = 0; file->images && i < file->nr_images; i++)
		file->images[i] = *runtime_keeper_image(runtimes, object, i);
	return file->nr_images && !file->images ? -1 : 0;
}

/* 0, or not 0: no memory. */
static int add_file(struct place_files *files, const struct place_files_parts *parts, uint32_t number)
{
	const struct object *object = object_table_at(process_table_objects(parts->processes), number);
	struct place_file *file;

	if (place_files_file(files, number))
		return 0;
	if (!array_grow(&files->files, files->nr_files, &files->max_files, sizeof(*files->files), 64, MAX_FILES))
		return -1;
	file = &files->files[files->nr_files];
	*file = (struct place_file){ .object = *object, .fetched_fd = -1 };
	file->object.elf = object->elf ? elf_file_share(object->elf) : NULL;
	file->object.path = strdup(object->path);
	files->nr_files++; /* from now on it is freed with the others */
	if (object->elf && debug_files_fd(parts->debug_files, object->elf) >= 0)
		file->fetched_fd = fcntl(debug_files_fd(parts->debug_files, object->elf), F_DUPFD_CLOEXEC, 0);
	return !file->object.path || add_images(file, parts->runtimes, number) || u64_map_add(&files->by_object, number, files->nr_files - 1);
}

static void open_jit(const struct place_files_parts *parts, uint32_t tgid, struct jit_files *ret_files)
{
	const char *ended_dump = process_table_ended_dump(parts->processes, tgid);
	bool is_ours = tgid == parts->own_tgid;

	if (parts->jit_keeper && jit_keeper_copy(parts->jit_keeper, tgid, ret_files))
		return;
	jit_files_open(parts->proxy, tgid, is_ours, ret_files);
	if (ended_dump)
		jit_files_add_dump(ret_files, parts->proxy, tgid, is_ours, ended_dump);
}

static int add_jit(struct place_files *files, const struct place_files_parts *parts, uint32_t tgid)
{
	if (place_files_jit(files, tgid))
		return 0;
	if (!array_grow(&files->jits, files->nr_jits, &files->max_jits, sizeof(*files->jits), 16, MAX_FILES) || u64_map_add(&files->by_tgid, tgid, files->nr_jits))
		return -1;
	files->jits[files->nr_jits] = (struct place_jit){ .tgid = tgid };
	open_jit(parts, tgid, &files->jits[files->nr_jits++].files);
	return 0;
}

static bool is_one(void *arg, uint32_t object)
{
	return place_files_file(arg, object);
}

/* 0, or not 0: no memory. */
static int find_askers(struct place_files *files, const struct process_table *processes)
{
	CLEANUP(debug_askers_freep) struct debug_askers *askers = debug_askers_new(processes, is_one, files);
	uint32_t nr = object_table_nr(process_table_objects(processes));

	for (uint32_t i = 0; askers && i < nr; i++) {
		struct place_file *file = place_files_file(files, i);

		if (!file)
			continue;
		file->asker = debug_askers_of(askers, i);
		file->asker_rank = debug_askers_rank(askers, i);
	}
	return !askers;
}

struct place_files *place_files_new(const struct place_files_parts *parts, const struct place_table *places)
{
	CLEANUP(place_files_freep) struct place_files *files = calloc(1, sizeof(*files));
	int err = !files;

	for (uint32_t i = 0; !err && i < place_nr(places); i++) {
		const struct place *place = place_at(places, i);

		if (place->object != OBJECT_NONE)
			err = add_file(files, parts, place->object);
		if (!err && place->tgid && !place->in_elf)
			err = add_jit(files, parts, place->tgid);
	}
	return err || find_askers(files, parts->processes) ? NULL : MOVE(files);
}

void place_files_refuse(const struct place_files *files, struct debug_files *debug_files)
{
	for (uint32_t i = 0; i < files->nr_files; i++) {
		if (files->files[i].is_refused)
			debug_files_refuse(debug_files, files->files[i].object.elf);
	}
}
