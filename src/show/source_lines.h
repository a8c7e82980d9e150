/* SPDX-License-Identifier: Apache-2.0 */
/* source_lines: the lines of a source file around one of them. The path comes from debug information, which may be a stranger's: only
 * regular files that anybody may read are shown, or those of the user who asks, unless that is root. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buffer.h"

struct source_lines {
	struct buffer text;  /* of the file that was read last */
	char path[4096];     /* its path; "": none */
	const char *missing; /* why it is not shown; NULL: it is */
	uint64_t changed_s;  /* since 1970 */
};

/* Writes one line of a source, with blanks for its tabs, so that lines stay below each other. `from` may contain anything. */
void source_line_text(const char *from, size_t size, struct buffer *buffer);

/* Who may read it? See above. */
bool source_may_be_shown(const struct stat *st);

/* Starts with zeros. */
void source_lines_done(struct source_lines *lines);
/* Writes the line and `nr_around` before and after it, each after `indent`. `at_s`: when the program ran, in seconds since 1970; 0: not
 * known. A file that was changed since then, or may not be shown, is said to be so; one that is not here is left out. */
void source_lines_write(struct source_lines *lines, const char *path, uint32_t line, uint32_t nr_around, uint64_t at_s,
			const char *indent, struct buffer *buffer);
