// SPDX-License-Identifier: Apache-2.0
#include "worker/serve.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/number.h"
#include "base/spawn.h"
#include "worker/sandbox.h"

#define MAX_BODY_BYTES ((uint64_t)1 << 30)
#define MAX_ANSWER_BYTES ((size_t)1 << 30)

static int send_all(const void *bytes, size_t size, const struct wire_fds *fds)
{
	for (size_t at = 0; at < size;) {
		ssize_t sent = wire_send(SPAWN_SOCKET, (const char *)bytes + at, size - at, at ? NULL : fds, 0);

		if (sent < 0)
			return (int)sent;
		at += (size_t)sent;
	}
	return 0;
}

static int receive_all(void *bytes, size_t size, struct wire_fds *fds)
{
	for (size_t at = 0; at < size;) {
		ssize_t got = wire_receive(SPAWN_SOCKET, (char *)bytes + at, size - at, fds, 0);

		if (got < 0)
			return (int)got;
		at += (size_t)got;
	}
	return 0;
}

static int send_answer(int status, const char *text, const struct buffer *answer)
{
	const void *body = status ? (const void *)text : answer->data;
	struct wire_header header = { .status = status, .payload_bytes = status ? strlen(text) : answer->size };
	int err = send_all(&header, sizeof(header), NULL);

	return err ? err : send_all(body, header.payload_bytes, NULL);
}

/* 0, or an error that ends the worker. */
static int answer_one(serve_fn fn, void *arg)
{
	CLEANUP(wire_fds_close) struct wire_fds fds = { .nr = 0 };
	CLEANUP(buffer_done) struct buffer answer = BUFFER_INIT(MAX_ANSWER_BYTES);
	CLEANUP(freep) void *body = NULL;
	struct wire_header header;
	struct diag diag = { 0 };
	int err = receive_all(&header, sizeof(header), &fds);

	if (err || header.payload_bytes > MAX_BODY_BYTES)
		return err ? err : -EFBIG;
	body = malloc(header.payload_bytes + 1);
	if (!body)
		return -ENOMEM;
	err = receive_all(body, header.payload_bytes, NULL);
	if (err)
		return err;
	err = fn(arg, header.kind, &fds, body, header.payload_bytes, &diag, &answer);
	return send_answer(err ? err : answer.err, diag.text, &answer);
}

/* Reports that it is ready, or why not, and sends its owner the descriptor for opening files. */
static int start(uint64_t max_bytes)
{
	int asked_fd = -1, err = sandbox_enter(max_bytes, &asked_fd);
	struct wire_fds fds = { .fds = { asked_fd }, .nr = asked_fd >= 0 };
	struct wire_header ready = { .status = err };
	int send_err = send_all(&ready, sizeof(ready), &fds);

	wire_fds_close(&fds);
	return err ? err : send_err;
}

bool serve_as_worker(int argc, char **argv, serve_fn fn, void *arg, int *ret_code)
{
	uint64_t max_bytes;
	int err;

	if (argc < 2 || argc > 3 || strcmp(argv[0], WORKER_NAME) || number_u64(argv[1], UINT64_MAX, &max_bytes))
		return false;
	prctl(PR_SET_NAME, WORKER_NAME); /* for ps and top: it was executed as /proc/self/exe */
	close_range(SPAWN_SOCKET + 1, ~0u, 0);
	mallopt(M_MMAP_THRESHOLD, 128 << 10); /* fixed: large files' memory is freed after the answer */
	err = start(max_bytes);
	while (!err) {
		err = answer_one(fn, arg);
		malloc_trim(1u << 20);
	}
	*ret_code = err != -EPIPE; /* the owner has closed */
	return true;
}
