// SPDX-License-Identifier: Apache-2.0
#include "naming/resolver_private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "track/runtime_marks.h"

#define LOCATIONS_BYTES_MAX ((size_t)4 << 30)

struct resolver *resolver_new(const struct location_table *table, struct location_files *files, const struct naming *naming,
			      struct profile *profile)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));

	if (!resolver)
		return NULL;
	resolver->table = table;
	resolver->files = files;
	resolver->naming = naming;
	resolver->profile = profile;
	resolver->symbolizer = kernel_names_symbolizer(naming->kernel);
	resolver->locations = BUFFER_INIT(LOCATIONS_BYTES_MAX);
	resolver->named = calloc(location_nr(table) + 1, sizeof(*resolver->named));
	if (!resolver->named) {
		resolver_free(resolver);
		return NULL;
	}
	return resolver;
}

void resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return;
	free(resolver->named);
	buffer_done(&resolver->locations);
	free(resolver);
}

uint32_t resolver_nr_skipped(const struct resolver *resolver)
{
	return resolver->nr_skipped;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static const struct object *object_of(const struct resolver *resolver, const struct location *where)
{
	const struct location_file *file = location_files_file(resolver->files, where->object);

	return file ? &file->object : NULL;
}

/* Is the name left to whoever reads the profile? */
static bool is_address(const struct resolver *resolver, const struct location *where)
{
	return resolver->naming->addresses && where->in_elf;
}

/* Writes the name for a location that no symbol covers. */
static void describe(const struct resolver *resolver, const struct location *where, char *to, size_t size)
{
	const struct object *object = object_of(resolver, where);

	if (object && is_address(resolver, where))
		snprintf(to, size, "[%s]", base_name(object->path));
	else if (object)
		snprintf(to, size, "[%s+0x%" PRIx64 "]", base_name(object->path), where->elf_vaddr);
	else
		snprintf(to, size, "[unknown]");
}

static uint32_t add_function(struct resolver *resolver, const struct symbol_name *name)
{
	struct profile_function function = {
		.name = profile_string(resolver->profile, name->name),
		.system_name = profile_string(resolver->profile, name->system_name),
		.file = profile_string(resolver->profile, name->file),
		.line = name->start_line,
	};

	if (function.name == PROFILE_NONE || function.system_name == PROFILE_NONE || function.file == PROFILE_NONE)
		return PROFILE_NONE;
	return profile_function(resolver->profile, &function);
}

/* What the address in the process is above that in the profile. */
static uint64_t bias_of(const struct resolver *resolver, const struct location *where)
{
	return resolver->naming->as_linked && where->in_elf ? where->pc - where->elf_vaddr : 0;
}

static uint32_t add_mapping(struct resolver *resolver, const struct location *where)
{
	const struct object *object = object_of(resolver, where);
	char build_id[2 * BUILD_ID_MAX + 1] = "";
	uint64_t bias = bias_of(resolver, where);
	struct profile_mapping mapping = { .start_pc = where->start_pc - bias,
					   .end_pc = where->end_pc - bias,
					   .file_off = where->file_off };

	if (!object)
		return PROFILE_NONE;
	if (object->elf)
		build_id_text(elf_file_build_id(object->elf), build_id);
	mapping.path = profile_string(resolver->profile, object->path);
	mapping.build_id = profile_string(resolver->profile, build_id);
	if (mapping.path == PROFILE_NONE || mapping.build_id == PROFILE_NONE)
		return PROFILE_NONE;
	return profile_mapping(resolver->profile, &mapping);
}

/* Was the BPF program loaded after the location was first seen? Then the sample hit other code at that address. */
static bool is_too_late(const struct resolver *resolver, const struct symbol_name *name, const struct location *where)
{
	const struct kernel_code *program = symbolizer_program(resolver->symbolizer, name->start);

	if (!program) /* if it is a BPF program: loaded after we listed them */
		return kernel_names_know_programs(resolver->naming->kernel) && strncmp(name->name, "bpf_prog_", 9) == 0;
	return program->since_ns > where->first_ns;
}

int resolver_kernel_name(struct resolver *resolver, const struct location *where, struct symbol_name *ret_name)
{
	int err = symbolizer_kernel(resolver->symbolizer, resolver_code(resolver, where), ret_name);

	if (err == -EACCES && !resolver->kernel_hidden) {
		account_note(
		    profile_account(resolver->profile),
		    "the kernel hides its addresses, so kernel functions have no names: CAP_SYSLOG is needed, or kernel.kptr_restrict=0");
		resolver->kernel_hidden = true;
	}
	return !err && is_too_late(resolver, ret_name, where) ? -ENOENT : err;
}

uint64_t resolver_code(const struct resolver *resolver, const struct location *where)
{
	uint64_t address = where->in_elf ? where->elf_vaddr : where->pc;

	if (!where->is_return)
		return address;
	return where->tgid ? address - 1 : symbolizer_kernel_call(resolver->symbolizer, address);
}

/* Appends one location. 0 or -ENOMEM. */
static int add_location(struct resolver *resolver, struct profile_location location, const struct symbol_name *name)
{
	uint32_t number;

	location.function = add_function(resolver, name);
	if (location.function == PROFILE_NONE)
		return -ENOMEM;
	location.line = name->line;
	number = profile_location(resolver->profile, &location);
	if (number == PROFILE_NONE)
		return -ENOMEM;
	buffer_append(&resolver->locations, &number, sizeof(number));
	return resolver->locations.err;
}

int resolver_add(struct resolver *resolver, uint32_t number, const struct symbol_name *names, uint32_t nr)
{
	const struct location *where = location_at(resolver->table, number);
	struct profile_location location = {
		.pc = where->pc - bias_of(resolver, where),
		.elf_vaddr = where->elf_vaddr,
		.mapping = add_mapping(resolver, where),
		.kind = where->tgid ? FRAME_NATIVE : FRAME_KERNEL,
		.is_nameless = is_address(resolver, where),
	};
	int err = 0;

	resolver->named[number] = (struct named){ .first = (uint32_t)(resolver->locations.size / sizeof(uint32_t)), .nr = nr };
	for (uint32_t i = 0; i < nr && !err; i++) {
		location.is_inlined = i + 1 < nr;
		location.function_off =
		    location.is_inlined || !names[i].start ? 0 : (where->in_elf ? where->elf_vaddr : where->pc) - names[i].start;
		err = add_location(resolver, location, &names[i]);
	}
	return err;
}

static int add_other(struct resolver *resolver, uint32_t number)
{
	const struct location *where = location_at(resolver->table, number);
	struct symbol_name name;
	char text[320];

	if (!where->tgid && !resolver_kernel_name(resolver, where, &name))
		return resolver_add(resolver, number, &name, 1);
	describe(resolver, where, text, sizeof(text));
	if (resolver_add(resolver, number, &(struct symbol_name){ .name = text, .system_name = "", .file = "" }, 1))
		return -ENOMEM;
	resolver->named[number].is_nameless = true;
	return 0;
}

const uint32_t *resolver_locations(struct resolver *resolver, uint32_t where, uint32_t *ret_nr)
{
	struct named *named = &resolver->named[where];

	if (!named->nr && add_other(resolver, where))
		return NULL;
	*ret_nr = named->nr;
	return (const uint32_t *)resolver->locations.data + named->first;
}

static uint32_t add_special(struct resolver *resolver, const char *name, enum frame_kind kind)
{
	struct symbol_name named = { .name = name, .system_name = "", .file = "" };
	struct profile_location location = { .mapping = PROFILE_NONE, .kind = kind, .function = add_function(resolver, &named) };

	return location.function == PROFILE_NONE ? PROFILE_NONE : profile_location(resolver->profile, &location);
}

uint32_t resolver_mark(struct resolver *resolver, enum sonde_stop stop, uint32_t last_location)
{
	const struct object *object =
	    last_location == LOCATION_NO_MEMORY ? NULL : object_of(resolver, location_at(resolver->table, last_location));
	const char *file = object ? base_name(object->path) : "anonymous memory", *mark = stop_mark(stop), *hole = strstr(mark, "%s");
	char text[320];

	if (hole)
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(hole - mark), mark, file, hole + 2);
	else
		snprintf(text, sizeof(text), "%s", mark);
	return add_special(resolver, text, FRAME_MARK);
}

uint32_t resolver_no_natives(struct resolver *resolver)
{
	return add_special(resolver, PROFILE_NO_NATIVES, FRAME_MARK);
}

uint32_t resolver_cut(struct resolver *resolver)
{
	return add_special(resolver, PROFILE_CUT, FRAME_MARK);
}

/* Code in memory, for which no file has a name: of a runtime that is only recognised? */
static bool has_recognised_mark(struct resolver *resolver, uint32_t where, uint32_t *ret_mark)
{
	const struct location *at = location_at(resolver->table, where);
	const struct named *named = &resolver->named[where];
	const struct object *object = object_of(resolver, at);
	bool is_compiled = at->object == OBJECT_NONE || (object && object_is_compiled(object));
	bool is_nameless = at->tgid && is_compiled && (!named->nr || named->is_nameless);
	const struct recognised *recognised = is_nameless ? location_files_recognised(resolver->files, at->tgid) : NULL;
	char text[64];

	if (!recognised)
		return false;
	snprintf(text, sizeof(text), "[unsupported %s]", recognised->name);
	*ret_mark = add_special(resolver, text, FRAME_MARK);
	return true;
}

bool resolver_has_runtime_mark(struct resolver *resolver, uint32_t where, uint32_t caller, bool has_frames, uint32_t *ret_mark)
{
	const struct location *at = location_at(resolver->table, where);
	bool is_made = !at->in_elf && caller != LOCATION_NO_MEMORY;
	struct runtime_site site = { .is_made = is_made, .has_frames = has_frames };
	const struct location_file *file;
	char text[256];

	if (!has_frames && has_recognised_mark(resolver, where, ret_mark))
		return true;
	if (is_made)
		at = location_at(resolver->table, caller);
	site.elf_vaddr = at->elf_vaddr - at->is_return;
	file = at->in_elf ? location_files_file(resolver->files, at->object) : NULL;
	if (!file || !runtime_marks_of(file->images, file->nr_images, &site, text, sizeof(text)))
		return false;
	*ret_mark = add_special(resolver, text, FRAME_MARK);
	return true;
}

bool resolver_is_loop(const struct resolver *resolver, uint32_t where)
{
	const struct location *at = location_at(resolver->table, where);
	const struct location_file *file = at->in_elf ? location_files_file(resolver->files, at->object) : NULL;

	return file && runtime_marks_is_loop(file->images, file->nr_images, at->elf_vaddr - at->is_return);
}

uint32_t resolver_missed(struct resolver *resolver, bool kernel)
{
	return add_special(resolver, kernel ? PROFILE_MISSED_KERNEL : PROFILE_MISSED_USER, FRAME_MISSED);
}

bool resolver_is_scheduler(const struct resolver *resolver, uint32_t location)
{
	const struct profile_location *at = profile_location_at(resolver->profile, location);

	return at->kind == FRAME_KERNEL && symbolizer_is_scheduler(resolver->symbolizer, at->pc);
}
