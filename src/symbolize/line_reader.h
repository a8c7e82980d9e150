/* SPDX-License-Identifier: Apache-2.0 */
/* line_reader: the whole lines of a file, read in big pieces with a fixed amount of memory, or of bytes in memory. A last line without
 * its newline is torn (its writer is still at it) and left out; a line longer than LINE_READER_MAX is skipped and
 * counted. One thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define LINE_READER_MAX ((size_t)128 << 10)

struct line_reader {
	int fd;	    /* borrowed; -1: from memory, or read to the end */
	char *room; /* NULL for memory */
	const char *pos, *end;
	uint64_t left_bytes; /* read so many more from fd at most */
	uint64_t read_bytes; /* from fd so far, by pread(2): its offset may be another's, too */
	bool skipping;	     /* the line at hand was too long: its rest is passed over */
	uint32_t nr_too_long;
};

/* 0 or -ENOMEM. */
MUST_CHECK int line_reader_init_fd(struct line_reader *reader, int fd, uint64_t max_bytes);
void line_reader_init_memory(struct line_reader *reader, const char *bytes, size_t size); /* borrows the bytes */
void line_reader_done(struct line_reader *reader);
/* 1 and a line, [*ret_line, *ret_end) without its newline, borrowed until the next call; 0 at the end; or what the read gave. */
MUST_CHECK int line_reader_next(struct line_reader *reader, const char **ret_line, const char **ret_end);
