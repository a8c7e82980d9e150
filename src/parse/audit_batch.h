/* SPDX-License-Identifier: Apache-2.0 */
/* audit_batch: stacks of one process that go to a worker in one request (audit/audit_message.h), and the frames that were walked for them.
 * One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "audit/audit_message.h"

#define AUDIT_BATCH_STACKS 32u

/* One stack; borrowed. */
struct audit_request {
	const struct sonde_deferred_record *record;
	uint32_t generation;  /* of its process at that time */
	const struct audit_message_module *modules; /* all mappings at that time, sorted by start_pc */
	uint32_t nr_modules;
	const uint32_t *files; /* numbers of the files it passes through, each once */
	uint32_t nr_files;     /* at most WIRE_MAX_FDS */
	const uint64_t *walked; /* pcs, as in abi/record.h, leaf first */
	uint32_t nr_walked;
	uint32_t switch_frame; /* as in struct audited */
	enum sonde_stop stop;
};

/* A stack as it was walked; `nr_frames` pcs (uint64_t) follow. */
struct audit_walked {
	uint32_t nr_frames, switch_frame, stop, pad;
};
_Static_assert(sizeof(struct audit_walked) % sizeof(uint64_t) == 0, "the pcs are aligned");

struct audit_batch {
	struct audit_batch *next;
	uint32_t tgid, generation, nr_modules, nr_stacks;
	uint32_t files[WIRE_MAX_FDS], nr_files; /* that its stacks pass through */
	struct buffer request;
	struct buffer walked; /* struct audit_walked of each stack */
};

struct audit_batch *audit_batch_new(const struct audit_request *first); /* without stacks; NULL: no memory */
void audit_batch_free(struct audit_batch *batch); /* takes NULL */
/* Is the stack of the same process with the same modules, and is there room? */
bool audit_batch_takes(const struct audit_batch *batch, const struct audit_request *request);
MUST_CHECK int audit_batch_add(struct audit_batch *batch, const struct audit_request *request); /* 0 or -ENOMEM */
size_t audit_request_bytes(const struct audit_request *request); /* at most this much more */
size_t audit_batch_bytes(const struct audit_batch *batch);
/* Completes the request: these files are new to the worker. */
void audit_batch_tell_files(struct audit_batch *batch, const uint32_t *files, uint32_t nr_files);
const struct audit_message_module *audit_batch_module(const struct audit_batch *batch, uint64_t pc); /* NULL: none */
