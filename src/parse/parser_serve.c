// SPDX-License-Identifier: Apache-2.0
/* The worker's side: reads one file, answers, and keeps nothing of it. A worker for audits keeps what it has read. */
#include <errno.h>
#include <string.h>

#include <sonde/sonde.h>

#include "abi/unwind.h"
#include "audit/audit_serve.h"
#include "base/reader.h"
#include "debuginfod/fetch_serve.h"
#include "parse/parser.h"
#include "parse/parser_private.h"
#include "probe/allocators.h"
#include "proxy/proxy.h"
#include "symbolize/code_listing.h"
#include "symbolize/debug_file.h"
#include "symbolize/jit_names.h"
#include "symbolize/name_answers.h"
#include "symbolize/symbolizer.h"
#include "unwind/table_image.h"
#include "unwind/unwind_table.h"
#include "worker/serve.h"

#define THE_OBJECT 0 /* the symbolizer's number for its only file */

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

static int look_up_names(struct symbolizer *symbolizer, const struct elf_file *elf, const char *path,
			 const struct symbol_addresses *addresses, struct name_writer *writer)
{
	for (size_t i = 0; i < addresses->nr; i++) {
		struct symbol_name names[NAME_ANSWERS_MAX];
		uint64_t address = addresses->elf_vaddrs[i];
		struct symbol_extent extent;
		uint32_t nr = 0;
		int err = symbolizer_object(symbolizer, THE_OBJECT, elf, path, address, names, NAME_ANSWERS_MAX, &nr);

		if (err && err != -ENOENT && err != -ENODATA)
			return err;
		extent = symbolizer_extent(symbolizer, THE_OBJECT, address);
		name_writer_add(writer, &extent, names, err ? 0 : nr);
	}
	return 0;
}

/* Splits a request into its header, its addresses and its path (NULL: none). 0 or -EBADMSG. */
static int read_request(const void *body, size_t size, struct names_request *ret_request, struct reader *ret_addresses,
			const char **ret_path)
{
	struct reader reader = reader_of(body, size);

	reader_copy(&reader, ret_request, sizeof(*ret_request));
	*ret_addresses = reader_sub(&reader, ret_request->nr_addresses * sizeof(uint64_t));
	*ret_path = ret_request->path_bytes ? reader_text(&reader) : NULL;
	return reader.bad ? -EBADMSG : 0;
}

/* An aligned copy. NULL: no memory. */
static uint64_t *copy_addresses(const struct reader *addresses)
{
	uint64_t *copy = malloc(reader_left(addresses) + 1);

	if (copy)
		memcpy(copy, addresses->pos, reader_left(addresses));
	return copy;
}

/* Takes over `fetched`; -1: none. An unusable one is counted and ignored. */
static int answer_names(const struct elf_file *elf, int fetched, const void *body, size_t size, struct buffer *to)
{
	CLEANUP(elf_file_freep) struct elf_file *debug = NULL;
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = NULL;
	CLEANUP(name_writer_done) struct name_writer writer;
	CLEANUP(freep) uint64_t *elf_vaddrs = NULL;
	struct symbol_addresses addresses;
	struct names_request request;
	struct dwarf_lines_counts lines;
	struct reader asked;
	const char *path;
	int err = read_request(body, size, &request, &asked, &path);

	name_writer_init(&writer);
	if (fetched >= 0 && debug_file_take(elf, fetched, &debug))
		writer.nr_refused = 1;
	if (err)
		return err;
	elf_vaddrs = copy_addresses(&asked);
	addresses = (struct symbol_addresses){ .elf_vaddrs = elf_vaddrs, .nr = request.nr_addresses };
	symbolizer = symbolizer_new(&(struct symbolizer_options){ .lines = request.lines, .fetched = debug, .addresses = &addresses });
	if (!symbolizer || !elf_vaddrs)
		return -ENOMEM;
	err = look_up_names(symbolizer, elf, path, &addresses, &writer);
	lines = symbolizer_lines_counts(symbolizer);
	writer.nr_missing = lines.nr_missing_dwo;
	writer.nr_packed = lines.nr_packed;
	writer.nr_cut = lines.nr_cut;
	return err ? err : name_writer_end(&writer, to);
}

static int answer_code(const struct elf_file *elf, const void *body, size_t size, struct diag *diag, struct buffer *to)
{
	struct reader reader = reader_of(body, size);
	struct code_request request;
	const char *path;

	reader_copy(&reader, &request, sizeof(request));
	path = reader_text(&reader);
	return reader.bad ? -EBADMSG : code_listing_write(elf, path, &request, diag, to);
}

static int answer_wants(const struct elf_file *elf, const void *body, size_t size, struct buffer *to)
{
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = NULL;
	struct names_request request;
	struct reader addresses;
	const char *path;
	uint8_t wants;
	int err = read_request(body, size, &request, &addresses, &path);

	if (err)
		return err;
	symbolizer = symbolizer_new(&(struct symbolizer_options){ .lines = request.lines });
	if (!symbolizer)
		return -ENOMEM;
	wants = symbolizer_wants_debug(symbolizer, elf, path);
	buffer_append(to, &wants, sizeof(wants));
	return 0;
}

static void jit_names_freep(struct jit_names **names)
{
	jit_names_free(*names);
}

/* A file that cannot be used is skipped. */
static int read_jit(struct jit_names *jit, const struct wire_fds *fds)
{
	for (uint32_t i = 0; i < fds->nr; i++) {
		if (jit_names_read_fd(jit, fds->fds[i]) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

static int answer_jit(const struct wire_fds *fds, const void *body, size_t size, struct buffer *to)
{
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = symbolizer_new(NULL);
	CLEANUP(jit_names_freep) struct jit_names *jit = jit_names_new();
	CLEANUP(name_writer_done) struct name_writer writer;
	struct reader reader = reader_of(body, size);
	struct names_request request;
	int err = symbolizer && jit ? read_jit(jit, fds) : -ENOMEM;

	name_writer_init(&writer);
	reader_copy(&reader, &request, sizeof(request));
	while (!err && reader_left(&reader)) {
		const struct symbol_extent unknown = { 0 };
		struct symbol_name name;

		err = symbolizer_jit(symbolizer, jit, reader_u64(&reader), &name);
		if (err && err != -ENOENT)
			return err;
		name_writer_add(&writer, &unknown, &name, err ? 0 : 1);
		err = 0;
	}
	if (err)
		return err;
	writer.nr_refused = jit_names_nr_refused(jit);
	return name_writer_end(&writer, to);
}

static int answer_of_file(uint32_t kind, struct wire_fds *fds, const void *body, size_t size, struct diag *diag, struct buffer *to)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	bool has_fetched = kind == PARSER_NAMES && fds->nr == 2;
	int err = fds->nr == 1 || has_fetched ? elf_file_open_fd(fds->fds[0], diag, &elf) : -EBADMSG;

	if (err)
		return err;
	fds->nr = 0; /* they are taken over */
	switch (kind) {
	case PARSER_TABLE:
		return answer_table(elf, diag, to);
	case PARSER_CODE:
		return answer_code(elf, body, size, diag, to);
	case PARSER_RUNTIMES:
		return file_runtimes_make(elf, to);
	case PARSER_ALLOCATORS:
		return allocators_make(elf, to);
	case PARSER_WANTS:
		return answer_wants(elf, body, size, to);
	}
	return answer_names(elf, has_fetched ? fds->fds[1] : -1, body, size, to);
}

static int answer_any(struct audit_server **audit, uint32_t kind, struct wire_fds *fds, const void *body, size_t size, struct diag *diag,
		      struct buffer *to)
{
	switch (kind) {
	case PARSER_JIT:
		return answer_jit(fds, body, size, to);
	case PARSER_AUDIT:
		return audit_serve(audit, fds, body, size, diag, to);
	}
	return answer_of_file(kind, fds, body, size, diag, to);
}

static int answer(void *arg, uint32_t kind, struct wire_fds *fds, const void *body, size_t size, struct diag *diag, struct buffer *to)
{
	int err = answer_any(arg, kind, fds, body, size, diag, to);

	return err == -ENOMEM ? diag_errno(diag, ENOBUFS, "reading it needs more memory than it may use") : err;
}

bool sonde_is_worker(int argc, char **argv, int *ret_code)
{
	CLEANUP(audit_server_freep) struct audit_server *audit = NULL;

	if (argc == 3 && !strcmp(argv[0], WORKER_NAME) && !strcmp(argv[2], PARSER_FOR_CODE))
		code_listing_preload();
	return serve_as_worker(argc, argv, answer, &audit, ret_code) || serve_as_proxy(argc, argv, ret_code) ||
	       serve_as_fetcher(argc, argv, ret_code);
}
