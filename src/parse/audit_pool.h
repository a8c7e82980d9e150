/* SPDX-License-Identifier: Apache-2.0 */
/* audit_pool: the workers that unwind with libdw, and their queues. A worker keeps the files that it has read, so it gets those of one user
 * and of root only. One worker takes stacks that pass through files of root (or our own user) only; a few others take those that pass
 * through another user's files, and change hands when idle. Nobody waits for them except at the end. The CPU time that an owner's files
 * take beyond the usual is charged to the owner (file_budget.h). One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "model/account.h"
#include "parse/audit_batch.h"
#include "process/object_table.h"

/* Called with a finished batch: its answers, checked; or NULL and the reason. Called in audit_pool_step, _finish and _free. */
typedef void (*audit_done_fn)(void *arg, const struct audit_batch *batch, struct reader *answers, enum audit_reason reason);

struct audit_pool_options {
	const char *program;                /* the worker's executable, which calls serve_as_worker */
	uint32_t kind;                      /* of its requests */
	uint64_t max_cpu_ns;                /* for one request */
	const struct object_table *objects; /* borrowed, like the account */
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
/* Queues the stack for an audit. The files must be known as long as the pool lives. 0; -EAGAIN: no room, AUDIT_REASON_NO_ANSWER; -EPERM:
 * AUDIT_REASON_NOT_ASKED; -ENOMEM. */
MUST_CHECK int audit_pool_add(struct audit_pool *pool, const struct audit_request *request);
bool audit_pool_is_crowded(const struct audit_pool *pool); /* half of the room is taken: time for a step */
/* Takes the answers that have arrived, and sends the next requests. *ret_is_busy: call again soon. 0 or -ENOMEM. */
MUST_CHECK int audit_pool_step(struct audit_pool *pool, bool *ret_is_busy);
/* Waits at most max_ns for the remaining answers; the rest count as unanswered. 0 or -ENOMEM. */
MUST_CHECK int audit_pool_finish(struct audit_pool *pool, uint64_t max_ns);
