/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by parser.c and audit_pool.c (requests) and parser_serve.c (the worker's answers). Each request carries the descriptors of its
 * files. */
#pragma once
#include <stdint.h>

enum parser_kind {
	PARSER_TABLE,	 /* no payload; the answer is a table image without a key */
	/* struct names_request, the addresses, the path with its NUL, a second descriptor for a fetched debug file; the answer is as in
	 * symbolize/name_answers.h */
	PARSER_NAMES,
	PARSER_JIT,	 /* struct names_request without a path, the addresses; the answer is the same */
	PARSER_CODE,	 /* struct code_request, the path with its NUL; the answer is as in symbolize/code_listing.h */
	PARSER_RUNTIMES, /* no payload; the answer is a struct file_runtimes */
	PARSER_WANTS,	 /* as PARSER_NAMES without addresses; the answer is a byte: would a debug file add information? */
	PARSER_ALLOCATORS, /* no payload; the answer is a struct allocators */
	PARSER_AUDIT,	 /* for the auditor's own workers: audit/audit_message.h */
};

#define PARSER_PROGRAM "/proc/self/exe"
#define PARSER_FOR_CODE "code" /* the word of a worker for PARSER_CODE */

struct names_request {
	uint32_t nr_addresses, lines;
	uint64_t path_bytes; /* with its NUL; 0: no path */
};
