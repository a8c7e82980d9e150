// SPDX-License-Identifier: Apache-2.0
#include "track/runtime_loader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/u64_map.h"
#include "process/allowance.h"
#include "proxy/proxy.h"
#include "track/runtime_marks.h"

#define BAD_FRAMES 8   /* a runtime whose first frames are all bad is given up after so many */
#define MAX_RETRIES 200
#define PROOFS_NS (500 * NS_PER_MS) /* time to read a process's code in, and one part of so many of the time that passes */
#define PROOFS_SHARE 10
#define MAX_RECOGNISED 4096 /* processes, ended ones included; then all are forgotten */

/* An interpreter in a file. */
struct kept_image {
	struct runtime_image image;
	uint32_t nr_good, nr_bad; /* frames that led to a function, or to nothing valid; counted until the first good one */
	bool is_refused;          /* noted: once, not for each process */
	bool is_second;           /* likewise */
};

/* The contents of a file. */
struct kept_file {
	bool is_examined;
	struct libc_facts libc;
	uint32_t nr_images;
	struct kept_image *images; /* owned; NULL: none, as in most files */
};

enum placing { PLACING_NONE, PLACING_DONE, PLACING_WAITS, PLACING_FAILED };

/* An interpreter in a process. */
struct placed {
	enum placing placing;
	bool is_counted; /* in the account */
	uint32_t object, image; /* the image's number in the file */
	struct sonde_code_range compiled; /* the code that it made; both 0: none */
	union sonde_runtime_known known;
};

struct kept_process {
	uint32_t tgid, generation;
	uint32_t nr_retries;
	struct allowance proofs;
	uint32_t waiting; /* bits: those that are PLACING_WAITS */
	struct placed placed[SONDE_RUNTIME_COUNT];
};

/* A process to be reported to the kernel side. */
struct tell {
	const struct process_mapping *mappings;
	uint32_t nr_mappings;
	struct libc_facts libc;
};

struct runtime_loader {
	struct sampler *sampler;
	struct parser *parser;
	struct proxy *proxy;
	struct process_table *processes;
	struct account *account;
	struct table_cache *cache;    /* or NULL */
	struct kept_file *files;      /* by object */
	uint32_t nr_files;
	uint32_t serial;              /* of the last entry passed to the kernel side */
	uint32_t off;                 /* bits: runtimes of which no notice is taken */
	uint32_t wanted;              /* bits: programs that are not loaded yet */
	struct kept_process **kept;   /* those that run an interpreter */
	uint32_t nr_kept, capacity;
	bool has_waiting;             /* one of them may be tried again */
	struct u64_map by_tgid;       /* number in `kept` */
	struct u64_map recognised;    /* recognised_number by tgid */
	uint32_t nr_recognised;
};

struct runtime_loader *runtime_loader_new(struct sampler *sampler, struct parser *parser, struct proxy *proxy,
					  struct process_table *processes, struct account *account)
{
	struct runtime_loader *loader = calloc(1, sizeof(*loader));

	if (loader)
		*loader = (struct runtime_loader){
			.sampler = sampler, .parser = parser, .proxy = proxy, .processes = processes, .account = account
		};
	return loader;
}

void runtime_loader_use_cache(struct runtime_loader *loader, struct table_cache *cache)
{
	loader->cache = cache;
}

void runtime_loader_switch_off(struct runtime_loader *loader, uint32_t off)
{
	loader->off = off;
}

void runtime_loader_free(struct runtime_loader *loader)
{
	if (!loader)
		return;
	for (uint32_t i = 0; i < loader->nr_files; i++)
		free(loader->files[i].images);
	for (uint32_t i = 0; i < loader->nr_kept; i++)
		free(loader->kept[i]);
	free(loader->files);
	free(loader->kept);
	u64_map_done(&loader->by_tgid);
	u64_map_done(&loader->recognised);
	free(loader);
}

/* --- files ---------------------------------------------------------------------------------------------------------------------------- */

static const struct kept_file *file_of(const struct runtime_loader *loader, uint32_t object)
{
	return object < loader->nr_files && loader->files[object].is_examined ? &loader->files[object] : NULL;
}

static const char *version_of(const struct runtime_image *image, char *to, size_t size)
{
	if (runtime_of(image->runtime)->called)
		snprintf(to, size, "%s", runtime_of(image->runtime)->called);
	else
		snprintf(to, size, "%s %u.%u", runtime_name(image->runtime), image->version[0], image->version[1]);
	return to;
}

static void note_unsupported(struct runtime_loader *loader, const struct runtime_image *image, const char *path)
{
	const struct recognised *recognised = image->runtime == SONDE_RUNTIME_NONE ? recognised_find(image->reason) : NULL;
	char version[32];

	if (recognised && recognised->compiles) {
		account_note(loader->account, "%s of %s is not walked: its functions have the names of a perf map alone", image->reason,
			     path);
		return;
	}
	if (image->runtime == SONDE_RUNTIME_NONE) {
		account_note(loader->account, "%s of %s is not walked: its frames are missing", image->reason, path);
		return;
	}
	account_note(loader->account, "%s of %s is not supported: %s", version_of(image, version, sizeof(version)), path, image->reason);
}

static int take_images(struct runtime_loader *loader, struct kept_file *file, const struct file_runtimes *runtimes, const char *path)
{
	file->libc = runtimes->libc;
	if (!runtimes->nr_images)
		return 0;
	file->images = calloc(runtimes->nr_images, sizeof(*file->images));
	if (!file->images)
		return -ENOMEM;
	for (uint32_t i = 0; i < runtimes->nr_images; i++) {
		if (loader->off >> runtimes->images[i].runtime & 1)
			continue;
		file->images[file->nr_images++].image = runtimes->images[i];
		if (!runtimes->images[i].is_supported)
			note_unsupported(loader, &runtimes->images[i], path);
	}
	return 0;
}

int runtime_loader_meet(struct runtime_loader *loader, uint32_t object)
{
	const struct object *of;
	struct file_runtimes runtimes;
	int err;

	if (object == OBJECT_NONE || file_of(loader, object))
		return 0;
	if (object >= loader->nr_files) {
		uint32_t nr = object + object / 2 + 64;
		struct kept_file *files = reallocarray(loader->files, nr, sizeof(*files));

		if (!files)
			return -ENOMEM;
		memset(files + loader->nr_files, 0, (nr - loader->nr_files) * sizeof(*files));
		loader->files = files;
		loader->nr_files = nr;
	}
	of = object_table_at(process_table_objects(loader->processes), object);
	err = of->elf ? parser_runtimes(loader->parser, object, of->elf, NULL, &runtimes) : -ENODATA;
	if (err == -EINPROGRESS)
		return err;
	loader->files[object].is_examined = true;
	if (err) /* a file that cannot be read has none; the name lookup reports the reason */
		return 0;
	return take_images(loader, &loader->files[object], &runtimes, of->path);
}

void runtime_loader_forget(struct runtime_loader *loader, uint32_t object)
{
	if (object >= loader->nr_files)
		return;
	free(loader->files[object].images);
	loader->files[object] = (struct kept_file){ 0 };
}

void runtime_loader_expect(struct runtime_loader *loader, uint32_t object)
{
	const struct kept_file *file = file_of(loader, object);

	for (uint32_t i = 0; file && i < file->nr_images; i++)
		loader->wanted |= file->images[i].image.is_supported ? 1u << file->images[i].image.runtime : 0;
}

/* --- processes ------------------------------------------------------------------------------------------------------------------------ */

static struct kept_process *process_of(const struct runtime_loader *loader, uint32_t tgid)
{
	const uint32_t *number = u64_map_find(&loader->by_tgid, tgid);

	return number ? loader->kept[*number] : NULL;
}

static int enter(struct runtime_loader *loader, uint32_t tgid, struct kept_process **ret_process)
{
	struct kept_process *process;

	*ret_process = process_of(loader, tgid);
	if (*ret_process)
		return 0;
	if (loader->nr_kept == loader->capacity) {
		uint32_t capacity = loader->capacity * 2 + 16;
		struct kept_process **kept = reallocarray(loader->kept, capacity, sizeof(*kept));

		if (!kept)
			return -ENOMEM;
		loader->kept = kept;
		loader->capacity = capacity;
	}
	process = calloc(1, sizeof(*process));
	if (!process || u64_map_add(&loader->by_tgid, tgid, loader->nr_kept)) {
		free(process);
		return -ENOMEM;
	}
	process->tgid = tgid;
	process->proofs = allowance_new(PROOFS_NS);
	loader->kept[loader->nr_kept++] = process;
	*ret_process = process;
	return 0;
}

static void unset(struct runtime_loader *loader, struct kept_process *process, uint32_t kind)
{
	if (process->placed[kind].placing == PLACING_DONE && loader->sampler)
		sampler_unset_runtime(loader->sampler, kind, process->tgid);
	process->placed[kind].placing = PLACING_NONE;
	process->waiting &= ~(1u << kind);
}

static void leave(struct runtime_loader *loader, uint32_t tgid)
{
	struct kept_process *process = process_of(loader, tgid), *last;
	uint32_t number;

	if (!process)
		return;
	for (uint32_t kind = 0; kind < SONDE_RUNTIME_COUNT; kind++)
		unset(loader, process, kind);
	number = *u64_map_find(&loader->by_tgid, tgid);
	last = loader->kept[--loader->nr_kept];
	u64_map_remove(&loader->by_tgid, tgid, number);
	if (last != process) {
		*u64_map_find(&loader->by_tgid, last->tgid) = number;
		loader->kept[number] = last;
	}
	free(process);
}

static int read_memory(void *arg, uint64_t from, void *to, size_t size)
{
	return proxy_memory_read(arg, from, to, size);
}

static void note_placed(struct runtime_loader *loader, struct placed *placed, const struct runtime_image *image)
{
	const struct object *file = object_table_at(process_table_objects(loader->processes), placed->object);
	const char *called = runtime_of(image->runtime)->called;
	char version[16];

	if (loader->cache && file->elf && runtime_of(image->runtime)->describe) /* a runtime without frames loses none at the start */
		table_cache_note_interpreter(loader->cache, file->elf, file->path);
	snprintf(version, sizeof(version), "%u.%u.%u", image->version[0], image->version[1], image->version[2]);
	if (called)
		account_runtime(loader->account, called, "", 1);
	else
		account_runtime(loader->account, runtime_name(image->runtime), version, 1);
	placed->is_counted = true;
}

static void note_refused(struct runtime_loader *loader, const struct kept_process *process, struct kept_image *kept, const char *why)
{
	char version[32];

	account_note(loader->account, "what %s runs in process %u is not shown: %s", version_of(&kept->image, version, sizeof(version)),
		     process->tgid, why);
	kept->is_refused = true;
}

static bool owns_frames(uint32_t kind)
{
	return (uint32_t)SONDE_RUNTIMES_THAT_OWN_CODE >> kind & 1;
}

static bool is_made(const struct runtime_loader *loader, const struct process_mapping *mapping)
{
	return mapping->object == OBJECT_NONE || !object_table_at(process_table_objects(loader->processes), mapping->object)->elf;
}

/* Is code that the runtime owns in this mapping of its own file? Then *ret_part is it. */
static bool owns_part(struct placed *placed, const struct runtime *runtime, const struct process_mapping *mapping,
		      struct sonde_code_range *ret_part)
{
	return runtime->owns_part && mapping->object == placed->object &&
	       runtime->owns_part(&placed->known, mapping->load_bias, mapping->start_pc, mapping->end_pc, ret_part);
}

/* Records the code of the file that a runtime owns. */
static void find_parts(struct placed *placed, const struct runtime *runtime, const struct tell *tell)
{
	struct sonde_code_range part;

	for (uint32_t i = 0; i < tell->nr_mappings; i++)
		(void)owns_part(placed, runtime, &tell->mappings[i], &part);
}

/* Looks for code that runs on the frame of the interpreter's loop, in memory without a file. */
static void find_compiled(const struct runtime_loader *loader, struct placed *placed, const struct runtime_image *image,
		      const struct runtime_memory *memory, const struct tell *tell)
{
	const struct runtime *runtime = runtime_of(image->runtime);

	placed->compiled = (struct sonde_code_range){ 0 };
	for (uint32_t i = 0; runtime->owns_code && !owns_frames(image->runtime) && i < tell->nr_mappings; i++) {
		const struct process_mapping *mapping = &tell->mappings[i];

		if (!is_made(loader, mapping) || !runtime->owns_code(image, memory, mapping->start_pc, mapping->end_pc, &placed->known))
			continue;
		placed->compiled = (struct sonde_code_range){ mapping->start_pc, mapping->end_pc };
		break;
	}
}

static void place(struct runtime_loader *loader, struct kept_process *process, struct kept_image *kept, uint64_t load_bias,
		  const struct tell *tell)
{
	const struct libc_facts *libc = &tell->libc;
	struct placed *placed = &process->placed[kept->image.runtime];
	CLEANUP(proxy_memory_done) struct proxy_memory live = PROXY_MEMORY_OF(loader->proxy, process->tgid);
	const struct runtime_memory memory = { .read = read_memory, .arg = &live };
	struct diag diag = { 0 };
	int err;

	placed->known = (union sonde_runtime_known){ 0 };
	err = runtime_of(kept->image.runtime)->place(&kept->image, load_bias, libc, &memory, &diag, &placed->known);
	placed->known.process.generation = process->generation;
	placed->known.process.serial = ++loader->serial;
	if (!err)
		find_parts(placed, runtime_of(kept->image.runtime), tell);
	if (!err)
		find_compiled(loader, placed, &kept->image, &memory, tell);
	if (!err && loader->sampler) {
		err = sampler_set_runtime(loader->sampler, kept->image.runtime, process->tgid, &placed->known, &diag);
		loader->wanted |= err == -EAGAIN ? 1u << kept->image.runtime : 0;
	}
	/* the C library is mapped after the program */
	placed->placing = !err ? PLACING_DONE : err == -EAGAIN || !libc->is_known ? PLACING_WAITS : PLACING_FAILED;
	process->waiting &= ~(1u << kept->image.runtime);
	process->waiting |= (uint32_t)(placed->placing == PLACING_WAITS) << kept->image.runtime;
	loader->has_waiting |= process->waiting != 0;
	if (placed->placing == PLACING_DONE && !placed->is_counted)
		note_placed(loader, placed, &kept->image);
	if (placed->placing == PLACING_FAILED && !kept->is_refused)
		note_refused(loader, process, kept, diag.text[0] ? diag.text : strerror(-err));
}

/* A runtime may map code of its file again, elsewhere: the file's own mapping, which has the load bias, is larger. */
static uint64_t load_bias_of(const struct tell *tell, uint32_t object)
{
	const struct process_mapping *largest = NULL;

	for (uint32_t i = 0; i < tell->nr_mappings; i++) {
		const struct process_mapping *mapping = &tell->mappings[i];

		if (mapping->object == object && (!largest || mapping->end_pc - mapping->start_pc > largest->end_pc - largest->start_pc))
			largest = mapping;
	}
	return largest ? largest->load_bias : 0;
}

/* Of a second file with labels nothing shows that they are missing, as it does for frames. */
static void note_second(struct runtime_loader *loader, uint32_t tgid, uint32_t object, struct kept_image *kept)
{
	const struct kept_process *process = process_of(loader, tgid);
	const struct object_table *objects = process_table_objects(loader->processes);
	char version[32];

	if (kept->is_second || !process || !runtime_of(kept->image.runtime)->called ||
	    process->placed[kept->image.runtime].object == object)
		return;
	account_note(loader->account, "%s of %s in process %u is not read, as that of %s is",
		     version_of(&kept->image, version, sizeof(version)), object_table_at(objects, object)->path, tgid,
		     object_table_at(objects, process->placed[kept->image.runtime].object)->path);
	kept->is_second = true;
}

/* Places the interpreters of one file that the process maps, each kind once: so the mappings are searched once for each. 0 or -ENOMEM. */
static int location_file(struct runtime_loader *loader, uint32_t tgid, uint32_t generation, uint32_t object, const struct tell *tell,
			 uint32_t *runtimes)
{
	const struct kept_file *file = file_of(loader, object);

	for (uint32_t i = 0; file && i < file->nr_images; i++) {
		struct kept_image *kept = &file->images[i];
		uint32_t bit = 1u << kept->image.runtime;
		struct kept_process *process;
		int err;

		if (!kept->image.is_supported)
			continue;
		if (*runtimes & bit) {
			note_second(loader, tgid, object, kept);
			continue;
		}
		err = enter(loader, tgid, &process);
		if (err)
			return err;
		process->generation = generation;
		process->placed[kept->image.runtime].object = object;
		process->placed[kept->image.runtime].image = i;
		place(loader, process, kept, load_bias_of(tell, object), tell);
		*runtimes |= bit;
	}
	return 0;
}

static void forget_recognised(struct runtime_loader *loader, uint32_t tgid)
{
	const uint32_t *number = u64_map_find(&loader->recognised, tgid);

	if (!number)
		return;
	u64_map_remove(&loader->recognised, tgid, *number);
	loader->nr_recognised--;
}

/* Records the first runtime in the mappings that is only recognised. An ended process keeps its own: its frames may get their marks later.
 * 0 or -ENOMEM. */
static int note_recognised(struct runtime_loader *loader, uint32_t tgid, const struct tell *tell)
{
	const struct recognised *found = NULL;

	for (uint32_t i = 0; i < tell->nr_mappings && !found; i++) {
		const struct kept_file *file = file_of(loader, tell->mappings[i].object);

		for (uint32_t image = 0; file && image < file->nr_images && !found; image++) {
			if (file->images[image].image.runtime == SONDE_RUNTIME_NONE)
				found = recognised_find(file->images[image].image.reason);
		}
	}
	if (tell->nr_mappings)
		forget_recognised(loader, tgid);
	if (!found)
		return 0;
	if (loader->nr_recognised == MAX_RECOGNISED) {
		u64_map_done(&loader->recognised);
		loader->recognised = (struct u64_map){ 0 };
		loader->nr_recognised = 0;
	}
	loader->nr_recognised++;
	return u64_map_add(&loader->recognised, tgid, recognised_number(found));
}

const struct recognised *runtime_loader_recognised(const struct runtime_loader *loader, uint32_t tgid)
{
	const uint32_t *number = u64_map_find(&loader->recognised, tgid);

	return number ? recognised_at(*number) : NULL;
}

int runtime_loader_tell(struct runtime_loader *loader, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings,
			uint32_t nr_mappings, uint32_t *ret_runtimes)
{
	struct tell tell = { .mappings = mappings, .nr_mappings = nr_mappings };
	struct kept_process *process;
	uint32_t runtimes = 0;

	*ret_runtimes = 0;
	for (uint32_t i = 0; i < nr_mappings; i++) {
		const struct kept_file *file = file_of(loader, mappings[i].object);

		if (file && file->libc.is_known && !tell.libc.is_known)
			tell.libc = file->libc;
	}
	if (note_recognised(loader, tgid, &tell))
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_mappings; i++) {
		int err = location_file(loader, tgid, generation, mappings[i].object, &tell, &runtimes);

		if (err)
			return err;
	}
	if (!runtimes)
		leave(loader, tgid);
	process = process_of(loader, tgid);
	for (uint32_t kind = 0; process && kind < SONDE_RUNTIME_COUNT; kind++) {
		if (!(runtimes & 1u << kind))
			unset(loader, process, kind);
		if (process->placed[kind].placing == PLACING_DONE && (!owns_frames(kind) || SONDE_RUNTIMES_THAT_BRIDGE >> kind & 1))
			*ret_runtimes |= 1u << kind;
	}
	return 0;
}

bool runtime_loader_compiled(const struct runtime_loader *loader, uint32_t tgid, uint64_t start_pc, uint32_t *ret_object,
			     struct sonde_code_range *ret_loop)
{
	const struct kept_process *process = process_of(loader, tgid);

	for (uint32_t kind = 0; process && kind < SONDE_RUNTIME_COUNT; kind++) {
		const struct placed *placed = &process->placed[kind];

		if (placed->placing == PLACING_NONE || !placed->compiled.end_pc || placed->compiled.start_pc != start_pc)
			continue;
		*ret_object = placed->object;
		*ret_loop = loader->files[placed->object].images[placed->image].image.loops[0];
		return true;
	}
	return false;
}

const union sonde_runtime_known *runtime_loader_known(const struct runtime_loader *loader, uint32_t tgid, uint32_t generation,
						      uint32_t kind)
{
	const struct kept_process *process = process_of(loader, tgid);

	return process && process->placed[kind].placing == PLACING_DONE && process->placed[kind].known.process.generation == generation
		   ? &process->placed[kind].known
		   : NULL;
}

uint32_t runtime_loader_owner(const struct runtime_loader *loader, uint32_t tgid, const struct process_mapping *mapping,
			      struct sonde_code_range *ret_part, bool *ret_is_file)
{
	struct kept_process *process = process_of(loader, tgid);
	CLEANUP(proxy_memory_done) struct proxy_memory live = PROXY_MEMORY_OF(loader->proxy, tgid);
	const struct runtime_memory memory = { .read = read_memory, .arg = &live };

	*ret_part = (struct sonde_code_range){ mapping->start_pc, mapping->end_pc };
	for (uint32_t kind = 0; process && kind < SONDE_RUNTIME_COUNT; kind++) {
		struct placed *placed = &process->placed[kind];
		const struct runtime *runtime = runtime_of(kind);

		if (placed->placing != PLACING_DONE || !owns_frames(kind))
			continue;
		*ret_is_file = owns_part(placed, runtime, mapping, ret_part);
		if (*ret_is_file ||
		    (is_made(loader, mapping) &&
		     runtime->owns_code(&loader->files[placed->object].images[placed->image].image, &memory, mapping->start_pc,
					mapping->end_pc, &placed->known)))
			return kind;
	}
	return SONDE_RUNTIME_NONE;
}

void runtime_loader_retry(struct runtime_loader *loader)
{
	uint32_t nr = loader->has_waiting ? loader->nr_kept : 0;

	loader->has_waiting = false;
	for (uint32_t i = 0; i < nr; i++) {
		struct kept_process *process = loader->kept[i];

		if (!process->waiting || process->nr_retries++ >= MAX_RETRIES)
			continue;
		process_table_renew(loader->processes, process->tgid);
		loader->has_waiting = true;
	}
}

bool runtime_loader_load(struct runtime_loader *loader)
{
	uint32_t kind = 0;

	if (!loader->wanted)
		return false;
	while (!(loader->wanted >> kind & 1))
		kind++;
	sampler_load_runtime(loader->sampler, kind);
	loader->wanted &= ~(1u << kind);
	for (uint32_t i = 0; i < loader->nr_kept; i++) {
		if (loader->kept[i]->waiting)
			process_table_renew(loader->processes, loader->kept[i]->tgid);
	}
	return true;
}

/* --- names ---------------------------------------------------------------------------------------------------------------------------- */

/* Records whether a frame was valid. After BAD_FRAMES bad frames and no good one, the layout is not one that we know. */
static void judge(struct runtime_loader *loader, struct kept_image *kept, const char *path, int err)
{
	if (!err)
		kept->nr_good++;
	if (err != -EBADMSG || kept->nr_good || ++kept->nr_bad < BAD_FRAMES || !kept->image.is_supported)
		return;
	kept->image.is_supported = 0;
	snprintf(kept->image.reason, sizeof(kept->image.reason), "its data are not laid out as in the versions that we know");
	note_unsupported(loader, &kept->image, path);
}

/* Reads only the copy: the memory around it may have other contents by now. */
static int read_copy(void *arg, uint64_t from, void *to, size_t size)
{
	const struct sonde_code_record *copy = arg;

	for (uint32_t i = 0; i < SONDE_CODE_PIECES; i++) {
		uint64_t off = from - copy->from[i];

		if (off > copy->sizes[i] || size > copy->sizes[i] - off || copy->offs[i] > sizeof(copy->bytes) ||
		    copy->sizes[i] > sizeof(copy->bytes) - copy->offs[i])
			continue;
		memcpy(to, copy->bytes + copy->offs[i] + off, size);
		return 0;
	}
	return -ENODATA;
}

/* Tries the copy first, which is consistent; reads the process's memory when the copy does not hold everything. */
static int describe_supported(const struct runtime_image *image, const struct placed *placed, struct proxy_memory *live,
			      const struct sonde_runtime_frame *frame, const struct sonde_code_record *copy,
			      struct runtime_function *ret_function)
{
	const struct runtime_memory memory = { .read = read_memory, .arg = live }, copied = { .read = read_copy, .arg = (void *)copy };
	const struct runtime *runtime = runtime_of(frame->runtime);
	int err = copy ? runtime->describe(image, &placed->known, &copied, frame, ret_function) : -ENODATA, live_err;

	if (!err && ret_function->line)
		return 0;
	live_err = runtime->describe(image, &placed->known, &memory, frame, ret_function);
	return err ? live_err : 0;
}

/* The frames of one runtime whose code is read. */
struct proof {
	const struct runtime_loader *loader;
	uint32_t kind;
};

static int proof_get(void *arg, const void *key, void *ret_rows)
{
	const struct proof *proof = arg;

	return proof->loader->sampler ? sampler_get_rows(proof->loader->sampler, proof->kind, key, ret_rows) : -ENOENT;
}

static void proof_set(void *arg, const void *key, const void *rows)
{
	const struct proof *proof = arg;

	if (proof->loader->sampler)
		sampler_set_rows(proof->loader->sampler, proof->kind, key, rows);
}

/* Must what the kernel side assumed of a frame be proved? */
static bool is_claimed(const struct sonde_runtime_frame *frame)
{
	const struct runtime *runtime = runtime_of(frame->runtime);

	return runtime && runtime->prove && frame->where & SONDE_RUNTIME_CLAIM;
}

/* Is it not true, or not to be proved any more, or has reading the process's code taken too long? */
static bool is_refuted(const struct runtime_loader *loader, const struct runtime_image *image, struct kept_process *process,
		       const struct sonde_runtime_frame *frame)
{
	CLEANUP(proxy_memory_done) struct proxy_memory live = PROXY_MEMORY_OF(loader->proxy, process->tgid);
	const struct runtime_memory memory = { .read = read_memory, .arg = &live };
	struct proof proof = { .loader = loader, .kind = frame->runtime };
	const struct runtime_rows rows = { .get = proof_get, .set = proof_set, .arg = &proof };
	uint64_t from_ns, begin_ns = clock_ns();
	bool is_true;
	int err;

	if (!allowance_is_given(&process->proofs, PROOFS_SHARE))
		return true;
	from_ns = allowance_cpu_ns(loader->proxy);
	err = runtime_of(frame->runtime)->prove(image, &process->placed[frame->runtime].known, &memory, frame, &rows, &is_true);
	allowance_charge(&process->proofs, loader->proxy, from_ns, clock_ns() - begin_ns);
	return err || !is_true;
}

/* 0, or a negative errno as from struct runtime's `describe`; 1: the runtime is not supported, the frame is a mark. */
static int describe_placed(struct runtime_loader *loader, struct kept_process *process, const struct sonde_runtime_frame *frame,
			   const struct sonde_code_record *copy, bool is_again, struct runtime_function *ret_function)
{
	const struct runtime *runtime = runtime_of(frame->runtime);
	const struct placed *placed = &process->placed[frame->runtime];
	CLEANUP(proxy_memory_done) struct proxy_memory live = PROXY_MEMORY_OF(loader->proxy, process->tgid);
	struct kept_image *kept;
	int err = -EAGAIN;

	if (placed->placing != PLACING_DONE || !runtime->describe)
		return err;
	kept = &loader->files[placed->object].images[placed->image];
	if (kept->image.is_supported)
		err = describe_supported(&kept->image, placed, &live, frame, copy, ret_function);
	if (kept->image.is_supported && is_claimed(frame) && !ret_function->level)
		ret_function->is_refuted = is_refuted(loader, &kept->image, process, frame);
	ret_function->is_lasting &= !ret_function->is_refuted; /* another time there may be a proof */
	if (!is_again || !err)
		judge(loader, kept, object_table_at(process_table_objects(loader->processes), placed->object)->path, err);
	if (kept->image.is_supported)
		return err;
	runtime_marks_unsupported(&kept->image, ret_function->name, sizeof(ret_function->name));
	return 1;
}

enum runtime_answer runtime_loader_describe(struct runtime_loader *loader, uint32_t tgid, uint32_t generation,
					    const struct sonde_runtime_frame *frame, const struct sonde_code_record *copy, bool is_again,
					    struct runtime_function *ret_function)
{
	struct kept_process *process = runtime_of(frame->runtime) ? process_of(loader, tgid) : NULL;
	uint32_t level = ret_function->level;
	int err;

	*ret_function = (struct runtime_function){ .level = level, .is_refuted = is_claimed(frame) };
	err = process ? describe_placed(loader, process, frame, copy, is_again, ret_function) : -ESRCH;
	if (err >= 0) {
		loader->account->nr_frames_unnamed -= is_again;
		return err || ret_function->is_mark ? RUNTIME_MARK : RUNTIME_NAMED;
	}
	*ret_function = (struct runtime_function){ .is_refuted = ret_function->is_refuted };
	snprintf(ret_function->name, sizeof(ret_function->name), "[unknown]");
	loader->account->nr_frames_unnamed += !is_again;
	/* a generation ends with an exec, but also with a replaced mapping */
	return err == -ESRCH || process->generation != generation ? RUNTIME_NEVER : RUNTIME_NOT_YET;
}

void runtime_loader_touch(const struct runtime_loader *loader, uint32_t tgid, uint64_t pc)
{
	uint8_t byte;

	proxy_read_memory_some(loader->proxy, tgid, pc, &byte, sizeof(byte));
}

uint32_t runtime_loader_nr_images(const struct runtime_loader *loader, uint32_t object)
{
	const struct kept_file *file = file_of(loader, object);

	return file ? file->nr_images : 0;
}

const struct runtime_image *runtime_loader_image(const struct runtime_loader *loader, uint32_t object, uint32_t i)
{
	return &file_of(loader, object)->images[i].image;
}
