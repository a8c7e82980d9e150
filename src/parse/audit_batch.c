// SPDX-License-Identifier: Apache-2.0
#include "parse/audit_batch.h"

#include <errno.h>
#include <string.h>

#define BATCH_BYTES_MAX ((size_t)256 << 20) /* its owner has a tighter limit */

static const struct audit_message_module *modules_of(const struct audit_batch *batch)
{
	return (const void *)(batch->request.data + sizeof(struct audit_message));
}

struct audit_batch *audit_batch_new(const struct audit_request *first)
{
	struct audit_batch *batch = calloc(1, sizeof(*batch));
	struct audit_message request = { .tgid = first->record->tgid, .generation = first->generation, .nr_modules = first->nr_modules };

	if (!batch)
		return NULL;
	batch->tgid = request.tgid;
	batch->generation = request.generation;
	batch->nr_modules = request.nr_modules;
	batch->request = batch->walked = BUFFER_INIT(BATCH_BYTES_MAX);
	buffer_append(&batch->request, &request, sizeof(request));
	buffer_append(&batch->request, first->modules, first->nr_modules * sizeof(*first->modules));
	if (batch->request.err) {
		audit_batch_free(batch);
		return NULL;
	}
	return batch;
}

void audit_batch_free(struct audit_batch *batch)
{
	if (!batch)
		return;
	buffer_done(&batch->request);
	buffer_done(&batch->walked);
	free(batch);
}

static bool has_file(const struct audit_batch *batch, uint32_t file)
{
	uint32_t i = 0;

	while (i < batch->nr_files && batch->files[i] != file)
		i++;
	return i < batch->nr_files;
}

static uint32_t nr_new_files(const struct audit_batch *batch, const struct audit_request *request)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < request->nr_files; i++)
		nr += !has_file(batch, request->files[i]);
	return nr;
}

bool audit_batch_takes(const struct audit_batch *batch, const struct audit_request *request)
{
	if (batch->tgid != request->record->tgid || batch->generation != request->generation || batch->nr_modules != request->nr_modules)
		return false;
	if (batch->nr_stacks == AUDIT_BATCH_STACKS || nr_new_files(batch, request) > WIRE_MAX_FDS - batch->nr_files)
		return false;
	return !request->nr_modules || !memcmp(modules_of(batch), request->modules, request->nr_modules * sizeof(*request->modules));
}

int audit_batch_add(struct audit_batch *batch, const struct audit_request *request)
{
	static const char zero[8];
	const struct audit_walked walked = { .nr_frames = request->nr_walked,
					     .switch_frame = request->switch_frame,
					     .stop = request->stop };
	size_t record_bytes = sizeof(*request->record) + request->record->stack_bytes;

	buffer_append(&batch->request, request->record, record_bytes);
	buffer_append(&batch->request, zero, -record_bytes % sizeof(zero));
	buffer_append(&batch->walked, &walked, sizeof(walked));
	buffer_append(&batch->walked, request->walked, request->nr_walked * sizeof(*request->walked));
	if (batch->request.err || batch->walked.err)
		return -ENOMEM;
	for (uint32_t i = 0; i < request->nr_files; i++) {
		if (!has_file(batch, request->files[i]))
			batch->files[batch->nr_files++] = request->files[i];
	}
	batch->nr_stacks++;
	return 0;
}

size_t audit_request_bytes(const struct audit_request *request)
{
	return sizeof(struct audit_batch) + sizeof(struct audit_message) + request->nr_modules * sizeof(*request->modules) +
	       sizeof(*request->record) + request->record->stack_bytes + sizeof(struct audit_walked) +
	       request->nr_walked * sizeof(*request->walked) + 8;
}

size_t audit_batch_bytes(const struct audit_batch *batch)
{
	return sizeof(*batch) + batch->request.capacity + batch->walked.capacity;
}

void audit_batch_tell_files(struct audit_batch *batch, const uint32_t *files, uint32_t nr_files)
{
	struct audit_message *request = (void *)batch->request.data;

	request->nr_stacks = batch->nr_stacks;
	request->nr_files = nr_files;
	memcpy(request->files, files, nr_files * sizeof(*files));
}

const struct audit_message_module *audit_batch_module(const struct audit_batch *batch, uint64_t pc)
{
	const struct audit_message_module *modules = modules_of(batch);
	uint32_t i = 0;

	while (i < batch->nr_modules && modules[i].end_pc <= pc)
		i++;
	return i < batch->nr_modules && modules[i].start_pc <= pc ? &modules[i] : NULL;
}
