// SPDX-License-Identifier: Apache-2.0
#include "session/runtime_keeper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/process_memory.h"
#include "base/u64_map.h"

#define BAD_FRAMES 8   /* the first ones of a runtime, and none that is good: then it is given up */
#define MAX_RETRIES 200

/* An interpreter in a file. */
struct kept_image {
	struct runtime_image image;
	uint32_t nr_good, nr_bad; /* frames by what was found where they lead to, until one is good */
	bool is_refused;          /* said once: not of every process */
};

/* What a file holds. */
struct kept_file {
	bool is_examined;
	struct libc_facts libc;
	uint32_t nr_images;
	struct kept_image *images; /* owned; NULL: none, as with nearly all */
};

union known {
	struct sonde_runtime_process process;
	struct sonde_python python;
	struct sonde_php php;
	struct sonde_perl perl;
	struct sonde_go go;
};

enum placing { PLACING_NONE, PLACING_DONE, PLACING_WAITS, PLACING_FAILED };

/* An interpreter in a process. */
struct placed {
	enum placing placing;
	bool is_counted; /* in the account */
	uint32_t object, image; /* the image's number in the file */
	union known known;
};

struct kept_process {
	uint32_t tgid, generation;
	uint32_t nr_retries;
	struct placed placed[SONDE_RUNTIME_COUNT];
};

struct runtime_keeper {
	struct sampler *sampler;
	struct parser *parser;
	struct process_table *processes;
	struct account *account;
	struct kept_file *files;      /* by object */
	uint32_t nr_files;
	uint32_t wanted;              /* bits: programs that are not loaded yet */
	struct kept_process **kept;   /* those that run one */
	uint32_t nr_kept, capacity;
	struct u64_map by_tgid;       /* number in `kept` */
};

struct runtime_keeper *runtime_keeper_new(struct sampler *sampler, struct parser *parser, struct process_table *processes, struct account *account)
{
	struct runtime_keeper *keeper = calloc(1, sizeof(*keeper));

	if (keeper)
		*keeper = (struct runtime_keeper){ .sampler = sampler, .parser = parser, .processes = processes, .account = account };
	return keeper;
}

void runtime_keeper_free(struct runtime_keeper *keeper)
{
	if (!keeper)
		return;
	for (uint32_t i = 0; i < keeper->nr_files; i++)
		free(keeper->files[i].images);
	for (uint32_t i = 0; i < keeper->nr_kept; i++)
		free(keeper->kept[i]);
	free(keeper->files);
	free(keeper->kept);
	u64_map_done(&keeper->by_tgid);
	free(keeper);
}

/* --- files ----------------------------------------------------------------------------------------------------------------------------- */

static const struct kept_file *file_of(const struct runtime_keeper *keeper, uint32_t object)
{
	return object < keeper->nr_files && keeper->files[object].is_examined ? &keeper->files[object] : NULL;
}

static const char *version_of(const struct runtime_image *image, char *to, size_t size)
{
	snprintf(to, size, "%s %u.%u", runtime_of(image->runtime)->name, image->version[0], image->version[1]);
	return to;
}

static void note_unsupported(struct runtime_keeper *keeper, const struct runtime_image *image, const char *path)
{
	char version[32];

	account_note(keeper->account, "%s of %s is not supported: %s", version_of(image, version, sizeof(version)), path, image->reason);
}

static int take_images(struct runtime_keeper *keeper, struct kept_file *file, const struct parser_runtimes *runtimes, const char *path)
{
	file->libc = runtimes->libc;
	if (!runtimes->nr_images)
		return 0;
	file->images = calloc(runtimes->nr_images, sizeof(*file->images));
	if (!file->images)
		return -ENOMEM;
	for (uint32_t i = 0; i < runtimes->nr_images; i++) {
		file->images[i].image = runtimes->images[i];
		if (!runtimes->images[i].is_supported)
			note_unsupported(keeper, &runtimes->images[i], path);
	}
	file->nr_images = runtimes->nr_images;
	return 0;
}

/* Sees what is in a file, once. 0 or -ENOMEM. */
static int meet(struct runtime_keeper *keeper, uint32_t object)
{
	const struct object *of;
	struct parser_runtimes runtimes;

	if (object == OBJECT_NONE || file_of(keeper, object))
		return 0;
	if (object >= keeper->nr_files) {
		uint32_t nr = object + object / 2 + 64;
		struct kept_file *files = reallocarray(keeper->files, nr, sizeof(*files));

		if (!files)
			return -ENOMEM;
		memset(files + keeper->nr_files, 0, (nr - keeper->nr_files) * sizeof(*files));
		keeper->files = files;
		keeper->nr_files = nr;
	}
	keeper->files[object].is_examined = true;
	of = object_table_at(process_table_objects(keeper->processes), object);
	if (!of->elf || parser_runtimes(keeper->parser, of->elf, NULL, &runtimes)) /* what cannot be read holds nothing that we know; its names say why */
		return 0;
	return take_images(keeper, &keeper->files[object], &runtimes, of->path);
}

void runtime_keeper_forget(struct runtime_keeper *keeper, uint32_t object)
{
	if (object >= keeper->nr_files)
		return;
	free(keeper->files[object].images);
	keeper->files[object] = (struct kept_file){ 0 };
}

/* --- processes ------------------------------------------------------------------------------------------------------------------------- */

static struct kept_process *process_of(const struct runtime_keeper *keeper, uint32_t tgid)
{
	const uint32_t *number = u64_map_find(&keeper->by_tgid, tgid);

	return number ? keeper->kept[*number] : NULL;
}

static int enter(struct runtime_keeper *keeper, uint32_t tgid, struct kept_process **ret_process)
{
	struct kept_process *process;

	*ret_process = process_of(keeper, tgid);
	if (*ret_process)
		return 0;
	if (keeper->nr_kept == keeper->capacity) {
		uint32_t capacity = keeper->capacity * 2 + 16;
		struct kept_process **kept = reallocarray(keeper->kept, capacity, sizeof(*kept));

		if (!kept)
			return -ENOMEM;
		keeper->kept = kept;
		keeper->capacity = capacity;
	}
	process = calloc(1, sizeof(*process));
	if (!process || u64_map_add(&keeper->by_tgid, tgid, keeper->nr_kept)) {
		free(process);
		return -ENOMEM;
	}
	process->tgid = tgid;
	keeper->kept[keeper->nr_kept++] = process;
	*ret_process = process;
	return 0;
}

static void unset(struct runtime_keeper *keeper, struct kept_process *process, uint32_t kind)
{
	if (process->placed[kind].placing == PLACING_DONE && keeper->sampler)
		sampler_unset_runtime(keeper->sampler, kind, process->tgid);
	process->placed[kind].placing = PLACING_NONE;
}

static void leave(struct runtime_keeper *keeper, uint32_t tgid)
{
	struct kept_process *process = process_of(keeper, tgid), *last;
	uint32_t number;

	if (!process)
		return;
	for (uint32_t kind = 0; kind < SONDE_RUNTIME_COUNT; kind++)
		unset(keeper, process, kind);
	number = *u64_map_find(&keeper->by_tgid, tgid);
	last = keeper->kept[--keeper->nr_kept];
	u64_map_remove(&keeper->by_tgid, tgid, number);
	if (last != process) {
		*u64_map_find(&keeper->by_tgid, last->tgid) = number;
		keeper->kept[number] = last;
	}
	free(process);
}

static int read_memory(void *arg, uint64_t from, void *to, size_t size)
{
	return process_memory_read(*(const uint32_t *)arg, from, to, size);
}

static void note_placed(struct runtime_keeper *keeper, struct placed *placed, const struct runtime_image *image)
{
	char version[16];

	snprintf(version, sizeof(version), "%u.%u.%u", image->version[0], image->version[1], image->version[2]);
	account_runtime(keeper->account, runtime_of(image->runtime)->name, version, 1);
	placed->is_counted = true;
}

static void note_refused(struct runtime_keeper *keeper, const struct kept_process *process, struct kept_image *kept, const char *why)
{
	char version[32];

	account_note(keeper->account, "what %s runs in process %u is not shown: %s", version_of(&kept->image, version, sizeof(version)), process->tgid, why);
	kept->is_refused = true;
}

static void place(struct runtime_keeper *keeper, struct kept_process *process, struct kept_image *kept, uint64_t load_bias, const struct libc_facts *libc)
{
	struct placed *placed = &process->placed[kept->image.runtime];
	const struct runtime_memory memory = { .read = read_memory, .arg = &process->tgid };
	struct diag diag = { 0 };
	int err;

	placed->known = (union known){ 0 };
	err = runtime_of(kept->image.runtime)->place(&kept->image, load_bias, libc, &memory, &diag, &placed->known);
	placed->known.process.generation = process->generation;
	if (!err && keeper->sampler) {
		err = sampler_set_runtime(keeper->sampler, kept->image.runtime, process->tgid, &placed->known, &diag);
		keeper->wanted |= err == -EAGAIN ? 1u << kept->image.runtime : 0;
	}
	placed->placing = !err ? PLACING_DONE : err == -EAGAIN || !libc->is_known ? PLACING_WAITS : PLACING_FAILED; /* the C library is mapped after the program */
	if (placed->placing == PLACING_DONE && !placed->is_counted)
		note_placed(keeper, placed, &kept->image);
	if (placed->placing == PLACING_FAILED && !kept->is_refused)
		note_refused(keeper, process, kept, diag.text[0] ? diag.text : strerror(-err));
}

/* The interpreters of one file that the process maps. 0 or -ENOMEM. */
static int place_file(struct runtime_keeper *keeper, uint32_t tgid, uint32_t generation, const struct process_mapping *mapping, const struct libc_facts *libc,
		      uint32_t *runtimes)
{
	const struct kept_file *file = file_of(keeper, mapping->object);

	for (uint32_t i = 0; file && i < file->nr_images; i++) {
		struct kept_image *kept = &file->images[i];
		uint32_t bit = 1u << kept->image.runtime;
		struct kept_process *process;
		int err;

		if (!kept->image.is_supported || *runtimes & bit)
			continue;
		err = enter(keeper, tgid, &process);
		if (err)
			return err;
		process->generation = generation;
		process->placed[kept->image.runtime].object = mapping->object;
		process->placed[kept->image.runtime].image = i;
		place(keeper, process, kept, mapping->load_bias, libc);
		*runtimes |= bit;
	}
	return 0;
}

int runtime_keeper_tell(struct runtime_keeper *keeper, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr_mappings,
			uint32_t *ret_runtimes)
{
	struct libc_facts libc = { 0 };
	struct kept_process *process;
	uint32_t runtimes = 0;

	*ret_runtimes = 0;
	for (uint32_t i = 0; i < nr_mappings; i++) {
		int err = meet(keeper, mappings[i].object);
		const struct kept_file *file = file_of(keeper, mappings[i].object);

		if (err)
			return err;
		if (file && file->libc.is_known && !libc.is_known)
			libc = file->libc;
	}
	for (uint32_t i = 0; i < nr_mappings; i++) {
		int err = place_file(keeper, tgid, generation, &mappings[i], &libc, &runtimes);

		if (err)
			return err;
	}
	if (!runtimes)
		leave(keeper, tgid);
	process = process_of(keeper, tgid);
	for (uint32_t kind = 0; process && kind < SONDE_RUNTIME_COUNT; kind++) {
		if (!(runtimes & 1u << kind))
			unset(keeper, process, kind);
		if (process->placed[kind].placing == PLACING_DONE)
			*ret_runtimes |= 1u << kind;
	}
	return 0;
}

static bool is_waiting(const struct kept_process *process)
{
	for (uint32_t kind = 0; kind < SONDE_RUNTIME_COUNT; kind++) {
		if (process->placed[kind].placing == PLACING_WAITS)
			return true;
	}
	return false;
}

void runtime_keeper_retry(struct runtime_keeper *keeper)
{
	for (uint32_t i = 0; i < keeper->nr_kept; i++) {
		struct kept_process *process = keeper->kept[i];

		if (is_waiting(process) && process->nr_retries++ < MAX_RETRIES)
			process_table_renew(keeper->processes, process->tgid);
	}
}

bool runtime_keeper_load(struct runtime_keeper *keeper)
{
	uint32_t kind = 0;

	if (!keeper->wanted)
		return false;
	while (!(keeper->wanted >> kind & 1))
		kind++;
	sampler_load_runtime(keeper->sampler, kind);
	keeper->wanted = 0; /* who waits for another says so again */
	for (uint32_t i = 0; i < keeper->nr_kept; i++) {
		if (is_waiting(keeper->kept[i]))
			process_table_renew(keeper->processes, keeper->kept[i]->tgid);
	}
	return true;
}

/* --- names ----------------------------------------------------------------------------------------------------------------------------- */

static void unsupported_text(const struct runtime_image *image, char *to, size_t size)
{
	char version[32];

	snprintf(to, size, "[unsupported %s: %s]", version_of(image, version, sizeof(version)), image->reason);
}

/* Takes note of what a frame led to. After enough that is nothing, and no function ever, the layout is another than we know. */
static void judge(struct runtime_keeper *keeper, struct kept_image *kept, const char *path, int err)
{
	if (!err)
		kept->nr_good++;
	if (err != -EBADMSG || kept->nr_good || ++kept->nr_bad < BAD_FRAMES || !kept->image.is_supported)
		return;
	kept->image.is_supported = 0;
	snprintf(kept->image.reason, sizeof(kept->image.reason), "its data are not laid out as in the versions that we know");
	note_unsupported(keeper, &kept->image, path);
}

bool runtime_keeper_describe(struct runtime_keeper *keeper, uint32_t tgid, const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	const struct runtime *runtime = runtime_of(frame->runtime);
	const struct kept_process *process = process_of(keeper, tgid);
	const struct placed *placed = process && runtime ? &process->placed[frame->runtime] : NULL;
	const struct runtime_memory memory = { .read = read_memory, .arg = &tgid };
	struct kept_image *kept;
	int err = -ESRCH;

	*ret_function = (struct runtime_function){ 0 };
	if (placed && placed->placing == PLACING_DONE && runtime->describe) {
		kept = &keeper->files[placed->object].images[placed->image];
		if (kept->image.is_supported)
			err = runtime->describe(&kept->image, &placed->known, &memory, frame, ret_function);
		judge(keeper, kept, object_table_at(process_table_objects(keeper->processes), placed->object)->path, err);
		if (!kept->image.is_supported) {
			unsupported_text(&kept->image, ret_function->name, sizeof(ret_function->name));
			return true;
		}
	}
	if (!err)
		return false;
	*ret_function = (struct runtime_function){ 0 };
	snprintf(ret_function->name, sizeof(ret_function->name), "[unknown]");
	keeper->account->nr_frames_unnamed++;
	return false;
}

void runtime_keeper_touch(uint32_t tgid, uint64_t pc)
{
	uint8_t byte;

	process_memory_read_some(tgid, pc, &byte, sizeof(byte));
}

static bool is_loop(const struct runtime_image *image, uint64_t elf_vaddr)
{
	for (uint32_t i = 0; i < image->nr_loops; i++) {
		if (elf_vaddr - image->loops[i].start_pc < image->loops[i].end_pc - image->loops[i].start_pc)
			return true;
	}
	return false;
}

bool runtime_keeper_mark(const struct runtime_keeper *keeper, uint32_t object, uint64_t elf_vaddr, bool has_frames, char *to, size_t size)
{
	const struct kept_file *file = file_of(keeper, object);

	for (uint32_t i = 0; file && i < file->nr_images; i++) {
		const struct runtime_image *image = &file->images[i].image;

		if ((image->is_supported && has_frames) || !is_loop(image, elf_vaddr))
			continue;
		if (image->is_supported)
			snprintf(to, size, RUNTIME_NOT_KNOWN, runtime_of(image->runtime)->name);
		else
			unsupported_text(image, to, size);
		return true;
	}
	return false;
}
