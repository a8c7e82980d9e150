// SPDX-License-Identifier: Apache-2.0
#include "parse/parser.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "parse/background.h"
#include "parse/file_budget.h"
#include "parse/file_fd.h"
#include "parse/file_owner.h"
#include "parse/parser_private.h"
#include "unwind/table_image.h"
#include "worker/read_owner.h"

#define MAX_WORKER_BYTES ((uint64_t)1 << 30) /* its own; mapped files do not count */
#define MAX_TABLE_CPU_NS 10000000000u
#define MAX_NAMES_CPU_NS 30000000000u
#define MAX_WANTS_CPU_NS 2000000000u
#define MAX_RUNTIMES_CPU_NS 2000000000u
#define MAX_JIT_CPU_NS 10000000000u
#define MAX_STRANGERS_WANTS_CPU_NS 20000000u /* samples wait meanwhile */
#define REQUEST_BYTES_MAX ((size_t)512 << 20)

/* Limits for files of users other than root and our caller. Tables are read during the recording; for names, the report waits. */
static const struct file_budget_limits table_limits = { .owner_ns = 10 * NS_PER_S, .total_ns = 30 * NS_PER_S };
static const struct file_budget_limits name_limits = { .owner_ns = 3 * NS_PER_S, .total_ns = 6 * NS_PER_S };

struct parser {
	const char *word;
	struct worker *worker;    /* reads the files of root, and our own */
	struct worker *strangers; /* reads other users' files; NULL: none so far */
	int nice;
	struct file_owners *owners;
	struct file_budget *tables, *names;
	struct background *background; /* NULL: all requests are waited for */
	const uint64_t *cancel_ns;
};

static int new_for(const char *word, struct diag *diag, struct parser **ret_parser)
{
	CLEANUP(parser_freep) struct parser *parser = calloc(1, sizeof(*parser));
	int err;

	if (!parser)
		return -ENOMEM;
	parser->word = word;
	parser->owners = file_owners_new();
	parser->tables = file_budget_new(table_limits);
	parser->names = file_budget_new(name_limits);
	if (!parser->owners || !parser->tables || !parser->names)
		return -ENOMEM;
	err = worker_new_for(PARSER_PROGRAM, word, MAX_WORKER_BYTES, diag, &parser->worker);
	if (!err)
		*ret_parser = MOVE(parser);
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

int parser_use_background(struct parser *parser)
{
	parser->background = background_new(PARSER_PROGRAM, MAX_WORKER_BYTES);
	return parser->background ? 0 : -ENOMEM;
}

bool parser_may_wait(struct parser *parser)
{
	return parser->background && background_may_wait(parser->background);
}

void parser_forget(struct parser *parser, uint32_t object)
{
	if (parser->background)
		background_forget(parser->background, object);
}

void parser_cancel_by(struct parser *parser, const uint64_t *cancel_ns)
{
	parser->cancel_ns = cancel_ns;
}

void parser_set_nice(struct parser *parser, int nice)
{
	parser->nice = nice;
	worker_set_nice(parser->worker, nice);
	if (parser->strangers)
		worker_set_nice(parser->strangers, nice);
}

void parser_free(struct parser *parser)
{
	if (!parser)
		return;
	background_free(parser->background);
	worker_free(parser->worker);
	worker_free(parser->strangers);
	file_budget_free(parser->tables);
	file_budget_free(parser->names);
	file_owners_free(parser->owners);
	free(parser);
}

/* Limits the request to what the file's owner has left. -EDQUOT: nothing. */
static int limit(struct file_budget *budget, const struct file_owner *owner, struct worker_request *request, struct diag *diag)
{
	uint64_t left = file_budget_left(budget, owner, diag);

	if (!left)
		return -EDQUOT;
	if (request->kind == PARSER_WANTS && !owner->is_trusted)
		request->max_cpu_ns = MAX_STRANGERS_WANTS_CPU_NS;
	if (left < request->max_cpu_ns)
		request->max_cpu_ns = left;
	request->max_idle_ns = file_owner_idle_ns(owner);
	return 0;
}

static void charge(struct parser *parser, struct file_budget *budget, const struct file_owner *owner, int err, uint64_t cost_ns)
{
	file_budget_spend(budget, owner, cost_ns);
	if (err != -ETIME)
		return;
	file_budget_hang(parser->tables, owner);
	file_budget_hang(parser->names, owner);
}

/* The worker that may read the files. A single one would restart whenever an untrusted file comes between two of root's. */
static int choose_worker(struct parser *parser, const struct worker_request *request, struct diag *diag, struct worker **ret_worker)
{
	int err;

	*ret_worker = parser->worker;
	if (read_owner_of(request->fds, request->nr_fds) == READ_OWNER_OURS)
		return 0;
	err = parser->strangers ? 0 : worker_new_for(PARSER_PROGRAM, parser->word, MAX_WORKER_BYTES, diag, &parser->strangers);
	if (err)
		return err;
	if (parser->nice)
		worker_set_nice(parser->strangers, parser->nice); /* it may have been restarted */
	*ret_worker = parser->strangers;
	return 0;
}

/* Waits for the answer. `file_fd`: the file that is charged; -1: it is in our own memory. */
static int ask_now(struct parser *parser, struct file_budget *budget, int file_fd, struct worker_request *request, struct diag *diag,
		   struct buffer *answer)
{
	struct file_owner owner = file_owner_of(parser->owners, file_fd);
	struct worker *worker;
	int err = limit(budget, &owner, request, diag);

	if (!err)
		err = choose_worker(parser, request, diag, &worker);
	if (err)
		return err;
	request->cancel_ns = parser->cancel_ns;
	err = worker_ask(worker, request, diag, answer);
	charge(parser, budget, &owner, err, worker_cost_ns(worker));
	return err;
}

/* `fetched`: a second descriptor, sent with the file's; -1: none. */
static int ask(struct parser *parser, struct file_budget *budget, const struct elf_file *elf, int fetched, struct worker_request *request,
	       struct diag *diag, struct buffer *answer)
{
	CLEANUP(closep) int own = -1;
	int fds[] = { file_fd_of(elf, &own), fetched };

	if (fds[0] < 0)
		return diag_errno(diag, -fds[0], "it cannot be handed on: %s", strerror(-fds[0]));
	request->fds = fds;
	request->nr_fds = fetched < 0 ? 1 : 2;
	return ask_now(parser, budget, elf_file_fd(elf), request, diag, answer);
}

/* Sends the request, unless it is in progress. */
static int ask_background(struct parser *parser, const struct elf_file *elf, struct background_request *asked, struct diag *diag,
			  struct buffer *answer)
{
	int fd = elf_file_fd(elf), err = 0;

	asked->request.fds = &fd;
	asked->request.nr_fds = 1;
	if (!background_has(parser->background, asked->object, asked->request.kind))
		err = limit(parser->tables, &asked->owner, &asked->request, diag);
	if (!err)
		err = background_ask(parser->background, asked, diag, answer);
	if (err != -EINPROGRESS)
		charge(parser, parser->tables, &asked->owner, err, asked->cost_ns);
	return err;
}

/* For a file that processes map. If it is untrusted, the answer may need further calls. */
static int ask_of_mapped(struct parser *parser, uint32_t object, const struct elf_file *elf, struct worker_request request,
			 struct diag *diag, struct buffer *answer)
{
	struct background_request asked = { .object = object,
					    .owner = file_owner_of(parser->owners, elf_file_fd(elf)),
					    .request = request,
					    .max_answer_bytes = answer->max };

	if (parser->background && !(asked.owner.is_trusted && asked.owner.is_local))
		return ask_background(parser, elf, &asked, diag, answer);
	return ask(parser, parser->tables, elf, -1, &request, diag, answer);
}

int parser_table(struct parser *parser, uint32_t object, const struct elf_file *elf, struct rule_table *rules, struct diag *diag,
		 struct unwind_table **ret_table)
{
	CLEANUP(buffer_done) struct buffer image = BUFFER_INIT(TABLE_IMAGE_BYTES_MAX);
	int err = ask_of_mapped(parser, object, elf, (struct worker_request){ .kind = PARSER_TABLE, .max_cpu_ns = MAX_TABLE_CPU_NS }, diag,
				&image);

	if (err)
		return err;
	err = table_image_read(image.data, image.size, &(struct table_key){ 0 }, rules, elf_file_owner(elf), ret_table);
	return err == -EBADMSG ? diag_errno(diag, EBADMSG, "what was read of it is not sound") : err;
}

int parser_runtimes(struct parser *parser, uint32_t object, const struct elf_file *elf, struct diag *diag,
		    struct file_runtimes *ret_runtimes)
{
	CLEANUP(buffer_done) struct buffer answer = BUFFER_INIT(sizeof(*ret_runtimes));
	int err = ask_of_mapped(parser, object, elf, (struct worker_request){ .kind = PARSER_RUNTIMES, .max_cpu_ns = MAX_RUNTIMES_CPU_NS },
				diag, &answer);

	if (err)
		return err;
	return file_runtimes_read(answer.data, answer.size, ret_runtimes) ? diag_errno(diag, EBADMSG, "what was read of it is not sound")
									  : 0;
}

int parser_allocators(struct parser *parser, uint32_t object, const struct elf_file *elf, struct diag *diag,
		      struct allocators *ret_allocators)
{
	CLEANUP(buffer_done) struct buffer answer = BUFFER_INIT(sizeof(*ret_allocators));
	int err = ask_of_mapped(parser, object, elf,
				(struct worker_request){ .kind = PARSER_ALLOCATORS, .max_cpu_ns = MAX_TABLE_CPU_NS }, diag, &answer);

	if (err)
		return err;
	return allocators_read(answer.data, answer.size, elf_file_size(elf), ret_allocators)
		   ? diag_errno(diag, EBADMSG, "what was read of it is not sound")
		   : 0;
}

/* The header, then the addresses, as in PARSER_NAMES and PARSER_JIT. */
static void append_addresses(struct buffer *body, struct names_request header, const uint64_t *addresses)
{
	buffer_append(body, &header, sizeof(header));
	buffer_append(body, addresses, header.nr_addresses * sizeof(*addresses));
}

static int ask_names(struct parser *parser, struct worker_request request, const struct parser_names *names, struct diag *diag,
		     struct buffer *answers)
{
	CLEANUP(buffer_done) struct buffer body = BUFFER_INIT(REQUEST_BYTES_MAX);
	struct names_request header = { .nr_addresses = names->nr,
					.lines = names->lines,
					.path_bytes = names->path ? strlen(names->path) + 1 : 0 };

	append_addresses(&body, header, names->elf_vaddrs);
	if (names->path)
		buffer_append(&body, names->path, header.path_bytes);
	if (body.err)
		return body.err;
	request.open = names->open;
	request.open_arg = names->open_arg;
	request.body = body.data;
	request.payload_bytes = body.size;
	return ask(parser, parser->names, names->elf, request.kind == PARSER_NAMES && names->has_fetched ? names->fetched_fd : -1, &request,
		   diag, answers);
}

int parser_names(struct parser *parser, const struct parser_names *names, struct diag *diag, struct buffer *answers)
{
	return ask_names(parser, (struct worker_request){ .kind = PARSER_NAMES, .max_cpu_ns = MAX_NAMES_CPU_NS }, names, diag, answers);
}

int parser_wants_debug(struct parser *parser, const struct parser_names *file, bool *ret_wants)
{
	CLEANUP(buffer_done) struct buffer answer = BUFFER_INIT(64);
	int err = ask_names(parser, (struct worker_request){ .kind = PARSER_WANTS, .max_cpu_ns = MAX_WANTS_CPU_NS }, file, NULL, &answer);

	if (err)
		return err;
	if (answer.size != 1 || (uint8_t)answer.data[0] > 1)
		return -EBADMSG;
	*ret_wants = answer.data[0];
	return 0;
}

int parser_jit(struct parser *parser, const int *fds, uint32_t nr_fds, const uint64_t *pcs, uint32_t nr, struct diag *diag,
	       struct buffer *answers)
{
	CLEANUP(buffer_done) struct buffer body = BUFFER_INIT(REQUEST_BYTES_MAX);
	struct worker_request request = { .kind = PARSER_JIT, .fds = fds, .nr_fds = nr_fds, .max_cpu_ns = MAX_JIT_CPU_NS };

	append_addresses(&body, (struct names_request){ .nr_addresses = nr }, pcs);
	if (body.err)
		return body.err;
	request.body = body.data;
	request.payload_bytes = body.size;
	return ask_now(parser, parser->names, nr_fds ? fds[0] : -1, &request, diag, answers);
}

int parser_code(struct parser *parser, const struct elf_file *elf, const char *path, const struct code_request *code,
		worker_open_fn open_file, void *open_arg, struct diag *diag, struct buffer *answer)
{
	CLEANUP(buffer_done) struct buffer body = BUFFER_INIT(REQUEST_BYTES_MAX);
	struct worker_request request = { .kind = PARSER_CODE, .max_cpu_ns = MAX_NAMES_CPU_NS, .open = open_file, .open_arg = open_arg };

	buffer_append(&body, code, sizeof(*code));
	buffer_append(&body, path, strlen(path) + 1);
	if (body.err)
		return body.err;
	request.body = body.data;
	request.payload_bytes = body.size;
	return ask(parser, parser->names, elf, -1, &request, diag, answer);
}
