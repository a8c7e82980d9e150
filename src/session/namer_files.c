// SPDX-License-Identifier: Apache-2.0
/* Names in files: of programs and libraries, of JIT code, and the kernel's lines. A question for each file, process or kernel, to the worker that reads strangers' bytes. */
#include <errno.h>
#include <string.h>

#include "process/jit_files.h"
#include "session/debug_askers.h"
#include "session/kernel_lines.h"
#include "session/namer_private.h"
#include "symbolize/name_answers.h"

#define ANSWERS_BYTES_MAX ((size_t)1 << 30)

/* One address of a question: of a file, of a process's JIT code, or of the kernel. */
struct asked {
	uint64_t address; /* of the instruction, or the call */
	uint32_t source;  /* object or tgid, 0: the kernel */
	uint32_t place;
	bool in_elf;
};

static int by_source(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;

	if (x->in_elf != y->in_elf)
		return x->in_elf ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static int take_answers(struct namer *namer, const struct asked *asked, struct name_answers *answers)
{
	for (uint32_t i = 0; i < answers->nr_addresses; i++) {
		struct symbol_name names[NAME_ANSWERS_MAX];
		uint32_t nr = name_answers_next(answers, names, NAME_ANSWERS_MAX);

		if (nr && namer_add(namer, asked[i].place, names, nr))
			return -ENOMEM;
	}
	return 0;
}

static int ask_names(const struct namer *namer, const struct parser_names *question, struct diag *diag, struct buffer *bytes, struct name_answers *ret_answers)
{
	int err = parser_names(namer->naming->parser, question, diag, bytes);

	return err ? err : name_answers_open(bytes->data, bytes->size, question->nr, ret_answers);
}

/* With the debug file that was fetched, if there is one; when that does harm, without. */
static int ask_with_fetched(struct namer *namer, struct parser_names *question, struct diag *diag, struct buffer *bytes, struct name_answers *ret_answers)
{
	struct debug_files *files = namer->naming->debug_files;
	struct diag refusal = { 0 };
	int err;

	question->fetched_fd = debug_files_fd(files, question->elf);
	question->has_fetched = question->fetched_fd >= 0;
	if (!question->has_fetched)
		return ask_names(namer, question, diag, bytes, ret_answers);
	err = ask_names(namer, question, &refusal, bytes, ret_answers);
	if (err == -ENODATA || (!err && !ret_answers->nr_refused))
		return err;
	debug_files_refuse(files, question->elf);
	account_note(profile_account(namer->profile), "the debug file that debuginfod gave for %s is not used: %s", question->path,
		     refusal.text[0] ? refusal.text : "it is damaged, or another file's");
	if (!err)
		return 0;
	question->has_fetched = false;
	buffer_done(bytes);
	return ask_names(namer, question, diag, bytes, ret_answers);
}

/* The names of `nr` places in one file. What cannot be read is noted, and its places stay without. */
static int read_file(struct namer *namer, const struct debug_askers *askers, const struct asked *asked, const uint64_t *addresses, uint32_t nr)
{
	const struct object *object = object_table_at(process_table_objects(namer->processes), asked->source);
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(ANSWERS_BYTES_MAX);
	struct debug_asker asker;
	struct parser_names question = { .elf = object->elf, .path = object->path, .elf_vaddrs = addresses, .nr = nr, .lines = namer->naming->lines,
					 .open = debug_asker_open, .open_arg = &asker };
	struct name_answers answers;
	struct diag diag = { 0 };
	int err;

	if (!object->elf) /* was closed, and is not to be found again */
		return 0;
	debug_asker_init(&asker, namer->naming->proxy, debug_askers_of(askers, asked->source) ?: place_at(namer->places, asked->place)->tgid, object);
	err = ask_with_fetched(namer, &question, &diag, &bytes, &answers);
	if (err && err != -ENODATA && (err != -EDQUOT || diag.text[0]))
		account_note(profile_account(namer->profile), "names of %s refused: %s", object->path, diag.text[0] ? diag.text : strerror(-err));
	if (err)
		return 0;
	if (answers.nr_missing)
		account_note(profile_account(namer->profile), "%u .dwo files with the inlined functions of %s are not to be had", answers.nr_missing, object->path);
	if (answers.nr_packed)
		account_note(profile_account(namer->profile), "no lines of %s: they are compressed, and not by zlib, or take too much memory", object->path);
	if (answers.nr_cut)
		account_note(profile_account(namer->profile), "lines of %s are not complete: %u units are damaged or too large", object->path, answers.nr_cut);
	return take_answers(namer, asked, &answers);
}

/* The same for the JIT code of one process. */
static int read_jit(struct namer *namer, const struct asked *asked, const uint64_t *addresses, uint32_t nr)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(ANSWERS_BYTES_MAX);
	CLEANUP(jit_files_done) struct jit_files files;
	struct account *account = profile_account(namer->profile);
	const char *ended_dump = process_table_ended_dump(namer->processes, asked->source);
	struct jit_keeper *keeper = namer->naming->jit_keeper;
	bool is_ours = asked->source == namer->naming->own_tgid;
	struct name_answers answers;
	struct diag diag = { 0 };
	int err;

	if (!keeper || !jit_keeper_take(keeper, asked->source, &files)) {
		jit_files_open(namer->naming->proxy, asked->source, is_ours, &files);
		if (ended_dump)
			jit_files_add_dump(&files, namer->naming->proxy, asked->source, is_ours, ended_dump);
	}
	if (files.nr_refused)
		account_note(account, "%u files with names of the JIT code of process %u are not read: %s", files.nr_refused, asked->source, strerror(-files.refusal));
	if (!files.nr)
		return 0;
	err = parser_jit(namer->naming->parser, files.fds, files.nr, addresses, nr, &diag, &bytes);
	if (!err)
		err = name_answers_open(bytes.data, bytes.size, nr, &answers);
	if (err == -EDQUOT && !diag.text[0])
		return 0;
	if (err) {
		account_note(account, "names of the JIT code of process %u refused: %s", asked->source, diag.text[0] ? diag.text : strerror(-err));
		return 0;
	}
	if (answers.nr_refused)
		account_note(account, "%u names of the JIT code of process %u make no sense, or are too many", answers.nr_refused, asked->source);
	return take_answers(namer, asked, &answers);
}

/* The function that the code belongs to keeps the name that the running kernel gives it. What it calls a module's, or where it knows another
 * function, is not in this file, whatever the file says. 0 or -ENOMEM. */
static int take_kernel_answers(struct namer *namer, const struct kernel_lines *lines, const struct asked *asked, struct name_answers *answers)
{
	for (uint32_t i = 0; i < answers->nr_addresses; i++) {
		struct symbol_name names[NAME_ANSWERS_MAX], outermost;
		uint32_t nr = name_answers_next(answers, names, NAME_ANSWERS_MAX);

		if (!nr || namer_kernel_name(namer, place_at(namer->places, asked[i].place), &outermost) || strchr(outermost.name, '[') ||
		    outermost.start != kernel_lines_kaddr(lines, names[nr - 1].start))
			continue;
		outermost.file = names[nr - 1].file;
		outermost.line = names[nr - 1].line;
		outermost.start_line = names[nr - 1].start_line;
		names[nr - 1] = outermost;
		if (namer_add(namer, asked[i].place, names, nr))
			return -ENOMEM;
	}
	return 0;
}

/* Source lines and inlined functions of the kernel, if there is a vmlinux for it. */
static int read_kernel(struct namer *namer, const struct asked *asked, const uint64_t *addresses, uint32_t nr)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(ANSWERS_BYTES_MAX);
	CLEANUP(kernel_lines_freep) struct kernel_lines *lines = NULL;
	struct account *account = profile_account(namer->profile);
	struct debug_asker asker = { .proxy = namer->naming->proxy };
	struct name_answers answers;
	struct diag diag = { 0 };
	int err = kernel_lines_open(namer->naming->vmlinux, &diag, &lines);

	if (err) {
		if (diag.text[0])
			account_note(account, "no source lines of the kernel: %s", diag.text);
		return err == -ENOMEM ? err : 0;
	}
	err = kernel_lines_ask(lines, namer->naming->parser, addresses, nr, debug_asker_open, &asker, &diag, &bytes);
	if (!err)
		err = name_answers_open(bytes.data, bytes.size, nr, &answers);
	if (err) {
		account_note(account, "no source lines of the kernel: %s refused: %s", kernel_lines_path(lines), diag.text[0] ? diag.text : strerror(-err));
		return 0;
	}
	return take_kernel_answers(namer, lines, asked, &answers);
}

static int read_source(struct namer *namer, const struct debug_askers *askers, const struct asked *asked, uint32_t nr)
{
	CLEANUP(freep) uint64_t *addresses = calloc(nr, sizeof(*addresses));

	if (!addresses)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		addresses[i] = asked[i].address;
	if (asked->in_elf)
		return read_file(namer, askers, asked, addresses, nr);
	return asked->source ? read_jit(namer, asked, addresses, nr) : read_kernel(namer, asked, addresses, nr);
}

/* Room for the names of places that are new. */
static int make_room(struct namer *namer, uint32_t nr_places)
{
	struct named *named = realloc(namer->named, (nr_places + 1) * sizeof(*named));

	if (!named)
		return -ENOMEM;
	namer->named = named;
	memset(named + namer->nr_read, 0, (nr_places + 1 - namer->nr_read) * sizeof(*named));
	return 0;
}

struct sources {
	const struct asked *asked; /* sorted */
	uint32_t nr;
};

static bool is_asked(void *arg, uint32_t object)
{
	const struct sources *sources = arg;
	uint32_t low = 0, high = sources->nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sources->asked[middle].in_elf && sources->asked[middle].source < object)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sources->nr && sources->asked[low].in_elf && sources->asked[low].source == object;
}

int namer_read_files(struct namer *namer)
{
	CLEANUP(debug_askers_freep) struct debug_askers *askers = NULL;
	uint32_t nr_places = place_nr(namer->places), nr = 0, next;
	CLEANUP(freep) struct asked *asked = calloc(nr_places - namer->nr_read + 1, sizeof(*asked));

	if (!asked || make_room(namer, nr_places))
		return -ENOMEM;
	for (uint32_t i = namer->nr_read; namer->naming->parser && i < nr_places; i++) {
		const struct place *place = place_at(namer->places, i);

		if (place->tgid || namer->naming->lines) /* JIT code may stand in a file, too: /memfd:doublemapper of .NET */
			asked[nr++] = (struct asked){ .in_elf = place->in_elf, .source = place->in_elf ? place->object : place->tgid, .place = i,
						      .address = namer_code(namer, place) };
	}
	namer->nr_read = nr_places;
	qsort(asked, nr, sizeof(*asked), by_source);
	askers = debug_askers_new(namer->processes, is_asked, &(struct sources){ .asked = asked, .nr = nr });
	if (!askers)
		return -ENOMEM;
	for (uint32_t first = 0; first < nr; first = next) {
		for (next = first; next < nr && asked[next].in_elf == asked[first].in_elf && asked[next].source == asked[first].source; next++)
			;
		if (read_source(namer, askers, asked + first, next - first))
			return -ENOMEM;
	}
	return 0;
}
