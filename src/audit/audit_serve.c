// SPDX-License-Identifier: Apache-2.0
#include "audit/audit_serve.h"

#include <errno.h>

#include "audit/audit_message.h"
#include "base/u64_map.h"

struct audit_server {
	struct audit *audit;
	struct elf_file *files[AUDIT_SERVE_MAX_FILES]; /* NULL: no usable ELF file */
	uint32_t nr_files;
	struct u64_map by_object; /* -> index in files */
	struct audit_stack stack;
};

void audit_server_free(struct audit_server *server)
{
	if (!server)
		return;
	audit_free(server->audit);
	for (uint32_t i = 0; i < server->nr_files; i++)
		elf_file_free(server->files[i]);
	u64_map_done(&server->by_object);
	free(server);
}

static int begin(struct audit_server **server, struct diag *diag)
{
	struct audit_server *begun = calloc(1, sizeof(*begun));
	int err = begun ? audit_new(diag, &begun->audit) : -ENOMEM;

	if (err)
		audit_server_free(begun);
	else
		*server = begun;
	return err;
}

/* A file that is not ELF gets its number, too. */
static int keep_files(struct audit_server *server, const struct audit_message *request, struct wire_fds *fds)
{
	if (request->nr_files != fds->nr || fds->nr > AUDIT_SERVE_MAX_FILES - server->nr_files)
		return -EBADMSG;
	while (fds->nr) {
		struct elf_file *elf = NULL;

		if (elf_file_open_fd(fds->fds[fds->nr - 1], NULL, &elf) == -ENOMEM)
			return -ENOMEM;
		if (!elf)
			close(fds->fds[fds->nr - 1]);
		fds->nr--;
		server->files[server->nr_files] = elf;
		if (u64_map_add(&server->by_object, request->files[fds->nr], server->nr_files++))
			return -ENOMEM;
	}
	return 0;
}

static const struct elf_file *file_of(const struct audit_server *server, uint32_t object)
{
	const uint32_t *place = u64_map_find(&server->by_object, object);

	return place ? server->files[*place] : NULL;
}

static int read_modules(const struct audit_server *server, struct reader *reader, struct audit_module *modules, uint32_t nr_modules)
{
	for (uint32_t i = 0; i < nr_modules; i++) {
		struct audit_message_module module;

		reader_copy(reader, &module, sizeof(module));
		modules[i] = (struct audit_module){ module.start_pc, module.end_pc, module.load_bias, file_of(server, module.object),
						    module.object };
	}
	return reader->bad ? -EBADMSG : 0;
}

/* Returns the next record with its stack, in place: the request is aligned. NULL: there is none. */
static const struct sonde_deferred_record *next_record(struct reader *reader)
{
	const struct sonde_deferred_record *record = (const void *)reader->pos;

	if (reader_left(reader) < sizeof(*record) || record->stack_bytes > SONDE_DEFERRED_MAX_BYTES)
		return NULL;
	reader_skip(reader, sizeof(*record) + (record->stack_bytes + 7) / 8 * 8);
	return reader->bad ? NULL : record;
}

int audit_serve(struct audit_server **server, struct wire_fds *fds, const void *body, size_t size, struct diag *diag, struct buffer *to)
{
	struct reader reader = reader_of(body, size);
	CLEANUP(freep) struct audit_module *modules = NULL;
	struct audit_process process;
	struct audit_message request;
	int err = *server ? 0 : begin(server, diag);

	reader_copy(&reader, &request, sizeof(request));
	if (!err && (reader.bad || request.nr_modules > reader_left(&reader) / sizeof(struct audit_message_module)))
		err = -EBADMSG;
	if (!err)
		err = keep_files(*server, &request, fds);
	if (err)
		return err;
	modules = calloc(request.nr_modules + 1u, sizeof(*modules));
	err = modules ? read_modules(*server, &reader, modules, request.nr_modules) : -ENOMEM;
	process = (struct audit_process){
		.tgid = request.tgid, .generation = request.generation, .modules = modules, .nr_modules = request.nr_modules
	};
	for (uint32_t i = 0; !err && i < request.nr_stacks; i++) {
		const struct sonde_deferred_record *record = next_record(&reader);

		err = record ? audit_unwind((*server)->audit, record, &process, &(*server)->stack) : -EBADMSG;
		if (!err)
			audit_answers_append(to, &(*server)->stack);
	}
	return err;
}
