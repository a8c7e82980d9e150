/* SPDX-License-Identifier: Apache-2.0 */
/* What proxy.c and proxy_serve.c share: a request is a message, its answer another with the bytes that were read, or a descriptor. */
#pragma once
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "process/file_system.h"

#define PROXY_NAME "sonde-proxy" /* argv[0] */
#define PROXY_DATA_BYTES ((size_t)32 << 10) /* of memory in one message */
#define PROXY_COPY_BYTES_MAX ((uint64_t)256 << 20) /* of a file that is copied */

enum proxy_kind { PROXY_MEMORY, PROXY_MEMORY_SOME, PROXY_MAPS, PROXY_LOCATE, PROXY_FIND, PROXY_OPEN, PROXY_OPEN_DEBUG, PROXY_OPEN_OWN };

struct proxy_request {
	uint32_t kind, tgid, tid;
	uint32_t is_ours;        /* PROXY_OPEN_OWN */
	uint32_t file_system;    /* PROXY_OPEN: enum file_system_kind; the file's descriptor comes with it */
	uint32_t pad;
	uint64_t from, to;       /* memory: from there, `to` is behind it; PROXY_LOCATE: the mapping */
	uint64_t inode;          /* PROXY_LOCATE */
	uint64_t device;         /* for who asks: that may not answer; 0: not known, or none */
	uint64_t max_bytes;      /* PROXY_OPEN_DEBUG, PROXY_OPEN_OWN */
	char path[PATH_MAX];     /* a message ends behind its NUL */
};

struct proxy_answer {
	int32_t err;             /* a negative errno, or 0; a descriptor comes with it where one was asked for */
	uint32_t file_system;    /* PROXY_LOCATE, PROXY_FIND */
	uint64_t data_bytes;     /* that follow */
};

struct proxy_message {
	struct proxy_answer answer;
	uint8_t data[PROXY_DATA_BYTES];
};

/* Does it, for as long as it takes. `fd`: what came with the request, -1: nothing. *ret_fd: -1, or what goes with the answer. */
void proxy_perform(const struct proxy_request *request, int fd, struct proxy_message *ret_message, int *ret_fd);
