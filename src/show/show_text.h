/* SPDX-License-Identifier: Apache-2.0 */
/* show_text: the cells of the tables in show.h. */
#pragma once
#include "show/show.h"

void show_heading(struct buffer *buffer, const struct show_options *options, const char *text); /* ends the line, too */
/* "  12.34 %", in ten columns. */
void show_share(struct buffer *buffer, const struct show_options *options, int64_t part, int64_t all);
/* The shown value of a part: its share of all or, if the value is not a sum, the value itself. */
void show_part(struct buffer *buffer, const struct profile *profile, const struct show_options *options, int64_t part, int64_t all);
/* The parts of a row; if they are shares, the quantity of the first follows. `second` NULL: none. */
void show_parts(struct buffer *buffer, const struct profile *profile, const struct show_options *options, int64_t first,
		const int64_t *second, int64_t all);
/* The heading of such rows: names of the parts and of the quantity (NULL: none), then the rest. */
void show_parts_heading(struct buffer *buffer, const struct profile *profile, const struct show_options *options, const char *first,
			const char *second, const char *quantity, const char *rest);
/* "12,345", "1.234 s", "12.3 MiB", by the value's unit; right-aligned to `columns`. */
void show_quantity(struct buffer *buffer, const char *unit, int64_t value, int columns);
/* Ends the line that began at `from`: cuts it at the width. Colour escapes take no columns. */
void show_line_end(struct buffer *buffer, const struct show_options *options, size_t from);
/* "samples: 980 in all", the title of each table. */
void show_title(struct buffer *buffer, const struct profile *profile, const struct show_options *options, int64_t all);
/* Writes `text` with its names made plain. */
void show_name(struct buffer *buffer, const char *text);
void show_dim(struct buffer *buffer, const struct show_options *options, const char *text); /* plain, after two blanks; nothing for "" */
