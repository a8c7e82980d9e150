// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator_probes.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/u64_map.h"
#include "runtime/runtime.h"
#include "track/tracker.h"

#define PATH_BYTES 80

struct allocator_probes {
	const struct engine *engine;
	struct alloc_programs *programs;
	uint32_t *tgids;          /* of the targets */
	uint32_t nr_tgids;
	bool is_of_all;           /* probes are in all processes, and the programs filter */
	const char *object;
	bool is_estimate;         /* of the options */
	struct u64_map looked_at; /* mappings, by the file's serial number, the process and where it is mapped */
	struct u64_map probed;    /* files, by device, inode and the process: two may have the same build id, which are one object here */
	struct u64_map noted;     /* files whose heaps were looked at, by their serial number */
	uint32_t nr;
	bool is_counting;         /* see allocator_probes_count */
	uint32_t nr_counted;
	bool has_started;         /* what is mapped from now on was not mapped at the start */
	struct diag *diag;        /* of the call in progress */
};

struct allocator_probes *allocator_probes_new(const struct engine *engine, struct alloc_programs *programs,
					      const struct allocator_probes_options *options)
{
	struct allocator_probes *probes = calloc(1, sizeof(*probes));

	if (!probes)
		return NULL;
	probes->engine = engine;
	probes->programs = programs;
	probes->object = options->object;
	probes->is_of_all = options->children;
	probes->is_estimate = options->is_estimate;
	probes->tgids = calloc(options->targets->nr + 1, sizeof(*probes->tgids));
	if (!probes->tgids) {
		free(probes);
		return NULL;
	}
	for (uint32_t i = 0; i < options->targets->nr; i++) {
		probes->tgids[probes->nr_tgids++] = options->targets->list[i].tgid;
		/* For such a process the kernel would accept the probes, and set none. */
		probes->is_of_all |= target_lost_first_thread(options->targets->list[i].tgid);
	}
	if (options->command_tgid)
		probes->tgids[probes->nr_tgids++] = options->command_tgid;
	return probes;
}

void allocator_probes_free(struct allocator_probes *probes)
{
	if (!probes)
		return;
	u64_map_done(&probes->looked_at);
	u64_map_done(&probes->probed);
	u64_map_done(&probes->noted);
	free(probes->tgids);
	free(probes);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Is it the file of -O? A library's version may follow ("libc", "libc.so" and "libc.so.6" are the same one). */
static bool is_asked_for(const struct allocator_probes *probes, const char *path)
{
	size_t length;

	if (!probes->object || !strcmp(probes->object, path))
		return true;
	if (strchr(probes->object, '/'))
		return false;
	length = strlen(probes->object);
	return strncmp(base_name(path), probes->object, length) == 0 && strchr(".-", base_name(path)[length]); /* also the end */
}

static bool has_slow(const struct allocators *allocators, enum sonde_alloc_call call)
{
	for (uint32_t i = 0; i < allocators->nr; i++) {
		if (allocators->functions[i].is_slow && allocators->functions[i].call == call)
			return true;
	}
	return false;
}

/* Of what programs call all the time. What a single step costs is not known, and is taken for other probes' cost, a tenth of it or so. */
static void note_slow(const struct allocator_probes *probes, const struct object *object, const struct allocators *allocators)
{
	static const struct {
		enum sonde_alloc_call call;
		const char *name;
	} usual[] = { { SONDE_ALLOC_MALLOC, "malloc" },
		      { SONDE_ALLOC_CALLOC, "calloc" },
		      { SONDE_ALLOC_REALLOC, "realloc" },
		      { SONDE_ALLOC_NEW, "operator new" } };

	for (size_t i = 0; probes->is_estimate && i < ARRAY_SIZE(usual); i++) {
		if (has_slow(allocators, usual[i].call))
			account_note(probes->engine->account,
				     "%s: the kernel has to step over the beginning of a function like %s: a probe there costs more than "
				     "is measured, and it may be called many times more",
				     object->path, usual[i].name);
	}
}

/* The unwinder cannot pass a probe of a return. */
static void note_new(const struct allocator_probes *probes, const struct object *object, const struct allocators *allocators)
{
	bool is_there = false;

	for (uint32_t i = 0; i < allocators->nr; i++)
		is_there |= allocators->functions[i].call == SONDE_ALLOC_NEW;
	if (is_there && !probes->is_estimate)
		account_note(probes->engine->account,
			     "%s: an operator new that throws while it is probed, as at a limit of memory, ends the program; "
			     "alloc --low-overhead does without",
			     object->path);
}

static int attach(struct allocator_probes *probes, uint32_t tgid, const struct object *object, const char *path,
		  const struct allocators *allocators)
{
	struct alloc_probe list[ALLOCATORS_MAX];
	struct diag diag = { 0 };
	int err;

	for (uint32_t i = 0; i < allocators->nr; i++)
		list[i] = (struct alloc_probe){ .entry_off = allocators->functions[i].entry_off,
						.probe_off = allocators->functions[i].probe_off,
						.call = allocators->functions[i].call };
	if (probes->is_counting) {
		probes->nr_counted += !alloc_programs_count(probes->programs, path, tgid, list, allocators->nr);
		return 0;
	}
	err = alloc_programs_attach(probes->programs, path, tgid, list, allocators->nr, &diag);
	if (err == -EPERM || err == -EOPNOTSUPP || err == -ENOMEM)
		return diag_errno(probes->diag, -err, "%s", diag.text);
	if (err) /* -ESRCH: the process has ended */
		account_note(probes->engine->account, "%s in process %" PRIu32 ": %s", object->path, tgid, diag.text);
	else
		probes->nr++;
	if (!err) {
		note_slow(probes, object, allocators);
		note_new(probes, object, allocators);
	}
	if (!err && probes->has_started)
		account_note(probes->engine->account,
			     "%s is an allocator that process %" PRIu32 " mapped while sonde ran: what it allocated before is not known",
			     object->path, tgid);
	return 0;
}

/* One key for all; a collision would only leave a file out. */
static uint64_t key_of(uint64_t first, uint64_t second, uint32_t tgid)
{
	const uint64_t words[] = { first, second, tgid };

	return hash_bytes(words, sizeof(words), 0);
}

/* The file that the process has mapped there, even if another one with the same build id is known already. Where that cannot be told: the
 * one that is known. 0; 1: it has been probed; -ENOMEM. */
static int find_file(struct allocator_probes *probes, uint32_t tgid, const struct object *object, const struct process_mapping *mapping,
		     char path[PATH_BYTES])
{
	struct stat status;
	uint64_t key;

	if (mapping)
		snprintf(path, PATH_BYTES, "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, tgid, mapping->start_pc, mapping->end_pc);
	if (!mapping || stat(path, &status)) {
		snprintf(path, PATH_BYTES, "/proc/self/fd/%d", elf_file_fd(object->elf));
		if (fstat(elf_file_fd(object->elf), &status))
			return 1;
	}
	key = key_of(status.st_dev, status.st_ino, probes->is_of_all ? 0 : tgid);
	if (u64_map_find(&probes->probed, key))
		return 1;
	return probes->is_counting ? 0 : u64_map_add(&probes->probed, key, 0);
}

/* Once it is known which runtimes the file has. */
static int note_own_heaps(struct allocator_probes *probes, uint32_t number, const struct object *object)
{
	const struct runtime_loader *runtimes = tracker_runtimes(probes->engine->tracker);
	uint32_t nr = runtime_loader_nr_images(runtimes, number);

	if (!nr || u64_map_find(&probes->noted, object->serial))
		return 0;
	for (uint32_t i = 0; i < nr; i++) {
		const struct runtime *runtime = runtime_of(runtime_loader_image(runtimes, number, i)->runtime);

		if (runtime && runtime->own_heap)
			account_note(probes->engine->account, "%s: %s", object->path, runtime->own_heap);
	}
	return u64_map_add(&probes->noted, object->serial, 0);
}

/* `mapping` NULL: it is not mapped yet. */
static int look_at(struct allocator_probes *probes, uint32_t tgid, uint32_t number, const struct process_mapping *mapping)
{
	const struct object *object = object_table_at(process_table_objects(engine_processes(probes->engine)), number);
	uint64_t key = key_of(object->serial, mapping ? mapping->start_pc : 0, tgid);
	char path[PATH_BYTES];
	struct allocators allocators;
	struct diag diag = { 0 };
	int err;

	err = note_own_heaps(probes, number, object);
	if (err || !object->elf || elf_file_fd(object->elf) < 0 || u64_map_find(&probes->looked_at, key) ||
	    !is_asked_for(probes, object->path))
		return err;
	err = parser_allocators(probes->engine->parser, number, object->elf, &diag, &allocators);
	if (err == -EINPROGRESS)
		return 0; /* asked again */
	if (!probes->is_counting && u64_map_add(&probes->looked_at, key, 0))
		return -ENOMEM;
	if (err && !probes->is_counting)
		account_note(probes->engine->account, "whether %s has an allocator is not known: %s", object->path,
			     diag.text[0] ? diag.text : strerror(-err));
	if (err || !allocators.nr)
		return 0;
	err = find_file(probes, tgid, object, mapping, path);
	return err ? err < 0 ? err : 0 : attach(probes, probes->is_of_all ? 0 : tgid, object, path, &allocators);
}

/* The file that execvp(3) would run. False: none. */
static bool find_program(const char *name, char *path, size_t size)
{
	const char *dirs = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(path, size, "%s", name) < (int)size && !access(path, X_OK);
	for (const char *dir = dirs ? dirs : "/bin:/usr/bin"; dir; dir = strchr(dir, ':') ? strchr(dir, ':') + 1 : NULL) {
		int length = snprintf(path, size, "%.*s/%s", (int)strcspn(dir, ":"), dir, name);

		if (length > 0 && length < (int)size && !access(path, X_OK))
			return true;
	}
	return false;
}

static int expect_file(struct allocator_probes *probes, const char *path)
{
	char whole[PATH_MAX];
	uint32_t object = realpath(path, whole) ? tracker_expect(probes->engine->tracker, whole) : OBJECT_NONE;

	return object == OBJECT_NONE ? 0 : look_at(probes, probes->tgids[probes->nr_tgids - 1], object, NULL);
}

int allocator_probes_expect(struct allocator_probes *probes, char *const *command, struct diag *diag)
{
	CLEANUP(freep) char *preloads = getenv("LD_PRELOAD") ? strdup(getenv("LD_PRELOAD")) : NULL;
	char path[PATH_MAX], *rest = preloads, *preload;
	int err;

	probes->diag = diag;
	err = find_program(command[0], path, sizeof(path)) ? expect_file(probes, path) : 0;
	while (!err && rest && (preload = strsep(&rest, ": "))) {
		if (strchr(preload, '/'))
			err = expect_file(probes, preload);
	}
	return err;
}

static bool is_target(const struct allocator_probes *probes, uint32_t tgid)
{
	for (uint32_t i = 0; i < probes->nr_tgids; i++) {
		if (probes->tgids[i] == tgid)
			return true;
	}
	return probes->is_of_all;
}

static int look_at_process(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr)
{
	struct allocator_probes *probes = arg;
	int err = 0;

	if (!is_target(probes, tgid))
		return 0;
	for (uint32_t i = 0; !err && i < nr; i++) {
		if (mappings[i].object != OBJECT_NONE)
			err = look_at(probes, tgid, mappings[i].object, &mappings[i]);
	}
	return err;
}

int allocator_probes_look(struct allocator_probes *probes, struct diag *diag)
{
	int err;

	probes->diag = diag;
	err = process_table_living(engine_processes(probes->engine), look_at_process, probes);
	probes->has_started = true;
	return err;
}

int allocator_probes_count(struct allocator_probes *probes, struct diag *diag)
{
	int err;

	if (probes->is_of_all)
		return -ENODATA; /* others would be counted, too */
	probes->diag = diag;
	probes->is_counting = true;
	err = process_table_living(engine_processes(probes->engine), look_at_process, probes);
	probes->is_counting = false;
	return err ? err : probes->nr_counted ? 0 : -ENODATA;
}

uint32_t allocator_probes_nr(const struct allocator_probes *probes)
{
	return probes->nr;
}
