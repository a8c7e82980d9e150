/* SPDX-License-Identifier: Apache-2.0 */
/* What proxy.c and proxy_serve.c share. A request is a message, with descriptors where noted. Its answer is another, with the bytes that
 * were read or a descriptor. */
#pragma once
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "identity/process_identity.h"
#include "proxy/file_system.h"

#define PROXY_NAME "sonde-proxy" /* argv[0] */
#define PROXY_DATA_BYTES ((size_t)32 << 10) /* of memory in one message */

enum proxy_kind {
	PROXY_MEMORY,
	PROXY_MEMORY_SOME,
	PROXY_MAPS,
	PROXY_LOCATE,
	PROXY_FIND,
	PROXY_OPEN,
	PROXY_OPEN_DEBUG,
	PROXY_OPEN_OWN,
	PROXY_CONNECT_OWN,
	PROXY_IDENTITY, /* `path`: names of variables, each with PROXY_NAME_END behind. The data is a struct proxy_identity */
};
#define PROXY_NAME_END '='

struct proxy_request {
	uint32_t kind, tgid, tid;
	uint32_t is_ours;        /* PROXY_OPEN_OWN */
	uint32_t owner, pad;     /* PROXY_OPEN_DEBUG: of struct debugged */
	uint64_t from, to;       /* memory: from `from` up to, not including, `to`; PROXY_LOCATE: the mapping */
	uint64_t inode;          /* PROXY_LOCATE */
	uint64_t device;         /* PROXY_OPEN: the file's, for the budget; PROXY_OPEN_DEBUG: of struct debugged */
	uint64_t max_bytes;      /* PROXY_OPEN_DEBUG, PROXY_OPEN_OWN */
	uint64_t max_copy_bytes; /* limit of a copy; not 0: the last descriptor is the file to copy to */
	char path[PATH_MAX];     /* a message ends after its NUL */
};

struct proxy_answer {
	/* A negative errno. 0: the result comes with the answer, or is in the copy. -EXDEV: the file is on a foreign file system and must
	 * be copied. */
	int32_t err;
	uint32_t file_system;    /* PROXY_OPEN: enum file_system_kind */
	uint64_t data_bytes;     /* bytes that follow */
};

struct proxy_identity {
	struct process_identity identity;
	struct environment_values values;
};
_Static_assert(sizeof(struct proxy_identity) <= PROXY_DATA_BYTES, "fits a message");
_Static_assert(ENVIRONMENT_MAX_NAMES * ENVIRONMENT_NAME_BYTES < PATH_MAX, "the names fit a request");

struct proxy_message {
	struct proxy_answer answer;
	uint8_t data[PROXY_DATA_BYTES];
};

struct proxy_fds { /* -1: none */
	/* PROXY_OPEN: the O_PATH descriptor. PROXY_MAPS: the maps file, when the asking side performs the request itself. */
	int file;
	/* An empty file in memory, created by the asking side, which can empty it again after a timeout. */
	int copy;
};
/* Opens /proc/TGID/task/TID/maps of the memory that the process has now, as process_memory_open does. */
int proxy_open_maps(uint32_t tgid, uint32_t tid);
/* Performs the request, however long it takes. *ret_fd: -1, or the descriptor to send with the answer. */
void proxy_perform(const struct proxy_request *request, struct proxy_fds fds, struct proxy_message *ret_message, int *ret_fd);
