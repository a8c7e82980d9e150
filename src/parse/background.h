/* SPDX-License-Identifier: Apache-2.0 */
/* background: questions about files that are not to be waited for. Asked again, the same question is found on its way. A few workers, each
 * for the files of one owner at a time: it ends before another's are read. An owner has one question on its way, so that one user's slow
 * files do not keep others' waiting. One thread. */
#pragma once
#include "base/buffer.h"
#include "parse/file_owner.h"
#include "worker/worker.h"

struct background;
struct background *background_new(const char *program, uint64_t max_worker_bytes); /* NULL: no memory. Starts nothing yet. */
void background_free(struct background *background); /* takes NULL */

struct background_request {
	uint32_t object;   /* the file's number: with the question's kind it tells it from others */
	struct file_owner owner;
	struct worker_request request; /* without a body */
	size_t max_answer_bytes;
	uint64_t cost_ns; /* out: CPU time, when it has come to its end */
};
/* Waits a little, as long as waiting has not taken too much of the run. -EINPROGRESS: ask again later; else as worker_ask, and `answer` is
 * the caller's. */
MUST_CHECK int background_ask(struct background *background, struct background_request *asked, struct diag *diag, struct buffer *answer);
bool background_has(const struct background *background, uint32_t object, uint32_t kind); /* is it on its way? */
bool background_may_wait(struct background *background); /* has waiting not taken too much? */
void background_forget(struct background *background, uint32_t object); /* nobody asks about the file any more */
