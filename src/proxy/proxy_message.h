/* SPDX-License-Identifier: Apache-2.0 */
/* What proxy.c and proxy_serve.c share: a request is a message, with descriptors where it says so; its answer another with the bytes that
 * were read, or a descriptor. */
#pragma once
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/file_system.h"

#define PROXY_NAME "sonde-proxy" /* argv[0] */
#define PROXY_DATA_BYTES ((size_t)32 << 10) /* of memory in one message */

enum proxy_kind { PROXY_MEMORY, PROXY_MEMORY_SOME, PROXY_MAPS, PROXY_LOCATE, PROXY_FIND, PROXY_OPEN, PROXY_OPEN_DEBUG, PROXY_OPEN_OWN };

struct proxy_request {
	uint32_t kind, tgid, tid;
	uint32_t is_ours;        /* PROXY_OPEN_OWN */
	uint32_t owner, pad;     /* PROXY_OPEN_DEBUG: struct debugged's */
	uint64_t from, to;       /* memory: from there, `to` is behind it; PROXY_LOCATE: the mapping */
	uint64_t inode;          /* PROXY_LOCATE */
	uint64_t device;         /* PROXY_OPEN: for who asks, that may not answer; PROXY_OPEN_DEBUG: struct debugged's */
	uint64_t max_bytes;      /* PROXY_OPEN_DEBUG, PROXY_OPEN_OWN */
	uint64_t max_copy_bytes; /* of what is copied; 0: the last of its descriptors is no file for a copy */
	char path[PATH_MAX];     /* a message ends behind its NUL */
};

struct proxy_answer {
	int32_t err; /* a negative errno; 0: what was asked for comes with it, or is in the copy. -EXDEV: it is on a foreign file system,
			and is to be copied */
	uint32_t file_system;    /* PROXY_OPEN: enum file_system_kind */
	uint64_t data_bytes;     /* that follow */
};

struct proxy_message {
	struct proxy_answer answer;
	uint8_t data[PROXY_DATA_BYTES];
};

struct proxy_fds { /* -1: none */
	int file; /* PROXY_OPEN's, of O_PATH; or PROXY_MAPS's, where who asks does it himself */
	int copy; /* an empty file in memory, of who asks: he can empty it again when he does not wait any more */
};
/* /proc/TGID/task/TID/maps of the memory that it has now, as process_memory_open. */
int proxy_open_maps(uint32_t tgid, uint32_t tid);
/* Does it, for as long as it takes. *ret_fd: -1, or what goes with the answer. */
void proxy_perform(const struct proxy_request *request, struct proxy_fds fds, struct proxy_message *ret_message, int *ret_fd);
