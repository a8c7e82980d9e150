// SPDX-License-Identifier: Apache-2.0
/* What the files that a process maps have for a profiler, read as a recording reads them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "examine/process_look.h"
#include "naming/debug_roots.h"
#include "parse/parser.h"
#include "process/jit_files.h"
#include "process/process_table.h"
#include "runtime/recognised.h"
#include "track/runtime_loader.h"

#define MAX_FILES 65536
#define MAX_RULES 65536
#define VDSO "[vdso]"

/* What reads them. */
struct readers {
	struct parser *parser;
	struct proxy *proxy;
	struct process_table *processes;
	struct runtime_loader *runtimes;
};

static void readers_done(struct readers *readers)
{
	runtime_loader_free(readers->runtimes);
	process_table_free(readers->processes);
	parser_free(readers->parser);
	proxy_free(readers->proxy);
}

static int readers_start(struct readers *readers, struct account *account, struct diag *diag)
{
	int err = parser_new(diag, &readers->parser);

	if (!err)
		err = parser_ready(readers->parser, diag);
	if (!err)
		err = proxy_new(diag, &readers->proxy);
	if (err)
		return err;
	readers->processes = process_table_new(readers->proxy);
	readers->runtimes = readers->processes
				? runtime_loader_new(NULL, readers->parser, readers->proxy, readers->processes, account)
				: NULL;
	return readers->runtimes ? 0 : -ENOMEM;
}

/* --- a file --------------------------------------------------------------------------------------------------------------------------- */

static bool has_section(const struct elf_file *elf, const char *name)
{
	return elf_file_find_section(elf, name);
}

static void look_for_table(struct readers *readers, uint32_t number, const struct elf_file *elf, struct looked_file *file)
{
	CLEANUP(rule_table_freep) struct rule_table *rules = rule_table_new(MAX_RULES);
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	struct diag diag = { 0 };
	int err = rules ? parser_table(readers->parser, number, elf, rules, &diag, &table) : -ENOMEM;

	if (!err) {
		file->nr_rows = table->nr_rows;
		file->table_bytes = table->nr_rows * sizeof(*table->rows) + (table->nr_blocks + 1ull) * sizeof(*table->blocks);
	} else {
		snprintf(file->no_table, sizeof(file->no_table), "%s",
			 err == -ENODATA ? "it has no .eh_frame" : diag.text[0] ? diag.text : strerror(-err));
	}
}

static bool wants_debug(struct readers *readers, uint32_t tgid, const struct object *object, bool lines)
{
	struct debug_asker asker;
	const struct parser_names names = {
		.elf = object->elf, .path = object->path, .lines = lines, .open = debug_asker_open, .open_arg = &asker
	};
	bool wants = true;

	debug_asker_init(&asker, readers->proxy, tgid, object);
	return parser_wants_debug(readers->parser, &names, &wants) || wants;
}

static void look_for_names(struct readers *readers, uint32_t tgid, const struct object *object, struct looked_file *file)
{
	const struct elf_file *elf = object->elf;
	bool is_go = has_section(elf, ".gopclntab") || has_section(elf, ".data.rel.ro.gopclntab");

	file->has_lines = is_go || !wants_debug(readers, tgid, object, true);
	if (is_go)
		file->names = LOOK_NAMES_GO;
	else if (has_section(elf, ".symtab"))
		file->names = LOOK_NAMES_OWN;
	else if (!wants_debug(readers, tgid, object, false))
		file->names = LOOK_NAMES_DEBUG_FILE;
	else if (has_section(elf, ".gnu_debugdata"))
		file->names = LOOK_NAMES_MINI;
	else
		file->names = has_section(elf, ".dynsym") ? LOOK_NAMES_EXPORTED : LOOK_NAMES_NONE;
}

static void look_for_runtimes(struct process_look *look, struct readers *readers, uint32_t number, const struct elf_file *elf,
			      struct looked_file *file)
{
	if (parser_runtimes(readers->parser, number, elf, NULL, &file->runtimes))
		return; /* why is said by its table */
	for (uint32_t i = 0; i < file->runtimes.nr_images; i++) {
		if (file->runtimes.images[i].runtime == SONDE_RUNTIME_NONE)
			look->recognised = recognised_find(file->runtimes.images[i].reason);
	}
}

static int look_at_file(struct process_look *look, struct readers *readers, uint32_t number)
{
	const struct object *object = object_table_at(process_table_objects(readers->processes), number);
	struct looked_file *file;

	if (!array_grow(&look->files, look->nr_files, &look->max_files, sizeof(*look->files), 32, MAX_FILES))
		return -ENOMEM;
	file = &look->files[look->nr_files];
	*file = (struct looked_file){ .path = strdup(object->path) };
	if (!file->path)
		return -ENOMEM;
	look->nr_files++;
	if (!object->elf) {
		snprintf(file->no_table, sizeof(file->no_table), "it is no ELF file, or cannot be read");
		return 0;
	}
	build_id_text(elf_file_build_id(object->elf), file->build_id);
	look_for_table(readers, number, object->elf, file);
	look_for_names(readers, look->tgid, object, file);
	look_for_runtimes(look, readers, number, object->elf, file);
	return runtime_loader_meet(readers->runtimes, number);
}

/* --- the process ---------------------------------------------------------------------------------------------------------------------- */

struct looking {
	struct process_look *look;
	struct readers *readers;
};

/* Was the file of this mapping met with an earlier one? */
static bool is_known(const struct process_mapping *mappings, uint32_t number)
{
	for (uint32_t i = 0; i < number; i++) {
		if (mappings[i].object == mappings[number].object)
			return true;
	}
	return false;
}

static int look_at_mappings(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr_mappings)
{
	struct looking *looking = arg;
	struct process_look *look = looking->look;
	const struct object_table *objects = process_table_objects(looking->readers->processes);
	uint32_t runtimes;
	int err = 0;

	for (uint32_t i = 0; !err && i < nr_mappings; i++) {
		const struct process_mapping *mapping = &mappings[i];

		if (mapping->object == OBJECT_NONE || object_is_compiled(object_table_at(objects, mapping->object))) {
			look->nr_made++;
			look->made_bytes += mapping->end_pc - mapping->start_pc;
		} else if (!is_known(mappings, i)) {
			err = look_at_file(look, looking->readers, mapping->object);
		}
	}
	look->account.nr_notes = 0; /* those on files are said in the files' own lines */
	return err ? err : runtime_loader_tell(looking->readers->runtimes, tgid, generation, mappings, nr_mappings, &runtimes);
}

static void look_for_name_files(struct process_look *look, struct readers *readers)
{
	struct jit_files files;

	jit_files_open(&(struct jit_process){ .proxy = readers->proxy,
					      .processes = readers->processes,
					      .tgid = look->tgid,
					      .number = jit_files_number(look->tgid) },
		       &files);
	look->nr_name_files = files.nr;
	look->nr_name_files_refused = files.nr_refused;
	jit_files_done(&files);
}

static void read_status(struct process_look *look)
{
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/status", look->tgid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "Name: %31[^\n]", look->comm);
		sscanf(line, "Threads: %u", &look->nr_threads);
	}
	if (file)
		fclose(file);
}

int process_look_take(struct process_look *look, uint32_t tgid, uint64_t stacks_ns, struct diag *diag)
{
	struct readers readers = { 0 };
	struct looking looking = { look, &readers };
	int err;

	look->tgid = tgid;
	read_status(look);
	if (!look->nr_threads)
		return diag_errno(diag, ESRCH, "there is no process %u", tgid);
	err = readers_start(&readers, &look->account, diag);
	if (!err)
		err = process_table_scan(readers.processes, tgid, clock_ns(), diag);
	if (!err)
		err = process_table_living(readers.processes, look_at_mappings, &looking);
	if (!err)
		look_for_name_files(look, &readers);
	readers_done(&readers);
	if (!err && stacks_ns)
		process_look_stacks(look, stacks_ns);
	return err;
}

void process_look_done(struct process_look *look)
{
	for (uint32_t i = 0; i < look->nr_files; i++)
		free(look->files[i].path);
	free(look->files);
	sonde_session_free(look->session);
}

const char *look_names_text(enum look_names names)
{
	static const char *const texts[] = {
		[LOOK_NAMES_NONE] = "none",
		[LOOK_NAMES_EXPORTED] = "dynsym",
		[LOOK_NAMES_MINI] = "minidebug",
		[LOOK_NAMES_OWN] = "symtab",
		[LOOK_NAMES_GO] = "gopclntab",
		[LOOK_NAMES_DEBUG_FILE] = "debug file",
	};

	return texts[names];
}
