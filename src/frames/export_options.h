/* SPDX-License-Identifier: Apache-2.0 */
/* export_options: options for the writers of all formats. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct annotated_code; /* show/annotation.h */

struct export_options {
	bool delimited;      /* text, folded: a line between kernel and user */
	bool annotate;       /* text, folded: _[k] after kernel frames */
	bool offsets;        /* text, folded: function+0x12, and one line per stack of addresses */
	bool threads;        /* one line per thread; else equal stacks of equally named threads of a process are one */
	/* Threads were selected by id: text has a line for each, with its id, even without `threads`. */
	bool of_tids;
	uint32_t max_stacks; /* text of outstanding memory: the largest alone; 0: all */
	/* So many lines of source before and after that of each frame of such text, and before and after those with samples of the hottest
	 * functions in a page; 0: no source. */
	uint32_t source_lines;
	const struct annotated_code *code; /* of the page: export_write sets it */
	bool user_only, kernel_only; /* the only side requested: no delimiter then */
	const uint8_t *profile_id;   /* OTLP: 16 bytes; NULL: none */
};
