/* SPDX-License-Identifier: Apache-2.0 */
/* line_reader: the whole lines of a file, read in big pieces with a fixed amount of memory; or of bytes in memory. A last line without its
 * newline is left out: it is still being written. A line longer than LINE_READER_MAX is skipped and counted. One thread. */
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
	uint64_t left_bytes; /* how much more may be read from fd */
	uint64_t read_bytes; /* from fd so far, by pread(2): others may use its offset */
	bool skipping;	     /* the current line was too long: its rest is skipped */
	uint32_t nr_too_long;
};

/* 0 or -ENOMEM. */
MUST_CHECK int line_reader_init_fd(struct line_reader *reader, int fd, uint64_t max_bytes);
void line_reader_init_memory(struct line_reader *reader, const char *bytes, size_t size); /* borrows the bytes */
void line_reader_done(struct line_reader *reader);
/* 1 and a line, [*ret_line, *ret_end) without its newline, borrowed until the next call; 0 at the end; or the error of the read. */
MUST_CHECK int line_reader_next(struct line_reader *reader, const char **ret_line, const char **ret_end);
