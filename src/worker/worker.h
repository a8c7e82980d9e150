/* SPDX-License-Identifier: Apache-2.0 */
/* worker: a process without rights that reads untrusted files for us. It has its own uid, no network, and no files except the descriptors
 * in requests (sandbox.h). If it crashes or takes too long, that request has no answer, and the next one goes to a new worker. Its answers
 * are untrusted, and must be checked. One thread. */
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
	uint32_t kind;          /* passed to the serve_fn */
	const int *fds;         /* files it may read; they stay the caller's */
	uint32_t nr_fds;        /* up to WIRE_MAX_FDS */
	bool has_earlier;       /* it keeps the files of earlier requests */
	const void *body;
	size_t payload_bytes;
	uint64_t max_cpu_ns;    /* CPU time limit; the limit of wall time is three times as much */
	uint64_t max_idle_ns;	/* if it sleeps this long without using CPU, the file's file system counts as hung; 0: no limit */
	const uint64_t *cancel_ns; /* from then on the request fails with -ECANCELED (clock_is_past) */
	worker_open_fn open;    /* NULL: it may open no file by name */
	void *open_arg;
};

/* Starts a worker with max_bytes of memory from `program`, whose main calls serve_as_worker. 0; as spawn_helper (base/spawn.h). */
MUST_CHECK int worker_new(const char *program, uint64_t max_bytes, struct diag *diag, struct worker **ret_worker);
/* The same with a word in argv[2], for the program to act on before it calls serve_as_worker, such as to load a library. */
MUST_CHECK int worker_new_for(const char *program, const char *word, uint64_t max_bytes, struct diag *diag, struct worker **ret_worker);
void worker_free(struct worker *worker); /* takes NULL */
static inline void worker_freep(struct worker **worker)
{
	worker_free(*worker);
}
/* Waits until it has started. 0; -ELOOP: the program does not call serve_as_worker, and is not started again; -ECHILD: it did before, but
 * not now; or the error of entering the sandbox. */
MUST_CHECK int worker_ready(struct worker *worker, struct diag *diag);
void worker_set_nice(struct worker *worker, int nice); /* nice value of the process, if there is one */
/* Starts the process, if there is none, without waiting. 0; -ELOOP as worker_ready; as spawn_helper. */
MUST_CHECK int worker_start(struct worker *worker, struct diag *diag);
/* Sends a request, waits for the answer and appends it. A worker reads files of root and of one other user: for another user's, a new
 * worker is started; with has_earlier the request fails with -EPERM. 0; as worker_ready; -ETIMEDOUT; -ETIME: it hangs; -ECHILD: it has
 * crashed; -EFBIG: no room for the answer; or what the serve_fn returned. Of those, codes that this header gives a meaning become -EBADMSG,
 * and -ENOMEM becomes -ENOBUFS: these codes are our own. */
MUST_CHECK int worker_ask(struct worker *worker, const struct worker_request *request, struct diag *diag, struct buffer *answer);
/* The same in steps, one request at a time. The payload and `answer` stay the caller's, and must not move before the end. */
MUST_CHECK int worker_begin(struct worker *worker, const struct worker_request *request, struct diag *diag, struct buffer *answer);
/* -EINPROGRESS; or as worker_ask, and then the request has ended. */
MUST_CHECK int worker_poll(struct worker *worker, int wait_ms, struct diag *diag);
void worker_cancel(struct worker *worker); /* ends the worker; the next request starts another */
uint64_t worker_cost_ns(const struct worker *worker); /* CPU time of the last finished request */
