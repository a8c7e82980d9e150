// SPDX-License-Identifier: Apache-2.0
/* The worker's side: reads one file, answers, and keeps nothing of it. */
#include <errno.h>
#include <string.h>

#include <sonde/sonde.h>

#include "abi/unwind.h"
#include "base/reader.h"
#include "session/parser_private.h"
#include "symbolize/name_answers.h"
#include "symbolize/symbolizer.h"
#include "unwind/table_image.h"
#include "unwind/unwind_table.h"
#include "worker/serve.h"

#define MAX_NAMES 64 /* of one address */
#define THE_OBJECT 0 /* the symbolizer's number for the only file it is asked about */

static void symbolizer_freep(struct symbolizer **symbolizer)
{
	symbolizer_free(*symbolizer);
}

static int answer_table(const struct elf_file *elf, struct diag *diag, struct buffer *to)
{
	CLEANUP(rule_table_freep) struct rule_table *rules = rule_table_new(SONDE_MAX_RULES);
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	int err = rules ? unwind_table_build(elf, rules, diag, &table) : -ENOMEM;

	return err ? err : table_image_make(table, rules, &(struct table_key){ 0 }, to);
}

static int look_up_names(struct symbolizer *symbolizer, const struct elf_file *elf, const char *path, struct reader *addresses, struct name_writer *writer)
{
	while (reader_left(addresses)) {
		struct symbol_name names[MAX_NAMES];
		uint32_t nr = 0;
		int err = symbolizer_object(symbolizer, THE_OBJECT, elf, path, reader_u64(addresses), names, MAX_NAMES, &nr);

		if (err && err != -ENOENT)
			return err;
		name_writer_add(writer, names, err ? 0 : nr);
	}
	return 0;
}

static int answer_names(const struct elf_file *elf, const void *body, size_t size, struct buffer *to)
{
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = NULL;
	CLEANUP(name_writer_done) struct name_writer writer;
	struct reader reader = reader_of(body, size), addresses;
	struct names_question question;
	const char *path = NULL;
	int err;

	name_writer_init(&writer);
	reader_copy(&reader, &question, sizeof(question));
	addresses = reader_sub(&reader, question.nr_addresses * sizeof(uint64_t));
	if (question.path_bytes)
		path = reader_text(&reader);
	if (reader.bad)
		return -EBADMSG;
	symbolizer = symbolizer_new(&(struct symbolizer_options){ .lines = question.lines });
	if (!symbolizer)
		return -ENOMEM;
	err = look_up_names(symbolizer, elf, path, &addresses, &writer);
	return err ? err : name_writer_end(&writer, to);
}

static int answer(uint32_t kind, struct wire_fds *fds, const void *body, size_t size, struct diag *diag, struct buffer *to)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	int err = fds->nr == 1 ? elf_file_open_fd(fds->fds[0], diag, &elf) : -EBADMSG;

	if (err)
		return err;
	fds->nr = 0; /* it is the file's now */
	err = kind == PARSER_TABLE ? answer_table(elf, diag, to) : answer_names(elf, body, size, to);
	return err == -ENOMEM ? diag_errno(diag, ENOBUFS, "reading it takes more memory than is given for it") : err;
}

bool sonde_is_worker(int argc, char **argv, int *ret_code)
{
	return serve_as_worker(argc, argv, answer, ret_code);
}
