// SPDX-License-Identifier: Apache-2.0
/* Turns a function's source and instructions into rows. What has no samples is there only near what has some. Instructions that are left
 * out are counted. */
#include <errno.h>
#include <string.h>

#include "show/annotation.h"
#include "show/source_lines.h"

#define NEAR_INSTRUCTIONS 4

void annotated_code_done(struct annotated_code *code)
{
	for (uint32_t i = 0; i < code->nr; i++)
		code_rows_done(&code->list[i].rows);
	code->nr = 0;
}

/* lines[next] is the first with samples at `number` or after it. */
static bool is_near_line(const struct annotated_line *lines, uint32_t nr, uint32_t next, uint64_t number, uint32_t near_lines)
{
	return (next < nr && number + near_lines >= lines[next].line) || (next && number <= (uint64_t)lines[next - 1].line + near_lines);
}

static int add_line(struct code_rows *rows, uint64_t number, const struct annotated_line *line, const char *text, size_t size)
{
	struct code_row *row = code_rows_add(rows, CODE_ROW_LINE, number);

	if (!row)
		return -ENOMEM;
	row->self = line ? line->self : 0;
	row->total = line ? line->total : 0;
	source_line_text(text, size, &rows->texts);
	return code_rows_end_text(rows);
}

int annotation_source(const struct annotated_line *lines, uint32_t nr, const char *text, size_t size, uint32_t near_lines,
		      struct code_rows *rows)
{
	const char *end = text ? text + size : NULL, *missing = text ? "[the file has no such line]" : "";
	uint64_t last_shown = 0;
	uint32_t next = 0;
	int err = 0;

	for (uint64_t number = 1; !err && text < end && nr; number++) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text)), *from = text;
		bool has = next < nr && lines[next].line == number;

		if (next == nr && number > (uint64_t)lines[nr - 1].line + near_lines)
			break;
		if (!line_end)
			line_end = end;
		text = line_end + (line_end < end);
		if (!is_near_line(lines, nr, next, number, near_lines))
			continue;
		if (last_shown && last_shown + 1 < number)
			err = code_rows_add_text(rows, CODE_ROW_LINE_GAP, 0, "");
		if (!err)
			err = add_line(rows, number, has ? &lines[next] : NULL, from, (size_t)(line_end - from));
		next += has;
		last_shown = number;
	}
	for (; !err && next < nr; next++)
		err = add_line(rows, lines[next].line, &lines[next], missing, strlen(missing));
	return err;
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

static int add_gap(struct code_rows *rows, uint32_t nr_left_out)
{
	return nr_left_out ? code_rows_add_text(rows, CODE_ROW_INSTRUCTION_GAP, nr_left_out, "") : 0;
}

int annotation_instructions(const struct shown_instruction *instructions, uint32_t nr, struct code_rows *rows)
{
	uint32_t nr_left_out = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < nr; i++) {
		if (!is_near(instructions, nr, i)) {
			nr_left_out++;
			continue;
		}
		err = add_gap(rows, nr_left_out);
		nr_left_out = 0;
		if (!err)
			err = code_rows_add_text(rows, CODE_ROW_INSTRUCTION, instructions[i].elf_vaddr, instructions[i].text);
		if (err)
			return err;
		rows->list[rows->nr - 1].self = instructions[i].self;
		rows->list[rows->nr - 1].total = instructions[i].total;
	}
	return err ? err : add_gap(rows, nr_left_out);
}
