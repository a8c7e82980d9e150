// SPDX-License-Identifier: Apache-2.0
/* The report on a process for programs. */
#include <stdio.h>

#include "codec/json.h"
#include "examine/process_look.h"
#include "runtime/recognised.h"

#define VERSION 1

/* "": it does not exist. */
static void json_key_text_if(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text[0])
		json_text(json, text);
	else
		json_null(json);
}

static void json_runtime(const struct looked_file *file, const struct runtime_image *image, struct json *json)
{
	const struct recognised *recognised = image->runtime == SONDE_RUNTIME_NONE ? recognised_find(image->reason) : NULL;
	const struct runtime *runtime = runtime_of(image->runtime);
	char version[16];

	snprintf(version, sizeof(version), "%u.%u.%u", image->version[0], image->version[1], image->version[2]);
	json_line(json);
	json_open(json, '{');
	json_key_text(json, "name", recognised ? recognised->name : runtime_name(image->runtime));
	json_key_text_if(json, "version", recognised ? "" : version);
	json_key_text(json, "path", file->path);
	json_key_text(json, "state", image->is_supported ? "walked" : recognised ? "recognised" : "unsupported");
	json_key_text_if(json, "layout", image->is_supported ? runtime->layout : "");
	json_key_text_if(json, "reason", image->is_supported || recognised ? "" : image->reason);
	json_key_text_if(json, "help", recognised ? recognised->help : "");
	json_close(json, '}');
}

static void json_runtimes(const struct process_look *look, struct json *json)
{
	json_key(json, "runtimes");
	json_open(json, '[');
	for (uint32_t i = 0; i < look->nr_files; i++) {
		for (uint32_t image = 0; image < look->files[i].runtimes.nr_images; image++)
			json_runtime(&look->files[i], &look->files[i].runtimes.images[image], json);
	}
	json_close(json, ']');
	json_key(json, "notes");
	json_open(json, '[');
	for (uint32_t i = 0; i < look->account.nr_notes; i++)
		json_text(json, look->account.notes[i]);
	json_close(json, ']');
}

static void json_files(const struct process_look *look, struct json *json)
{
	json_key(json, "files");
	json_open(json, '[');
	for (uint32_t i = 0; i < look->nr_files; i++) {
		const struct looked_file *file = &look->files[i];

		json_line(json);
		json_open(json, '{');
		json_key_text(json, "path", file->path);
		json_key_text_if(json, "build_id", file->build_id);
		json_key_u64(json, "nr_unwind_rows", file->nr_rows);
		json_key_u64(json, "unwind_bytes", file->table_bytes);
		json_key_text_if(json, "no_unwind_table", file->no_table);
		json_key_text(json, "names", look_names_text(file->names));
		json_key(json, "lines");
		json_bool(json, file->has_lines);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void json_stacks(const struct process_look *look, struct json *json)
{
	json_key(json, "stacks");
	json_open(json, '{');
	json_key_text_if(json, "not_taken", look->no_stacks);
	json_key_u64(json, "time_ns", look->all_ns);
	json_key_u64(json, "whole_time_ns", look->whole_ns);
	json_key(json, "marks");
	json_open(json, '[');
	for (uint32_t i = 0; i < look->nr_marks; i++) {
		json_line(json);
		json_open(json, '{');
		json_key_text(json, "mark", look->marks[i].name);
		json_key_u64(json, "time_ns", look->marks[i].ns);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

void process_json(const struct process_look *look, struct buffer *buffer)
{
	struct json json = { .buffer = buffer };

	json_open(&json, '{');
	json_key_text(&json, "format", "sonde-doctor-process");
	json_key_u64(&json, "version", VERSION);
	json_key_text(&json, "sonde", sonde_version());
	json_key_u64(&json, "pid", look->tgid);
	json_key_text(&json, "comm", look->comm);
	json_key_u64(&json, "nr_threads", look->nr_threads);
	json_runtimes(look, &json);
	json_files(look, &json);
	json_key_u64(&json, "nr_made_mappings", look->nr_made);
	json_key_u64(&json, "made_bytes", look->made_bytes);
	json_key_u64(&json, "nr_name_files", look->nr_name_files);
	json_stacks(look, &json);
	json_close(&json, '}');
	buffer_text(buffer, "\n");
}
