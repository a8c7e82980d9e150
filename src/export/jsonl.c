// SPDX-License-Identifier: Apache-2.0
/* One JSON object per line: the account, then each sample with its whole stack, so that a line needs no other. What a location reads is written
 * once and copied. */
#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "export/account_json.h"
#include "export/formats.h"

#define JSONL_VERSION 1

struct lines {
	struct json json;
	const struct profile *profile;
	struct buffer frames; /* objects of all locations, one behind the other */
	size_t *ends;	      /* by location: where its object ends */
};

static void key_text_if(struct json *json, const char *key, const char *text)
{
	if (*text)
		json_key_text(json, key, text);
}

static void write_frame(struct json *json, const struct profile *profile, const struct profile_location *location)
{
	const struct profile_function *function = profile_function_at(profile, location->function);

	json_open(json, '{');
	json_key_text(json, "name", profile_string_text(profile, function->name));
	json_key_text(json, "kind", frame_kind_name(location->kind));
	if (function->system_name != function->name)
		key_text_if(json, "system_name", profile_string_text(profile, function->system_name));
	key_text_if(json, "file", profile_string_text(profile, function->file));
	if (location->line)
		json_key_u64(json, "line", location->line);
	if (location->is_inlined) {
		json_key(json, "inlined");
		json_bool(json, true);
	}
	if (location->pc)
		json_key_hex(json, "pc", location->pc);
	if (location->mapping != PROFILE_NONE) {
		const struct profile_mapping *mapping = profile_mapping_at(profile, location->mapping);

		json_key_hex(json, "address", location->elf_vaddr);
		key_text_if(json, "path", profile_string_text(profile, mapping->path));
		key_text_if(json, "build_id", profile_string_text(profile, mapping->build_id));
	}
	json_close(json, '}');
}

static int write_frames(struct lines *lines)
{
	uint32_t nr_locations = profile_nr_locations(lines->profile);

	lines->ends = malloc(((size_t)nr_locations + 1) * sizeof(*lines->ends));
	if (!lines->ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_locations; i++) {
		struct json json = { .buffer = &lines->frames };

		write_frame(&json, lines->profile, profile_location_at(lines->profile, i));
		lines->ends[i] = lines->frames.size;
	}
	return lines->frames.err;
}

static void write_stack(struct lines *lines, uint32_t stack)
{
	struct buffer *buffer = lines->json.buffer;
	const uint32_t *locations;
	uint32_t nr_locations;

	if (stack == PROFILE_NONE)
		return;
	locations = profile_stack_at(lines->profile, stack, &nr_locations);
	for (uint32_t i = 0; i < nr_locations; i++) {
		size_t from = locations[i] ? lines->ends[locations[i] - 1] : 0;

		buffer_append(buffer, ",", lines->json.comma);
		buffer_append(buffer, lines->frames.data + from, lines->ends[locations[i]] - from);
		lines->json.comma = true;
	}
}

static void write_values(struct lines *lines, const struct profile_sample *sample)
{
	struct json *json = &lines->json;
	uint32_t nr_types;
	const struct profile_value_type *types = profile_value_types(lines->profile, &nr_types);

	json_key(json, "values");
	json_open(json, '[');
	for (uint32_t i = 0; i < nr_types; i++) {
		json_open(json, '{');
		json_key_text(json, "type", profile_string_text(lines->profile, types[i].type));
		json_key_text(json, "unit", profile_string_text(lines->profile, types[i].unit));
		json_key(json, "value");
		json_i64(json, sample->values[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void write_labels(struct lines *lines, uint32_t number)
{
	struct json *json = &lines->json;
	uint32_t nr_labels;
	const struct profile_label *labels = profile_labels_at(lines->profile, number, &nr_labels);

	json_key(json, "labels");
	json_open(json, '[');
	for (uint32_t i = 0; i < nr_labels; i++) {
		json_open(json, '{');
		json_key_text(json, "key", profile_string_text(lines->profile, labels[i].key));
		if (labels[i].is_number) {
			json_key(json, "number");
			json_i64(json, labels[i].number);
			key_text_if(json, "unit", profile_string_text(lines->profile, labels[i].unit));
		} else {
			json_key_text(json, "text", profile_string_text(lines->profile, labels[i].text));
		}
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void write_sample(struct lines *lines, const struct profile_sample *sample)
{
	struct json *json = &lines->json;

	json->comma = false;
	json_open(json, '{');
	json_key_text(json, "record", "sample");
	json_key_text(json, "comm", profile_string_text(lines->profile, sample->comm));
	json_key_u64(json, "pid", sample->tgid);
	json_key_u64(json, "tid", sample->tid);
	if (sample->cpu != PROFILE_NONE)
		json_key_u64(json, "cpu", sample->cpu);
	if (sample->time_ns)
		json_key_u64(json, "time_unix_ns", sample->time_ns);
	write_values(lines, sample);
	if (sample->labels != PROFILE_NO_LABELS)
		write_labels(lines, sample->labels);
	json_key(json, "stack");
	json_open(json, '[');
	write_stack(lines, sample->kernel_stack);
	write_stack(lines, sample->user_stack);
	json_close(json, ']');
	json_close(json, '}');
	buffer_append(json->buffer, "\n", 1);
}

static void lines_done(struct lines *lines)
{
	buffer_done(&lines->frames);
	free(lines->ends);
}

int write_jsonl(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(lines_done) struct lines lines = { .json = { .buffer = buffer }, .profile = profile, .frames = BUFFER_INIT(buffer->max) };
	int err = write_frames(&lines);

	if (err)
		return err;
	json_open(&lines.json, '{');
	json_key_text(&lines.json, "record", "account");
	json_key_text(&lines.json, "format", "sonde-samples");
	json_key_u64(&lines.json, "version", JSONL_VERSION);
	json_key(&lines.json, "account");
	write_account(&lines.json, profile_account_of(profile));
	json_close(&lines.json, '}');
	buffer_append(buffer, "\n", 1);
	for (uint32_t i = 0; i < profile_nr_samples(profile) && !buffer->err; i++)
		write_sample(&lines, profile_sample_at(profile, i));
	return 0;
}
