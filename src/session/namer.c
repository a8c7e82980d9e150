// SPDX-License-Identifier: Apache-2.0
#include "session/namer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "symbolize/debug_file.h"
#include "symbolize/name_answers.h"
#include "symbolize/regular_file.h"
#include "symbolize/symbolizer.h"

#define MAX_NAMES	    64 /* of one place: inlined functions, and the one that they were inlined into */
#define LOCATIONS_BYTES_MAX ((size_t)4 << 30)
#define ANSWERS_BYTES_MAX   ((size_t)1 << 30)

/* The locations of a place: some of namer.locations. */
struct named {
	uint32_t first, nr; /* nr 0: not yet */
};

struct namer {
	const struct place_table *places;
	const struct process_table *processes;
	const struct naming *naming;
	struct profile *profile;
	struct symbolizer *symbolizer;
	struct named *named; /* by place */
	struct buffer locations; /* uint32_t each */
	bool kernel_hidden;  /* said once */
};

struct namer *namer_new(const struct place_table *places, const struct process_table *processes, const struct naming *naming, struct profile *profile)
{
	struct namer *namer = calloc(1, sizeof(*namer));
	uint32_t nr = place_nr(places);

	if (!namer)
		return NULL;
	namer->places = places;
	namer->processes = processes;
	namer->naming = naming;
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

/* The name of a place that is in no file that has names. 0 or as the symbolizer says. */
static int find_name(struct namer *namer, const struct place *place, struct symbol_name *ret_name)
{
	int err;

	if (place->in_elf)
		return -ENOENT; /* namer_read_files has not found it */
	if (place->tgid) /* JIT code may stand in a file, too: /memfd:doublemapper of .NET */
		return symbolizer_jit(namer->symbolizer, place->tgid, place->pc - place->is_return, ret_name);
	err = symbolizer_kernel(namer->symbolizer, place->pc - place->is_return, ret_name);
	if (err == -EACCES && !namer->kernel_hidden) {
		account_note(profile_account(namer->profile),
			     "the kernel hides its addresses, so kernel functions have no names: CAP_SYSLOG is needed, or kernel.kptr_restrict=0");
		namer->kernel_hidden = true;
	}
	return err;
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

/* The locations of a place that has these names. */
static int add_locations(struct namer *namer, uint32_t number, const struct symbol_name *names, uint32_t nr)
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

/* --- names in files -------------------------------------------------------------------------------------------------------------------- */

struct asked {
	uint64_t elf_vaddr; /* of the instruction, or the call */
	uint32_t object, place;
};

static int by_file(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->elf_vaddr < y->elf_vaddr ? -1 : x->elf_vaddr > y->elf_vaddr;
}

static int open_debug_file(void *arg, const char *path)
{
	return regular_file_open(path, DEBUG_FILE_MAX_BYTES);
}

/* The names of `nr` places in one file. What cannot be read is noted, and its places stay without. */
static int read_file(struct namer *namer, const struct asked *asked, uint32_t nr)
{
	const struct object *object = object_table_at(process_table_objects(namer->processes), asked->object);
	CLEANUP(freep) uint64_t *elf_vaddrs = calloc(nr, sizeof(*elf_vaddrs));
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(ANSWERS_BYTES_MAX);
	struct parser_names question = { .elf = object->elf, .path = object->path, .elf_vaddrs = elf_vaddrs, .nr = nr, .lines = namer->naming->lines,
					 .open = open_debug_file };
	struct name_answers answers;
	struct diag diag = { 0 };
	int err;

	if (!elf_vaddrs)
		return -ENOMEM;
	if (!object->elf) /* was closed, and is not to be found again */
		return 0;
	for (uint32_t i = 0; i < nr; i++)
		elf_vaddrs[i] = asked[i].elf_vaddr;
	err = parser_names(namer->naming->parser, &question, &diag, &bytes);
	if (!err)
		err = name_answers_open(bytes.data, bytes.size, nr, &answers);
	if (err && err != -ENODATA)
		account_note(profile_account(namer->profile), "names of %s refused: %s", object->path, diag.text[0] ? diag.text : strerror(-err));
	for (uint32_t i = 0; !err && i < nr; i++) {
		struct symbol_name names[MAX_NAMES];
		uint32_t nr_names = name_answers_next(&answers, names, MAX_NAMES);

		if (nr_names && add_locations(namer, asked[i].place, names, nr_names))
			return -ENOMEM;
	}
	return 0;
}

int namer_read_files(struct namer *namer)
{
	uint32_t nr_places = place_nr(namer->places), nr = 0, next;
	CLEANUP(freep) struct asked *asked = calloc(nr_places + 1, sizeof(*asked));

	if (!asked)
		return -ENOMEM;
	for (uint32_t i = 0; namer->naming->parser && i < nr_places; i++) {
		const struct place *place = place_at(namer->places, i);

		if (place->in_elf)
			asked[nr++] = (struct asked){ .object = place->object, .place = i, .elf_vaddr = place->elf_vaddr - place->is_return };
	}
	qsort(asked, nr, sizeof(*asked), by_file);
	for (uint32_t first = 0; first < nr; first = next) {
		for (next = first; next < nr && asked[next].object == asked[first].object; next++)
			;
		if (read_file(namer, asked + first, next - first))
			return -ENOMEM;
	}
	return 0;
}

/* --- all places ------------------------------------------------------------------------------------------------------------------------ */

static int add_other(struct namer *namer, uint32_t number)
{
	const struct place *place = place_at(namer->places, number);
	struct symbol_name name;
	char text[320];

	if (!find_name(namer, place, &name))
		return add_locations(namer, number, &name, 1);
	describe(namer, place, text, sizeof(text));
	return add_locations(namer, number, &(struct symbol_name){ .name = text, .system_name = "", .file = "" }, 1);
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

uint32_t namer_cut(struct namer *namer)
{
	return add_special(namer, PROFILE_CUT, FRAME_MARK);
}

uint32_t namer_missed(struct namer *namer, bool kernel)
{
	return add_special(namer, kernel ? PROFILE_MISSED_KERNEL : PROFILE_MISSED_USER, FRAME_MISSED);
}
