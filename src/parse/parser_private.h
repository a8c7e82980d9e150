/* SPDX-License-Identifier: Apache-2.0 */
/* What parser.c and audit_pool.c (questions) and parser_serve.c (the worker's answers) share. The descriptors of the files come with each
 * question. */
#pragma once
#include <stdint.h>

enum parser_kind {
	PARSER_TABLE,	 /* no body; the answer is a table image without a key */
	PARSER_NAMES,	 /* struct names_request, the addresses, the path with its NUL, a second descriptor for a fetched debug file; the
			    answer is symbolize/name_answers.h's */
	PARSER_JIT,	 /* struct names_request without a path, the addresses; the answer is the same */
	PARSER_CODE,	 /* struct code_request, the path with its NUL; the answer is symbolize/code_listing.h's */
	PARSER_RUNTIMES, /* no body; the answer is a struct file_runtimes */
	PARSER_WANTS,	 /* as PARSER_NAMES without addresses; the answer is a byte: would a debug file tell more? */
	PARSER_AUDIT,	 /* of the auditor's own workers: audit/audit_message.h */
};

#define PARSER_PROGRAM "/proc/self/exe"
#define PARSER_FOR_CODE "code" /* the word of a worker that is asked PARSER_CODE */

struct names_request {
	uint32_t nr_addresses, lines;
	uint64_t path_bytes; /* with its NUL; 0: no path */
};
