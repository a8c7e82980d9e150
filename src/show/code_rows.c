// SPDX-License-Identifier: Apache-2.0
#include "show/code_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "base/plain_text.h"

#define FIRST_ROWS 64
#define MAX_ROWS (1u << 28)
#define MAX_TEXT_BYTES ((size_t)1 << 31)

void code_rows_done(struct code_rows *rows)
{
	free(rows->list);
	buffer_done(&rows->texts);
	*rows = (struct code_rows){ 0 };
}

struct code_row *code_rows_add(struct code_rows *rows, enum code_row_kind kind, uint64_t number)
{
	if (!array_grow(&rows->list, rows->nr, &rows->max, sizeof(*rows->list), FIRST_ROWS, MAX_ROWS))
		return NULL;
	rows->texts.max = MAX_TEXT_BYTES;
	rows->list[rows->nr] = (struct code_row){ .kind = kind, .number = number, .text_at = (uint32_t)rows->texts.size };
	return &rows->list[rows->nr++];
}

int code_rows_end_text(struct code_rows *rows)
{
	buffer_append(&rows->texts, "", 1);
	return rows->texts.err ? -ENOMEM : 0;
}

int code_rows_add_text(struct code_rows *rows, enum code_row_kind kind, uint64_t number, const char *text)
{
	if (!code_rows_add(rows, kind, number))
		return -ENOMEM;
	plain_text(&rows->texts, text, ';');
	return code_rows_end_text(rows);
}

/* Moves rows[from..to) to the index `at`, as one gap if there are several. Returns the index behind it. */
static uint32_t close_up(struct code_rows *rows, uint32_t from, uint32_t to, enum code_row_kind gap, uint32_t at)
{
	struct code_row closed = { .kind = gap };

	if (from >= to)
		return at;
	closed.text_at = rows->list[from].text_at + (uint32_t)strlen(code_row_text(rows, from)); /* "" */
	for (uint32_t i = from; i < to; i++) {
		closed.number += rows->list[i].kind == gap ? rows->list[i].number : 1;
		closed.self = number_sum(closed.self, rows->list[i].self);
	}
	rows->list[at] = closed;
	return at + 1;
}

/* Keeps the first of rows[from..to), which says what they are, and `max` around the hottest. Writes them from `at`; returns the index
 * behind them. */
static uint32_t cut(struct code_rows *rows, uint32_t from, uint32_t to, enum code_row_kind gap, uint32_t max, uint32_t at)
{
	uint32_t hottest = from, begin = from, end = to;

	for (uint32_t i = from; i < to; i++) {
		if (rows->list[i].self > rows->list[hottest].self)
			hottest = i;
	}
	if (to - from > max) {
		begin = hottest > from + max / 2 ? hottest - max / 2 : from;
		begin = begin > to - max ? to - max : begin;
		end = begin + max;
	}
	if (begin > from)
		rows->list[at++] = rows->list[from++];
	at = close_up(rows, from, begin, gap, at);
	memmove(&rows->list[at], &rows->list[begin], (end - begin) * sizeof(*rows->list));
	return close_up(rows, end, to, gap, at + end - begin);
}

void code_rows_cut(struct code_rows *rows, uint32_t max)
{
	uint32_t nr = 0, nr_source = 0;

	while (nr_source < rows->nr && rows->list[nr_source].kind < CODE_ROW_CODE)
		nr_source++;
	nr = cut(rows, 0, nr_source, CODE_ROW_LINE_GAP, max, nr);
	rows->nr = cut(rows, nr_source, rows->nr, CODE_ROW_INSTRUCTION_GAP, max, nr);
}

size_t code_rows_bytes(const struct code_rows *rows)
{
	size_t nr_bytes = 0;

	for (uint32_t i = 0; i < rows->nr; i++)
		nr_bytes += strlen(code_row_text(rows, i)) + 1;
	return nr_bytes;
}
