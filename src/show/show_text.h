/* SPDX-License-Identifier: Apache-2.0 */
/* show_text: the cells that the tables of show.h are made of. */
#pragma once
#include "show/show.h"

void show_heading(struct buffer *buffer, const struct show_options *options, const char *text); /* with its line's end */
/* "  12.34 %", in ten columns. */
void show_share(struct buffer *buffer, const struct show_options *options, int64_t part, int64_t all);
/* The shown value of a part: its share of all; or itself, where the value is no sum. */
void show_part(struct buffer *buffer, const struct profile *profile, const struct show_options *options, int64_t part, int64_t all);
/* The parts of a row, then, where they are shares, the quantity of the first one. `second`: NULL: there is none. */
void show_parts(struct buffer *buffer, const struct profile *profile, const struct show_options *options, int64_t first,
		const int64_t *second, int64_t all);
/* The heading of such rows: names of the parts and of the quantity (NULL: there is none), then the rest. */
void show_parts_heading(struct buffer *buffer, const struct profile *profile, const struct show_options *options, const char *first,
			const char *second, const char *quantity, const char *rest);
/* "12,345", "1.234 s", "12.3 MiB", by the value's unit; right-aligned to `columns`. */
void show_quantity(struct buffer *buffer, const char *unit, int64_t value, int columns);
/* Ends the line that began at `from`: cuts it at the width. Escapes for colour count no column. */
void show_line_end(struct buffer *buffer, const struct show_options *options, size_t from);
/* "samples: 980 in all", the title of each table. */
void show_title(struct buffer *buffer, const struct profile *profile, const struct show_options *options, int64_t all);
/* Names in `text`, plain. */
void show_name(struct buffer *buffer, const char *text);
void show_dim(struct buffer *buffer, const struct show_options *options, const char *text); /* plain, two blanks before; nothing for "" */
