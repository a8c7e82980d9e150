/* SPDX-License-Identifier: Apache-2.0 */
/* background: requests about files for which nobody waits long. A request that is made again finds the one in progress. There are a few
 * workers, each for the files of one owner at a time: a worker ends before another owner's files are read. An owner has one request in
 * progress, so that one user's slow files do not delay those of others. One thread. */
#pragma once
#include "base/buffer.h"
#include "parse/file_owner.h"
#include "worker/worker.h"

struct background;
struct background *background_new(const char *program, uint64_t max_worker_bytes); /* NULL: no memory. Starts no worker yet. */
void background_free(struct background *background); /* takes NULL */

struct background_request {
	uint32_t object;   /* the file's number: identifies the request, together with its kind */
	struct file_owner owner;
	struct worker_request request; /* without a payload */
	size_t max_answer_bytes;
	uint64_t cost_ns; /* out: CPU time, once the answer has arrived */
};
/* Waits a little, as long as waiting has not taken too much of the run. -EINPROGRESS: call again later; otherwise as worker_ask, and
 * `answer` is the caller's. */
MUST_CHECK int background_ask(struct background *background, struct background_request *asked, struct diag *diag, struct buffer *answer);
bool background_has(const struct background *background, uint32_t object, uint32_t kind); /* is it in progress? */
bool background_may_wait(struct background *background); /* has waiting not taken too much? */
void background_forget(struct background *background, uint32_t object); /* drops the file's request */
