// SPDX-License-Identifier: Apache-2.0
#include "importer/json_column.h"

#include <errno.h>

#include "base/array.h"

void json_column_done(struct json_column *column)
{
	free(column->cells);
}

int json_column_add(struct json_column *column, int64_t cell)
{
	if (!array_grow(&column->cells, column->nr, &column->max, sizeof(*column->cells), 256, UINT32_MAX / 16))
		return -ENOMEM;
	column->cells[column->nr++] = cell;
	return 0;
}

int json_column_read(struct json_column *column, struct json_reader *r, int nr_decimals)
{
	int err = 0;

	column->nr = 0;
	for (json_enter(r, '['); !err && json_next(r);) {
		int64_t cell = NO_CELL;

		if (json_peek(r) == '0')
			cell = json_read_decimal(r, nr_decimals);
		else
			json_skip(r);
		err = json_column_add(column, cell);
	}
	return err;
}
