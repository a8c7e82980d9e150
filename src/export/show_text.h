/* SPDX-License-Identifier: Apache-2.0 */
/* show_text: the cells that the tables of show.h are made of. */
#pragma once
#include "export/show.h"

void show_heading(struct buffer *buffer, const struct show_options *options, const char *text); /* with its line's end */
/* "  12.34 %", in ten columns. */
void show_share(struct buffer *buffer, const struct show_options *options, int64_t part, int64_t all);
/* "12,345", "1.234 s", "12.3 MiB", by the value's unit; right-aligned to `columns`. */
void show_quantity(struct buffer *buffer, const char *unit, int64_t value, int columns);
/* Ends the line that began at `from`: cuts it at the width. Escapes for colour count no column. */
void show_line_end(struct buffer *buffer, const struct show_options *options, size_t from);
/* "samples: 980 in all", the title of each table. */
void show_title(struct buffer *buffer, const struct profile *profile, const struct show_options *options, int64_t all);
/* The unit of the value that is shown: "count", "nanoseconds". */
const char *show_unit(const struct profile *profile);
/* Names in `text`, plain. */
void show_name(struct buffer *buffer, const char *text);
void show_dim(struct buffer *buffer, const struct show_options *options, const char *text); /* plain, two blanks before; nothing for "" */
