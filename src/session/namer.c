// SPDX-License-Identifier: Apache-2.0
#include "session/namer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "symbolize/symbolizer.h"

#define MAX_NAMES	    64 /* of one place: inlined functions, and the one that they were inlined into */
#define LOCATIONS_BYTES_MAX ((size_t)4 << 30)

/* The locations of a place: some of namer.locations. */
struct named {
	uint32_t first, nr; /* nr 0: not yet */
};

struct namer {
	const struct place_table *places;
	const struct process_table *processes;
	struct profile *profile;
	struct symbolizer *symbolizer;
	struct named *named; /* by place */
	struct buffer locations; /* uint32_t each */
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
	namer->locations = BUFFER_INIT(LOCATIONS_BYTES_MAX);
	namer->named = calloc(nr + 1, sizeof(*namer->named));
	if (!namer->symbolizer || !namer->named) {
		namer_free(namer);
		return NULL;
	}
	return namer;
}

void namer_free(struct namer *namer)
{
	if (!namer)
		return;
	symbolizer_free(namer->symbolizer);
	free(namer->named);
	buffer_done(&namer->locations);
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

/* The names of a place, as symbolizer_object gives them. 0 or as the symbolizer says. */
static int find_names(struct namer *namer, const struct place *place, struct symbol_name *names, uint32_t *ret_nr)
{
	const struct object *object = object_of(namer, place);
	int err;

	*ret_nr = 1;
	if (!place->tgid) {
		err = symbolizer_kernel(namer->symbolizer, place->pc - place->is_return, names);
		if (err == -EACCES && !namer->kernel_hidden) {
			account_note(profile_account(namer->profile),
				     "the kernel hides its addresses, so kernel functions have no names: CAP_SYSLOG is needed, or kernel.kptr_restrict=0");
			namer->kernel_hidden = true;
		}
		return err;
	}
	if (!place->in_elf) /* JIT code may stand in a file, too: /memfd:doublemapper of .NET */
		return symbolizer_jit(namer->symbolizer, place->tgid, place->pc - place->is_return, names);
	if (!object->elf) /* was closed, and is not to be found again */
		return -ENOENT;
	return symbolizer_object(namer->symbolizer, place->object, object->elf, object->path, place->elf_vaddr - place->is_return, names, MAX_NAMES, ret_nr);
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

static int add_locations(struct namer *namer, const struct place *place, uint32_t *ret_nr)
{
	struct profile_location location = {
		.pc = place->pc,
		.elf_vaddr = place->elf_vaddr,
		.mapping = add_mapping(namer, place),
		.kind = place->tgid ? FRAME_NATIVE : FRAME_KERNEL,
	};
	struct symbol_name names[MAX_NAMES];
	uint32_t nr;
	int err = 0;

	if (find_names(namer, place, names, &nr)) {
		char text[320];

		describe(namer, place, text, sizeof(text));
		*ret_nr = 1;
		return add_location(namer, location, &(struct symbol_name){ .name = text, .system_name = "", .file = "" });
	}
	for (uint32_t i = 0; i < nr && !err; i++) {
		location.is_inlined = i + 1 < nr;
		location.function_off = location.is_inlined ? 0 : (place->in_elf ? place->elf_vaddr : place->pc) - names[i].start;
		err = add_location(namer, location, &names[i]);
	}
	*ret_nr = nr;
	return err;
}

const uint32_t *namer_locations(struct namer *namer, uint32_t place, uint32_t *ret_nr)
{
	struct named *named = &namer->named[place];

	if (!named->nr) {
		uint32_t first = (uint32_t)(namer->locations.size / sizeof(uint32_t)), nr;

		if (add_locations(namer, place_at(namer->places, place), &nr))
			return NULL;
		*named = (struct named){ .first = first, .nr = nr };
	}
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

uint32_t namer_cut(struct namer *namer)
{
	return add_special(namer, PROFILE_CUT, FRAME_MARK);
}

uint32_t namer_missed(struct namer *namer, bool kernel)
{
	return add_special(namer, kernel ? PROFILE_MISSED_KERNEL : PROFILE_MISSED_USER, FRAME_MISSED);
}
