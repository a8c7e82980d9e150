/* SPDX-License-Identifier: Apache-2.0 */
/* jitdump: names and source lines of code that a JIT compiler wrote (format: Linux tools/perf/Documentation/jitdump-specification.txt,
 * version 1, in our byte order). As in a perf map, a later record wins over an earlier one where their code overlaps. A record that is cut
 * off is still being written. Immutable once read; any thread may look up. The file is untrusted: memory and work are bounded. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define JITDUMP_MAGIC	    0x4A695444u
#define JITDUMP_MAX_PIECES  ((uint32_t)1 << 20) /* pieces of code; more are refused and counted, as below */
#define JITDUMP_MAX_LINES   ((uint32_t)4 << 20)
#define JITDUMP_MAX_TEXT    ((size_t)128 << 20) /* names of functions and files */
#define JITDUMP_MAX_NAME    ((uint32_t)64 << 10)
#define JITDUMP_MAX_RECORDS ((uint32_t)8 << 20) /* of any kind: reading ends there */

struct jitdump;
/* Reads by pread(2) only; the caller keeps the descriptor. 0; -EBADMSG: no jitdump (or of the other byte order); -ENODATA: no code in it;
 * -ENOMEM; or the error of the read. */
MUST_CHECK int jitdump_read_fd(int fd, struct jitdump **ret_dump);
void jitdump_free(struct jitdump *dump); /* accepts NULL */
static inline void jitdump_freep(struct jitdump **dump)
{
	jitdump_free(*dump);
}

struct jitdump_place {
	const char *name; /* borrowed from the dump, like the file */
	uint64_t start;
	const char *file; /* "": not known */
	uint32_t line;	  /* 0: not known */
};

/* 0 or -ENOENT. */
MUST_CHECK int jitdump_find(const struct jitdump *dump, uint64_t pc, struct jitdump_place *ret_location);
uint32_t jitdump_size(const struct jitdump *dump);	 /* pieces of code */
/* Records that made no sense or were too many. Reading ends at a record of impossible size. */
uint32_t jitdump_nr_refused(const struct jitdump *dump);
