// SPDX-License-Identifier: Apache-2.0
#include "session/namer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "symbolize/symbolizer.h"

struct namer {
	const struct place_table *places;
	const struct process_table *processes;
	struct profile *profile;
	struct symbolizer *symbolizer;
	uint32_t *locations; /* by place; PROFILE_NONE: not yet */
	bool kernel_hidden;  /* said once */
};

struct namer *namer_new(const struct place_table *places, const struct process_table *processes, struct profile *profile)
{
	struct namer *namer = calloc(1, sizeof(*namer));
	uint32_t nr = place_nr(places);

	if (!namer)
		return NULL;
	namer->places = places;
	namer->processes = processes;
	namer->profile = profile;
	namer->symbolizer = symbolizer_new(NULL);
	namer->locations = malloc((nr + 1) * sizeof(*namer->locations));
	if (!namer->symbolizer || !namer->locations) {
		namer_free(namer);
		return NULL;
	}
	memset(namer->locations, 0xff, (nr + 1) * sizeof(*namer->locations));
	return namer;
}

void namer_free(struct namer *namer)
{
	if (!namer)
		return;
	symbolizer_free(namer->symbolizer);
	free(namer->locations);
	free(namer);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static const struct object *object_of(const struct namer *namer, const struct place *place)
{
	return place->object == OBJECT_NONE ? NULL : object_table_at(process_table_objects(namer->processes), place->object);
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

static uint32_t add_function(struct namer *namer, const char *name, const char *system_name)
{
	struct profile_function function = {
		.name = profile_string(namer->profile, name),
		.system_name = profile_string(namer->profile, system_name),
		.file = profile_string(namer->profile, ""),
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

/* The symbol at a place. 0 or as the symbolizer says. */
static int find_symbol(struct namer *namer, const struct place *place, struct symbol_name *ret_name)
{
	const struct object *object = object_of(namer, place);
	int err;

	if (!place->tgid) {
		err = symbolizer_kernel(namer->symbolizer, place->pc - place->is_return, ret_name);
		if (err == -EACCES && !namer->kernel_hidden) {
			account_note(profile_account(namer->profile),
				     "the kernel hides its addresses, so kernel functions have no names: CAP_SYSLOG is needed, or kernel.kptr_restrict=0");
			namer->kernel_hidden = true;
		}
		return err;
	}
	if (!place->in_elf) /* JIT code may stand in a file, too: /memfd:doublemapper of .NET */
		return symbolizer_jit(namer->symbolizer, place->tgid, place->pc - place->is_return, ret_name);
	return symbolizer_object(namer->symbolizer, place->object, object->elf, object->path, place->elf_vaddr - place->is_return, ret_name);
}

static uint32_t make_location(struct namer *namer, const struct place *place)
{
	struct profile_location location = {
		.pc = place->pc,
		.elf_vaddr = place->elf_vaddr,
		.mapping = add_mapping(namer, place),
		.kind = place->tgid ? FRAME_NATIVE : FRAME_KERNEL,
	};
	struct symbol_name name;

	if (!find_symbol(namer, place, &name)) {
		location.function_off = (place->in_elf ? place->elf_vaddr : place->pc) - name.start;
		location.function = add_function(namer, name.name, name.system_name);
	} else {
		char text[320];

		describe(namer, place, text, sizeof(text));
		location.function = add_function(namer, text, "");
	}
	return location.function == PROFILE_NONE ? PROFILE_NONE : profile_location(namer->profile, &location);
}

uint32_t namer_location(struct namer *namer, uint32_t place)
{
	if (namer->locations[place] == PROFILE_NONE)
		namer->locations[place] = make_location(namer, place_at(namer->places, place));
	return namer->locations[place];
}

static uint32_t add_special(struct namer *namer, const char *name, enum frame_kind kind)
{
	struct profile_location location = { .mapping = PROFILE_NONE, .kind = kind, .function = add_function(namer, name, "") };

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

uint32_t namer_cut(struct namer *namer)
{
	return add_special(namer, PROFILE_CUT, FRAME_MARK);
}

uint32_t namer_missed(struct namer *namer, bool kernel)
{
	return add_special(namer, kernel ? PROFILE_MISSED_KERNEL : PROFILE_MISSED_USER, FRAME_MISSED);
}
