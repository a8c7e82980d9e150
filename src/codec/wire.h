/* SPDX-License-Identifier: Apache-2.0 */
/* wire: messages between a worker and its owner over a stream socket: a header, which may carry descriptors, and a payload. Each side may
 * be hostile to the other: sizes are limited before anything is allocated. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"

#define WIRE_MAX_FDS 32u

struct wire_header {
	uint64_t payload_bytes;
	int32_t status;  /* of an answer: 0, or a negative errno with its text as the payload */
	uint32_t kind;   /* of a request */
};

struct wire_fds {
	int fds[WIRE_MAX_FDS];
	uint32_t nr;
};
void wire_fds_close(struct wire_fds *fds);

/* Both return the number of bytes transferred, or a negative errno. -EAGAIN: none can be transferred now (MSG_DONTWAIT in flags); -EPIPE
 * when receiving: the other side has closed. */
MUST_CHECK ssize_t wire_send(int fd, const void *bytes, size_t size, const struct wire_fds *fds, int flags);
/* `fds` NULL: descriptors that arrive are closed. */
MUST_CHECK ssize_t wire_receive(int fd, void *bytes, size_t size, struct wire_fds *fds, int flags);
