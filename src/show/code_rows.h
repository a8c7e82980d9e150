/* SPDX-License-Identifier: Apache-2.0 */
/* code_rows: the source and the instructions of a function, row by row with their values, before they become lines of text (show_code.c)
 * or of a page (page/code_json.c). All zeros: empty. One thread. */
#pragma once
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"

enum code_row_kind {
	CODE_ROW_FILE, /* a source file begins. Text: its path, and what is wrong with it */
	CODE_ROW_LINE, /* number: of the line */
	CODE_ROW_LINE_GAP, /* as below, or number 0: not counted */
	CODE_ROW_NO_SOURCE, /* text: why */
	/* instructions from here on */
	CODE_ROW_CODE,        /* a stretch of code begins. Text: where it is */
	CODE_ROW_INSTRUCTION, /* number: its address as linked */
	CODE_ROW_INSTRUCTION_GAP, /* number: so many rows are left out; self: their sum */
	CODE_ROW_NO_CODE,     /* text: why */
	CODE_ROW_NOWHERE,     /* number: of sampled addresses at no instruction */
};

struct code_row {
	uint32_t kind;
	uint32_t text_at; /* in `texts` */
	uint64_t number;
	int64_t self, total;
};

struct code_rows {
	struct code_row *list;
	uint32_t nr, max;
	struct buffer texts; /* plain, each ends in a NUL */
};

void code_rows_done(struct code_rows *rows);
/* Adds a row whose text is what is appended to `texts` from now on, up to code_rows_end_text. NULL: no memory. Valid until the next one. */
struct code_row *code_rows_add(struct code_rows *rows, enum code_row_kind kind, uint64_t number);
MUST_CHECK int code_rows_end_text(struct code_rows *rows); /* 0 or -ENOMEM */
MUST_CHECK int code_rows_add_text(struct code_rows *rows, enum code_row_kind kind, uint64_t number, const char *text); /* the same in one */
/* Keeps about `max` rows of the source around the hottest, and as many of the instructions. */
void code_rows_cut(struct code_rows *rows, uint32_t max);
size_t code_rows_bytes(const struct code_rows *rows); /* of the texts of its rows */
static inline const char *code_row_text(const struct code_rows *rows, uint32_t i)
{
	return rows->texts.data + rows->list[i].text_at;
}
