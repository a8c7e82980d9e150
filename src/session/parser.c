// SPDX-License-Identifier: Apache-2.0
#include "session/parser.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "session/parser_private.h"
#include "unwind/table_image.h"

#define PROGRAM "/proc/self/exe"
#define MAX_WORKER_BYTES ((uint64_t)1 << 30) /* of its own; mapped files do not count */
#define MAX_TABLE_CPU_NS 10000000000u
#define MAX_NAMES_CPU_NS 30000000000u
#define MAX_WANTS_CPU_NS 2000000000u
#define MAX_RUNTIMES_CPU_NS 2000000000u
#define MAX_JIT_CPU_NS 10000000000u
#define QUESTION_BYTES_MAX ((size_t)512 << 20)

struct parser {
	struct worker *worker;
};

static int new_for(const char *word, struct diag *diag, struct parser **ret_parser)
{
	struct parser *parser = calloc(1, sizeof(*parser));
	int err = parser ? worker_new_for(PROGRAM, word, MAX_WORKER_BYTES, diag, &parser->worker) : -ENOMEM;

	if (err)
		parser_free(parser);
	else
		*ret_parser = parser;
	return err;
}

int parser_new(struct diag *diag, struct parser **ret_parser)
{
	return new_for(NULL, diag, ret_parser);
}

int parser_new_for_code(struct diag *diag, struct parser **ret_parser)
{
	return new_for(PARSER_FOR_CODE, diag, ret_parser);
}

int parser_ready(struct parser *parser, struct diag *diag)
{
	struct diag why = { 0 };

	return worker_ready(parser->worker, &why) == -ELOOP ? diag_errno(diag, ELOOP, "%s", why.text) : 0;
}

void parser_set_nice(struct parser *parser, int nice)
{
	worker_set_nice(parser->worker, nice);
}

void parser_free(struct parser *parser)
{
	if (!parser)
		return;
	worker_free(parser->worker);
	free(parser);
}

/* A descriptor of the file's bytes, for those that stand in memory only (the vdso) too. *ret_own: to be closed, -1 when it is the file's. */
static int fd_of(const struct elf_file *elf, int *ret_own)
{
	int fd = elf_file_fd(elf);
	uint64_t size = elf_file_size(elf);

	if (fd >= 0)
		return fd;
	fd = memfd_create("elf", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_own = fd;
	return write(fd, elf_file_bytes(elf), size) == (ssize_t)size ? fd : -EIO;
}

/* `fetched`: a second descriptor that goes with the file's; -1: none. */
static int ask(struct parser *parser, const struct elf_file *elf, int fetched, struct worker_question *question, struct diag *diag, struct buffer *answer)
{
	CLEANUP(closep) int own = -1;
	int fds[] = { fd_of(elf, &own), fetched };

	if (fds[0] < 0)
		return diag_errno(diag, -fds[0], "it cannot be handed on: %s", strerror(-fds[0]));
	question->fds = fds;
	question->nr_fds = fetched < 0 ? 1 : 2;
	return worker_ask(parser->worker, question, diag, answer);
}

int parser_table(struct parser *parser, const struct elf_file *elf, struct rule_table *rules, struct diag *diag, struct unwind_table **ret_table)
{
	CLEANUP(buffer_done) struct buffer image = BUFFER_INIT(TABLE_IMAGE_BYTES_MAX);
	struct worker_question question = { .kind = PARSER_TABLE, .max_cpu_ns = MAX_TABLE_CPU_NS };
	int err = ask(parser, elf, -1, &question, diag, &image);

	if (err)
		return err;
	err = table_image_read(image.data, image.size, &(struct table_key){ 0 }, rules, elf_file_owner(elf), ret_table);
	return err == -EBADMSG ? diag_errno(diag, EBADMSG, "what was read of it is not sound") : err;
}

int parser_runtimes(struct parser *parser, const struct elf_file *elf, struct diag *diag, struct parser_runtimes *ret_runtimes)
{
	CLEANUP(buffer_done) struct buffer answer = BUFFER_INIT(sizeof(*ret_runtimes));
	struct worker_question question = { .kind = PARSER_RUNTIMES, .max_cpu_ns = MAX_RUNTIMES_CPU_NS };
	struct parser_runtimes runtimes;
	int err = ask(parser, elf, -1, &question, diag, &answer);

	if (err)
		return err;
	if (answer.size != sizeof(runtimes))
		return diag_errno(diag, EBADMSG, "what was read of it is not sound");
	memcpy(&runtimes, answer.data, sizeof(runtimes));
	for (uint32_t i = 0; i < PARSER_MAX_RUNTIMES; i++) {
		struct runtime_image *image = &runtimes.images[i];

		image->reason[sizeof(image->reason) - 1] = '\0';
		if (runtimes.nr_images > PARSER_MAX_RUNTIMES || (i < runtimes.nr_images && (!runtime_of(image->runtime) || image->nr_loops > SONDE_MAX_LOOPS)))
			return diag_errno(diag, EBADMSG, "what was read of it is not sound");
	}
	*ret_runtimes = runtimes;
	return 0;
}

/* The addresses behind their header, as PARSER_NAMES and PARSER_JIT have them. */
static void append_addresses(struct buffer *body, struct names_question header, const uint64_t *addresses)
{
	buffer_append(body, &header, sizeof(header));
	buffer_append(body, addresses, header.nr_addresses * sizeof(*addresses));
}

static int ask_names(struct parser *parser, struct worker_question question, const struct parser_names *names, struct diag *diag, struct buffer *answers)
{
	CLEANUP(buffer_done) struct buffer body = BUFFER_INIT(QUESTION_BYTES_MAX);
	struct names_question header = { .nr_addresses = names->nr, .lines = names->lines, .path_bytes = names->path ? strlen(names->path) + 1 : 0 };

	append_addresses(&body, header, names->elf_vaddrs);
	if (names->path)
		buffer_append(&body, names->path, header.path_bytes);
	if (body.err)
		return body.err;
	question.open = names->open;
	question.open_arg = names->open_arg;
	question.body = body.data;
	question.body_bytes = body.size;
	return ask(parser, names->elf, question.kind == PARSER_NAMES && names->has_fetched ? names->fetched_fd : -1, &question, diag, answers);
}

int parser_names(struct parser *parser, const struct parser_names *names, struct diag *diag, struct buffer *answers)
{
	return ask_names(parser, (struct worker_question){ .kind = PARSER_NAMES, .max_cpu_ns = MAX_NAMES_CPU_NS }, names, diag, answers);
}

int parser_wants_debug(struct parser *parser, const struct parser_names *file, bool *ret_wants)
{
	CLEANUP(buffer_done) struct buffer answer = BUFFER_INIT(64);
	int err = ask_names(parser, (struct worker_question){ .kind = PARSER_WANTS, .max_cpu_ns = MAX_WANTS_CPU_NS }, file, NULL, &answer);

	if (err)
		return err;
	if (answer.size != 1)
		return -EBADMSG;
	*ret_wants = answer.data[0];
	return 0;
}

int parser_jit(struct parser *parser, const int *fds, uint32_t nr_fds, const uint64_t *pcs, uint32_t nr, struct diag *diag, struct buffer *answers)
{
	CLEANUP(buffer_done) struct buffer body = BUFFER_INIT(QUESTION_BYTES_MAX);
	struct worker_question question = { .kind = PARSER_JIT, .fds = fds, .nr_fds = nr_fds, .max_cpu_ns = MAX_JIT_CPU_NS };

	append_addresses(&body, (struct names_question){ .nr_addresses = nr }, pcs);
	if (body.err)
		return body.err;
	question.body = body.data;
	question.body_bytes = body.size;
	return worker_ask(parser->worker, &question, diag, answers);
}

int parser_code(struct parser *parser, const struct elf_file *elf, const char *path, const struct code_question *code, worker_open_fn open_file, void *open_arg,
		struct diag *diag, struct buffer *answer)
{
	CLEANUP(buffer_done) struct buffer body = BUFFER_INIT(QUESTION_BYTES_MAX);
	struct worker_question question = { .kind = PARSER_CODE, .max_cpu_ns = MAX_NAMES_CPU_NS, .open = open_file, .open_arg = open_arg };

	buffer_append(&body, code, sizeof(*code));
	buffer_append(&body, path, strlen(path) + 1);
	if (body.err)
		return body.err;
	question.body = body.data;
	question.body_bytes = body.size;
	return ask(parser, elf, -1, &question, diag, answer);
}
