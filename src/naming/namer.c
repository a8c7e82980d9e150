// SPDX-License-Identifier: Apache-2.0
#include "naming/namer_private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "track/runtime_marks.h"

#define LOCATIONS_BYTES_MAX ((size_t)4 << 30)

struct namer *namer_new(const struct place_table *places, struct place_files *files, const struct naming *naming, struct profile *profile)
{
	struct namer *namer = calloc(1, sizeof(*namer));

	if (!namer)
		return NULL;
	namer->places = places;
	namer->files = files;
	namer->naming = naming;
	namer->profile = profile;
	namer->symbolizer = kernel_names_symbolizer(naming->kernel);
	namer->locations = BUFFER_INIT(LOCATIONS_BYTES_MAX);
	namer->named = calloc(place_nr(places) + 1, sizeof(*namer->named));
	if (!namer->named) {
		namer_free(namer);
		return NULL;
	}
	return namer;
}

void namer_free(struct namer *namer)
{
	if (!namer)
		return;
	free(namer->named);
	buffer_done(&namer->locations);
	free(namer);
}

uint32_t namer_nr_skipped(const struct namer *namer)
{
	return namer->nr_skipped;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static const struct object *object_of(const struct namer *namer, const struct place *place)
{
	const struct place_file *file = place_files_file(namer->files, place->object);

	return file ? &file->object : NULL;
}

/* The name for a place that no symbol covers. */
static void describe(const struct namer *namer, const struct place *place, char *to, size_t size)
{
	const struct object *object = object_of(namer, place);

	if (object)
		snprintf(to, size, "[%s+0x%" PRIx64 "]", base_name(object->path), place->elf_vaddr);
	else
		snprintf(to, size, "[unknown]");
}

static uint32_t add_function(struct namer *namer, const struct symbol_name *name)
{
	struct profile_function function = {
		.name = profile_string(namer->profile, name->name),
		.system_name = profile_string(namer->profile, name->system_name),
		.file = profile_string(namer->profile, name->file),
		.line = name->start_line,
	};

	if (function.name == PROFILE_NONE || function.system_name == PROFILE_NONE || function.file == PROFILE_NONE)
		return PROFILE_NONE;
	return profile_function(namer->profile, &function);
}

static uint32_t add_mapping(struct namer *namer, const struct place *place)
{
	const struct object *object = object_of(namer, place);
	char build_id[2 * BUILD_ID_MAX + 1] = "";
	struct profile_mapping mapping = { .start_pc = place->start_pc, .end_pc = place->end_pc, .file_off = place->file_off };

	if (!object)
		return PROFILE_NONE;
	if (object->elf)
		build_id_text(elf_file_build_id(object->elf), build_id);
	mapping.path = profile_string(namer->profile, object->path);
	mapping.build_id = profile_string(namer->profile, build_id);
	if (mapping.path == PROFILE_NONE || mapping.build_id == PROFILE_NONE)
		return PROFILE_NONE;
	return profile_mapping(namer->profile, &mapping);
}

/* Did a BPF program come to where other code was when the place was first met? */
static bool is_too_late(const struct namer *namer, const struct symbol_name *name, const struct place *place)
{
	const struct kernel_code *program = symbolizer_program(namer->symbolizer, name->start);

	if (!program) /* loaded since we asked for them */
		return kernel_names_know_programs(namer->naming->kernel) && strncmp(name->name, "bpf_prog_", 9) == 0;
	return program->since_ns > place->first_ns;
}

int namer_kernel_name(struct namer *namer, const struct place *place, struct symbol_name *ret_name)
{
	int err = symbolizer_kernel(namer->symbolizer, namer_code(namer, place), ret_name);

	if (err == -EACCES && !namer->kernel_hidden) {
		account_note(profile_account(namer->profile),
			     "the kernel hides its addresses, so kernel functions have no names: CAP_SYSLOG is needed, or kernel.kptr_restrict=0");
		namer->kernel_hidden = true;
	}
	return !err && is_too_late(namer, ret_name, place) ? -ENOENT : err;
}

uint64_t namer_code(const struct namer *namer, const struct place *place)
{
	uint64_t address = place->in_elf ? place->elf_vaddr : place->pc;

	if (!place->is_return)
		return address;
	return place->tgid ? address - 1 : symbolizer_kernel_call(namer->symbolizer, address);
}

/* Puts one location behind the others. 0 or -ENOMEM. */
static int add_location(struct namer *namer, struct profile_location location, const struct symbol_name *name)
{
	uint32_t number;

	location.function = add_function(namer, name);
	if (location.function == PROFILE_NONE)
		return -ENOMEM;
	location.line = name->line;
	number = profile_location(namer->profile, &location);
	if (number == PROFILE_NONE)
		return -ENOMEM;
	buffer_append(&namer->locations, &number, sizeof(number));
	return namer->locations.err;
}

int namer_add(struct namer *namer, uint32_t number, const struct symbol_name *names, uint32_t nr)
{
	const struct place *place = place_at(namer->places, number);
	struct profile_location location = {
		.pc = place->pc,
		.elf_vaddr = place->elf_vaddr,
		.mapping = add_mapping(namer, place),
		.kind = place->tgid ? FRAME_NATIVE : FRAME_KERNEL,
	};
	int err = 0;

	namer->named[number] = (struct named){ .first = (uint32_t)(namer->locations.size / sizeof(uint32_t)), .nr = nr };
	for (uint32_t i = 0; i < nr && !err; i++) {
		location.is_inlined = i + 1 < nr;
		location.function_off = location.is_inlined || !names[i].start ? 0 : (place->in_elf ? place->elf_vaddr : place->pc) - names[i].start;
		err = add_location(namer, location, &names[i]);
	}
	return err;
}

static int add_other(struct namer *namer, uint32_t number)
{
	const struct place *place = place_at(namer->places, number);
	struct symbol_name name;
	char text[320];

	if (!place->tgid && !namer_kernel_name(namer, place, &name))
		return namer_add(namer, number, &name, 1);
	describe(namer, place, text, sizeof(text));
	return namer_add(namer, number, &(struct symbol_name){ .name = text, .system_name = "", .file = "" }, 1);
}

const uint32_t *namer_locations(struct namer *namer, uint32_t place, uint32_t *ret_nr)
{
	struct named *named = &namer->named[place];

	if (!named->nr && add_other(namer, place))
		return NULL;
	*ret_nr = named->nr;
	return (const uint32_t *)namer->locations.data + named->first;
}

static uint32_t add_special(struct namer *namer, const char *name, enum frame_kind kind)
{
	struct symbol_name named = { .name = name, .system_name = "", .file = "" };
	struct profile_location location = { .mapping = PROFILE_NONE, .kind = kind, .function = add_function(namer, &named) };

	return location.function == PROFILE_NONE ? PROFILE_NONE : profile_location(namer->profile, &location);
}

uint32_t namer_mark(struct namer *namer, enum sonde_stop stop, uint32_t last_place)
{
	const struct object *object = last_place == PLACE_NO_MEMORY ? NULL : object_of(namer, place_at(namer->places, last_place));
	const char *file = object ? base_name(object->path) : "anonymous memory", *mark = stop_mark(stop), *hole = strstr(mark, "%s");
	char text[320];

	if (hole)
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(hole - mark), mark, file, hole + 2);
	else
		snprintf(text, sizeof(text), "%s", mark);
	return add_special(namer, text, FRAME_MARK);
}

uint32_t namer_no_natives(struct namer *namer)
{
	return add_special(namer, PROFILE_NO_NATIVES, FRAME_MARK);
}

uint32_t namer_cut(struct namer *namer)
{
	return add_special(namer, PROFILE_CUT, FRAME_MARK);
}

bool namer_has_runtime_mark(struct namer *namer, uint32_t place, uint32_t caller, bool has_frames, uint32_t *ret_mark)
{
	const struct place *at = place_at(namer->places, place);
	bool is_made = !at->in_elf && caller != PLACE_NO_MEMORY;
	struct runtime_site site = { .is_made = is_made, .has_frames = has_frames };
	const struct place_file *file;
	char text[256];

	if (is_made)
		at = place_at(namer->places, caller);
	site.elf_vaddr = at->elf_vaddr - at->is_return;
	file = at->in_elf ? place_files_file(namer->files, at->object) : NULL;
	if (!file || !runtime_marks_of(file->images, file->nr_images, &site, text, sizeof(text)))
		return false;
	*ret_mark = add_special(namer, text, FRAME_MARK);
	return true;
}

bool namer_is_loop(const struct namer *namer, uint32_t place)
{
	const struct place *at = place_at(namer->places, place);
	const struct place_file *file = at->in_elf ? place_files_file(namer->files, at->object) : NULL;

	return file && runtime_marks_is_loop(file->images, file->nr_images, at->elf_vaddr - at->is_return);
}

uint32_t namer_missed(struct namer *namer, bool kernel)
{
	return add_special(namer, kernel ? PROFILE_MISSED_KERNEL : PROFILE_MISSED_USER, FRAME_MISSED);
}

bool namer_is_scheduler(const struct namer *namer, uint32_t location)
{
	const struct profile_location *at = profile_location_at(namer->profile, location);

	return at->kind == FRAME_KERNEL && symbolizer_is_scheduler(namer->symbolizer, at->pc);
}
