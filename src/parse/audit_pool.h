/* SPDX-License-Identifier: Apache-2.0 */
/* audit_pool: the workers that unwind by libdw, and what waits for them. They keep the files that they have read, so each has those of one
 * user alone, and root's: one for stacks that go through files of root (or of our own user) only, and a few for those that go through
 * another's, which change hands when they are idle. Nobody waits for them but at the end. What an owner's files take beyond the usual is
 * charged to him (file_budget.h). One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "model/account.h"
#include "parse/audit_batch.h"
#include "process/object_table.h"

/* What became of a batch: its answers, checked; NULL: there are none, and why. Called in audit_pool_step, _finish and _free. */
typedef void (*audit_done_fn)(void *arg, const struct audit_batch *batch, struct reader *answers, enum audit_reason reason);

struct audit_pool_options {
	const char *program;                /* that gives itself to serve_as_worker */
	uint32_t kind;                      /* of its questions */
	uint64_t max_cpu_ns;                /* for one */
	const struct object_table *objects; /* borrowed, as the account is */
	struct account *account;            /* for notes */
	audit_done_fn done;
	void *arg;
};

struct audit_pool;
/* Starts the first worker. 0, -ENOMEM or as worker_new. */
MUST_CHECK int audit_pool_new(const struct audit_pool_options *options, struct diag *diag, struct audit_pool **ret_pool);
void audit_pool_free(struct audit_pool *pool); /* takes NULL */
static inline void audit_pool_freep(struct audit_pool **pool)
{
	audit_pool_free(*pool);
}
void audit_pool_set_nice(struct audit_pool *pool, int nice); /* of the workers */
/* Has the stack audited. The files must be known as long as the pool. 0; -EAGAIN: there is no room, AUDIT_REASON_NO_ANSWER; -EPERM:
 * AUDIT_REASON_NOT_ASKED; -ENOMEM. */
MUST_CHECK int audit_pool_add(struct audit_pool *pool, const struct audit_request *request);
bool audit_pool_is_crowded(const struct audit_pool *pool); /* half of the room is taken: time for a step */
/* Takes the answers that are there, and asks on. *ret_is_busy: it is to be called again soon. 0 or -ENOMEM. */
MUST_CHECK int audit_pool_step(struct audit_pool *pool, bool *ret_is_busy);
/* Waits for what is left, no longer than so; the rest has no answer. 0 or -ENOMEM. */
MUST_CHECK int audit_pool_finish(struct audit_pool *pool, uint64_t max_ns);
