/* SPDX-License-Identifier: Apache-2.0 */
/* json_column: a list of numbers in JSON, as viewers' files keep their tables. */
#pragma once
#include "base/cleanup.h"
#include "codec/json_read.h"

#define NO_CELL INT64_MIN

struct json_column {
	int64_t *cells; /* NO_CELL: null */
	uint32_t nr, max;
};

void json_column_done(struct json_column *column);
MUST_CHECK int json_column_add(struct json_column *column, int64_t cell); /* 0 or -ENOMEM */
/* Replaces the cells by the list that begins here, each times 10^nr_decimals. What is no number is NO_CELL. 0 or -ENOMEM. */
MUST_CHECK int json_column_read(struct json_column *column, struct json_reader *r, int nr_decimals);

/* NO_CELL outside of the column. */
static inline int64_t json_column_at(const struct json_column *column, int64_t row)
{
	return row >= 0 && row < column->nr ? column->cells[row] : NO_CELL;
}
