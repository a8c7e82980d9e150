/* SPDX-License-Identifier: Apache-2.0 */
/* worker: a process without rights that reads strangers' files for us. It has a user of its own, no network and no file but those whose
 * descriptors come with a question (sandbox.h); when it crashes, or takes too long, that question has no answer and the next one goes to a
 * new worker. What it answers is a stranger's text: to be checked like any other. One thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "worker/opening.h"

struct worker;

struct worker_request {
	uint32_t kind;          /* as the serve_fn takes it */
	const int *fds;         /* that it may read; they stay the caller's */
	uint32_t nr_fds;        /* up to WIRE_MAX_FDS */
	bool has_earlier;       /* it still has the files of earlier questions, too */
	const void *body;
	size_t payload_bytes;
	uint64_t max_cpu_ns;    /* then it is ended; so it is after three times as much has passed */
	uint64_t max_idle_ns;	/* so long it may sleep, and use no CPU, before its file's file system counts as hung; 0: for as long as it
				   likes */
	const uint64_t *cancel_ns; /* from then on the question is given up, or not asked: -ECANCELED (clock_is_past) */
	worker_open_fn open;    /* NULL: it opens nothing */
	void *open_arg;
};

/* Starts one, as `program`, which gives itself to serve_as_worker, with so much memory. 0; as spawn_helper (base/spawn.h). */
MUST_CHECK int worker_new(const char *program, uint64_t max_bytes, struct diag *diag, struct worker **ret_worker);
/* One that is told a word, too, as argv[2]: what the program does with it before it gives itself to serve_as_worker, such as loading a
 * library. */
MUST_CHECK int worker_new_for(const char *program, const char *word, uint64_t max_bytes, struct diag *diag, struct worker **ret_worker);
void worker_free(struct worker *worker); /* takes NULL */
static inline void worker_freep(struct worker **worker)
{
	worker_free(*worker);
}
/* Waits until it has started. 0; -ELOOP: the program does not give itself to serve_as_worker, and is not started again; -ECHILD: it did
 * before, but not now; what shutting it in gave. */
MUST_CHECK int worker_ready(struct worker *worker, struct diag *diag);
void worker_set_nice(struct worker *worker, int nice); /* of the process, when there is one */
/* Starts it, if there is none, and does not wait. 0; -ELOOP as worker_ready; as spawn_helper. */
MUST_CHECK int worker_start(struct worker *worker, struct diag *diag);
/* Asks, and waits for the answer, which is appended. Files of one user alone, and root's before them: for another's, a new worker is
 * started; with has_earlier it is not asked: -EPERM. 0; as worker_ready; -ETIMEDOUT; -ETIME: it hangs; -ECHILD: it has crashed; -EFBIG:
 * there is no room for the answer; or what the serve_fn gave, but for what this header has a meaning for (-EBADMSG), and -ENOMEM
 * (-ENOBUFS): these are our own. */
MUST_CHECK int worker_ask(struct worker *worker, const struct worker_request *request, struct diag *diag, struct buffer *answer);
/* The same in steps, of a worker that is asked nothing else: the body and `answer` stay the caller's, and in place until the end. */
MUST_CHECK int worker_begin(struct worker *worker, const struct worker_request *request, struct diag *diag, struct buffer *answer);
MUST_CHECK int worker_poll(struct worker *worker, int wait_ms,
			   struct diag *diag); /* -EINPROGRESS; or as worker_ask, and then the question is at its end */
void worker_cancel(struct worker *worker); /* ends the worker; the next question starts another */
uint64_t worker_cost_ns(const struct worker *worker); /* CPU time of the last question that came to its end */
