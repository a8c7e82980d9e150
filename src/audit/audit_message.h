/* SPDX-License-Identifier: Apache-2.0 */
/* audit_message: a request to a worker about stacks of one process, and its answer. Both ends are this program, but the answer is
 * untrusted, as libdw has read untrusted files. */
#pragma once
#include <stdint.h>

#include "audit/audit.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/reader.h"
#include "codec/wire.h"

/* `nr_modules` modules and `nr_stacks` records (struct sonde_deferred_record, each with its stack) follow, each at a multiple of 8. */
struct audit_message {
	uint32_t tgid, generation;
	uint32_t nr_modules, nr_stacks;
	uint32_t nr_files;
	uint32_t files[WIRE_MAX_FDS]; /* numbers of the files with descriptors in this message; the worker keeps them */
	uint32_t pad;
};
_Static_assert(sizeof(struct audit_message) % 8 == 0, "what follows is aligned");

struct audit_message_module { /* as struct audit_module */
	uint64_t start_pc, end_pc, load_bias;
	uint32_t object; /* the file's number; UINT32_MAX: anonymous memory */
	uint32_t pad;
};

/* An answer is the stacks, one after the other. */
void audit_answers_append(struct buffer *answers, const struct audit_stack *stack);
/* Checks all stacks. 0; -EBADMSG: the number is wrong, or one is not what audit_unwind returns. After 0, audit_answers_next reads each. */
MUST_CHECK int audit_answers_open(const void *bytes, size_t size, uint32_t nr_stacks, struct reader *ret_answers);
void audit_answers_next(struct reader *answers, struct audit_stack *ret_stack);
#define AUDIT_ANSWER_MAX_BYTES (2 * sizeof(uint32_t) + AUDIT_MAX_FRAMES * sizeof(uint64_t)) /* per stack */
