// SPDX-License-Identifier: Apache-2.0
/* Writes a function's source and instructions with their shares. What has no samples is shown only near what has some. Instructions that
 * are left out are counted. */
#include <inttypes.h>
#include <string.h>

#include "frames/frame_text.h"
#include "show/annotation.h"
#include "show/source_lines.h"
#include "show/show_text.h"

#define NEAR_LINES	  3
#define NEAR_INSTRUCTIONS 4

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

static void write_source_line(uint32_t number, const struct annotated_line *line, int64_t all, const char *text, size_t size,
			      const struct show_options *options, struct buffer *buffer)
{
	size_t from = buffer->size;

	write_shares(line ? line->self : 0, line ? line->total : 0, all, options, buffer);
	buffer_printf(buffer, " %6" PRIu32 "  ", number);
	source_line_text(text, size, buffer);
	show_line_end(buffer, options, from);
}

/* lines[next] is the first with samples at `number` or after it. */
static bool is_near_line(const struct annotated_line *lines, uint32_t nr, uint32_t next, uint64_t number)
{
	return (next < nr && number + NEAR_LINES >= lines[next].line) || (next && number <= (uint64_t)lines[next - 1].line + NEAR_LINES);
}

void show_source(const struct annotation *annotation, const struct annotated_line *lines, uint32_t nr, const char *text, size_t size,
		 const struct show_options *options, struct buffer *buffer)
{
	int64_t all = nr ? annotation->places[lines[0].place].total : 0;
	const char *end = text + size;
	uint64_t last_shown = 0;
	uint32_t next = 0;

	show_heading(buffer, options, "      SELF     TOTAL   LINE  SOURCE");
	for (uint64_t number = 1; text < end && nr && (next < nr || number <= (uint64_t)lines[nr - 1].line + NEAR_LINES); number++) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text)), *from = text;
		bool has = next < nr && lines[next].line == number;

		if (!line_end)
			line_end = end;
		text = line_end + (line_end < end);
		if (!is_near_line(lines, nr, next, number))
			continue;
		if (last_shown && last_shown + 1 < number)
			buffer_printf(buffer, "%27s...\n", "");
		write_source_line((uint32_t)number, has ? &lines[next] : NULL, all, from, (size_t)(line_end - from), options, buffer);
		next += has;
		last_shown = number;
	}
	for (; next < nr; next++) {
		write_shares(lines[next].self, lines[next].total, all, options, buffer);
		buffer_printf(buffer, " %6" PRIu32 "  [the file has no such line]\n", lines[next].line);
	}
}

static bool is_near(const struct shown_instruction *instructions, uint32_t nr, uint32_t i)
{
	uint32_t from = i > NEAR_INSTRUCTIONS ? i - NEAR_INSTRUCTIONS : 0;

	for (uint32_t k = from; k < nr && k <= i + NEAR_INSTRUCTIONS; k++) {
		if (instructions[k].total || instructions[k].self)
			return true;
	}
	return false;
}

void show_instructions(const struct shown_instruction *instructions, uint32_t nr, int64_t total, const struct show_options *options,
		       struct buffer *buffer)
{
	uint32_t nr_left_out = 0;

	show_heading(buffer, options, "      SELF     TOTAL          ADDRESS  INSTRUCTION");
	for (uint32_t i = 0; i < nr; i++) {
		size_t from;

		if (!is_near(instructions, nr, i)) {
			nr_left_out++;
			continue;
		}
		if (nr_left_out)
			buffer_printf(buffer, "%40s %" PRIu32 " instructions without samples\n", "...", nr_left_out);
		nr_left_out = 0;
		from = buffer->size;
		write_shares(instructions[i].self, instructions[i].total, total, options, buffer);
		buffer_printf(buffer, " %16" PRIx64 "  ", instructions[i].elf_vaddr);
		show_name(buffer, instructions[i].text);
		show_line_end(buffer, options, from);
	}
	if (nr_left_out)
		buffer_printf(buffer, "%40s %" PRIu32 " instructions without samples\n", "...", nr_left_out);
}
