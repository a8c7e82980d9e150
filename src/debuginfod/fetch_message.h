/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_message: messages between the process that fetches (fetch_serve.c) and its owner (fetcher.c), over a SOCK_SEQPACKET socket: one
 * struct per message. A request carries the descriptor of the file to be filled. */
#pragma once
#include <stdint.h>

#define FETCH_NAME "sonde-debuginfod" /* argv[0] of the process; argv[1]: the largest size of a file */
#define FETCH_MAX_AT_ONCE 8u
#define FETCH_ID_CHARS 128u           /* a build id of 64 bytes in hexadecimal */
#define FETCH_TEXT_BYTES 200u
#define FETCH_READY UINT32_MAX        /* number of the first answer: it has started, or why not */

struct fetch_request {
	uint32_t number;
	char build_id[FETCH_ID_CHARS + 1];
	char pad[3];
};

struct fetch_answer {
	uint64_t size;
	uint32_t number;
	int32_t status; /* 0: the file is complete; -ENOENT: no server has it; else a negative errno, with a text */
	char text[FETCH_TEXT_BYTES];
};
