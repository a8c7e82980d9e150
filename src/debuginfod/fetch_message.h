/* SPDX-License-Identifier: Apache-2.0 */
/* What the process that fetches (fetch_serve.c) and its owner (fetcher.c) say to each other over a SOCK_SEQPACKET socket: one struct, one
 * message. With a question comes the descriptor of the file that is to be filled. */
#pragma once
#include <stdint.h>

#define FETCH_NAME "sonde-debuginfod" /* argv[0] of the process; argv[1]: how many bytes a file may have */
#define FETCH_MAX_AT_ONCE 8u
#define FETCH_ID_CHARS 128u           /* a build id of 64 bytes in hexadecimal */
#define FETCH_TEXT_BYTES 200u
#define FETCH_READY UINT32_MAX        /* the number of the first answer: it has started, or why not */

struct fetch_request {
	uint32_t number;
	char build_id[FETCH_ID_CHARS + 1];
	char pad[3];
};

struct fetch_answer {
	uint64_t size;
	uint32_t number;
	int32_t status; /* 0: the file is whole; -ENOENT: no server has it; else a negative errno and a text */
	char text[FETCH_TEXT_BYTES];
};
