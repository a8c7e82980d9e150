// SPDX-License-Identifier: Apache-2.0
/* Writes the source and instructions of functions into a page's profile: for each its frame and columns of rows. */
#include "page/code_json.h"

static const char *const kind_names[] = {
	[CODE_ROW_FILE] = "file",	  [CODE_ROW_LINE] = "line",
	[CODE_ROW_LINE_GAP] = "line gap", [CODE_ROW_NO_SOURCE] = "no source",
	[CODE_ROW_CODE] = "code",	  [CODE_ROW_INSTRUCTION] = "instruction",
	[CODE_ROW_INSTRUCTION_GAP] = "instruction gap", [CODE_ROW_NO_CODE] = "no code",
	[CODE_ROW_NOWHERE] = "nowhere",
};

/* The page's frame of a place, or PROFILE_NONE. */
static uint32_t frame_of(const struct tree *tree, const struct annotated_place *place)
{
	for (uint32_t i = 0; i < tree->nr_frames; i++) {
		const struct tree_frame *frame = &tree->frames[i];

		if (frame->name == place->name && frame->path == place->path && frame->kind == place->kind &&
		    frame->start_line == place->start_line)
			return i;
	}
	return PROFILE_NONE;
}

#define COLUMN(json, key, rows, write, value) \
	do { \
		json_key(json, key); \
		json_open(json, '['); \
		for (uint32_t i = 0; i < (rows)->nr; i++) \
			write(json, value); \
		json_close(json, ']'); \
	} while (0)

static void write_rows(struct json *json, const struct code_rows *rows)
{
	COLUMN(json, "kind", rows, json_text, kind_names[rows->list[i].kind]);
	COLUMN(json, "number", rows, json_u64, rows->list[i].number);
	COLUMN(json, "self", rows, json_i64, rows->list[i].self);
	COLUMN(json, "total", rows, json_i64, rows->list[i].total);
	COLUMN(json, "text", rows, json_text, code_row_text(rows, i));
}

void write_code(struct json *json, const struct tree *tree, const struct profile *profile, const struct annotated_code *code)
{
	json_key(json, "code");
	json_open(json, '[');
	for (uint32_t i = 0; i < code->nr; i++) {
		const struct annotated_place *place = &code->list[i].place;
		uint32_t frame = frame_of(tree, place);

		if (frame == PROFILE_NONE)
			continue;
		json_open(json, '{');
		json_key_u64(json, "frame", frame);
		json_key_text(json, "build_id", profile_string_text(profile, place->build_id));
		json_key(json, "all");
		json_i64(json, place->total);
		write_rows(json, &code->list[i].rows);
		json_close(json, '}');
	}
	json_close(json, ']');
}
