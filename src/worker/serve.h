/* SPDX-License-Identifier: Apache-2.0 */
/* serve: the worker's side. A process started as a worker (worker.h) answers requests until its owner closes the socket. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "codec/wire.h"

#define WORKER_NAME "sonde-worker" /* argv[0] of a worker */

/* Answers one request: fills `to` and returns 0, or a negative errno. The descriptors are the caller's; one that is taken over is set to
 * -1. */
typedef int (*serve_fn)(void *arg, uint32_t kind, struct wire_fds *fds, const void *body, size_t size, struct diag *diag,
			struct buffer *to);

/* Is this process one? Then it enters the sandbox and answers with `fn`; *ret_code is its exit code. */
bool serve_as_worker(int argc, char **argv, serve_fn fn, void *arg, int *ret_code);
