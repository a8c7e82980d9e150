// SPDX-License-Identifier: Apache-2.0
/* Writes a function's source and instructions as lines of text, with their shares. */
#include <inttypes.h>

#include "frames/frame_text.h"
#include "show/annotation.h"
#include "show/show_text.h"

void show_place(const struct annotation *annotation, uint32_t number, const struct show_options *options, struct buffer *buffer)
{
	const struct annotated_place *place = &annotation->places[number];
	const struct profile *profile = annotation->profile;
	const char *path = profile_string_text(profile, place->path), *build_id = profile_string_text(profile, place->build_id);
	double all = annotation->all ? 100.0 / (double)annotation->all : 0;
	size_t from = buffer->size;

	buffer_text(buffer, options->colour ? "\033[1m" : "");
	show_name(buffer, profile_string_text(profile, place->name));
	buffer_text(buffer, options->colour ? "\033[0m" : "");
	show_dim(buffer, options, place->kind == FRAME_KERNEL ? "kernel" : path);
	if (*build_id) {
		buffer_text(buffer, "  build id ");
		show_name(buffer, build_id);
	}
	show_line_end(buffer, options, from);
	buffer_printf(buffer, "self %.2f %%, total %.2f %% of all; below, shares of this total\n", (double)place->self * all,
		      (double)place->total * all);
}

/* Blank where there are no values. */
static void write_shares(int64_t self, int64_t total, int64_t all, const struct show_options *options, struct buffer *buffer)
{
	if (self)
		show_share(buffer, options, self, all);
	else
		buffer_printf(buffer, "%10s", "");
	if (total)
		show_share(buffer, options, total, all);
	else
		buffer_printf(buffer, "%10s", "");
}

/* A row that has no values of its own. */
static void write_words(const struct code_row *row, const char *text, const struct show_options *options, struct buffer *buffer)
{
	switch (row->kind) {
	case CODE_ROW_FILE:
		buffer_printf(buffer, "source: %s\n", text);
		show_heading(buffer, options, "      SELF     TOTAL   LINE  SOURCE");
		break;
	case CODE_ROW_CODE:
		buffer_printf(buffer, "code: %s\n", text);
		show_heading(buffer, options, "      SELF     TOTAL          ADDRESS  INSTRUCTION");
		break;
	case CODE_ROW_LINE_GAP:
		buffer_printf(buffer, "%27s...\n", "");
		break;
	case CODE_ROW_INSTRUCTION_GAP:
		buffer_printf(buffer, "%40s %" PRIu64 " instructions without samples\n", "...", row->number);
		break;
	case CODE_ROW_NO_SOURCE:
		buffer_printf(buffer, "source: %s\n", text);
		break;
	case CODE_ROW_NO_CODE:
		buffer_printf(buffer, "code: not shown: %s\n", text);
		break;
	case CODE_ROW_NOWHERE:
		buffer_printf(buffer, "%" PRIu64 " sampled addresses are at none of these instructions\n", row->number);
		break;
	}
}

void show_code_rows(const struct code_rows *rows, int64_t total, const struct show_options *options, struct buffer *buffer)
{
	for (uint32_t i = 0; i < rows->nr; i++) {
		const struct code_row *row = &rows->list[i];
		size_t from = buffer->size;

		if (row->kind != CODE_ROW_LINE && row->kind != CODE_ROW_INSTRUCTION) {
			write_words(row, code_row_text(rows, i), options, buffer);
			continue;
		}
		write_shares(row->self, row->total, total, options, buffer);
		if (row->kind == CODE_ROW_LINE)
			buffer_printf(buffer, " %6" PRIu64 "  ", row->number);
		else
			buffer_printf(buffer, " %16" PRIx64 "  ", row->number);
		buffer_text(buffer, code_row_text(rows, i));
		show_line_end(buffer, options, from);
	}
}
