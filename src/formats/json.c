// SPDX-License-Identifier: Apache-2.0
/* Writes everything in the profile, each thing once. The schema is in docs/formats.md; readers check JSON_VERSION. */
#include "codec/json.h"

#include "formats/account_json.h"
#include "formats/formats.h"
#include "formats/frame_json.h"
#include "formats/histogram_json.h"
#include "formats/label_json.h"

#define JSON_VERSION 2

static void write_mappings(struct json *json, const struct profile *profile)
{
	json_key(json, "mappings");
	json_open(json, '[');
	for (uint32_t i = 0; i < profile_nr_mappings(profile); i++) {
		const struct profile_mapping *mapping = profile_mapping_at(profile, i);

		json_line(json);
		json_open(json, '{');
		json_key_text(json, "path", profile_string_text(profile, mapping->path));
		json_key_text(json, "build_id", profile_string_text(profile, mapping->build_id));
		json_key_hex(json, "start", mapping->start_pc);
		json_key_hex(json, "end", mapping->end_pc);
		json_key_hex(json, "file_offset", mapping->file_off);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void write_functions(struct json *json, const struct profile *profile)
{
	json_key(json, "functions");
	json_open(json, '[');
	for (uint32_t i = 0; i < profile_nr_functions(profile); i++) {
		const struct profile_function *function = profile_function_at(profile, i);

		json_line(json);
		json_open(json, '{');
		json_key_text(json, "name", profile_string_text(profile, function->name));
		json_key_text(json, "system_name", profile_string_text(profile, function->system_name));
		json_key_text(json, "file", profile_string_text(profile, function->file));
		json_key_u64(json, "line", function->line);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void key_number(struct json *json, const char *key, uint32_t number)
{
	json_key(json, key);
	if (number == PROFILE_NONE)
		json_null(json);
	else
		json_u64(json, number);
}

static void write_frames(struct json *json, const struct profile *profile)
{
	json_key(json, "frames");
	json_open(json, '[');
	for (uint32_t i = 0; i < profile_nr_locations(profile); i++) {
		const struct profile_location *location = profile_location_at(profile, i);

		json_line(json);
		json_open(json, '{');
		json_key_text(json, "kind", frame_kind_name(location->kind));
		key_number(json, "function", location->function);
		key_number(json, "mapping", location->mapping);
		json_key_hex(json, "pc", location->pc);
		json_key_hex(json, "address", location->elf_vaddr);
		json_key_hex(json, "function_offset", location->function_off);
		json_key_u64(json, "line", location->line);
		json_key(json, "inlined");
		json_bool(json, location->is_inlined);
		write_nameless(json, location);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void write_stacks(struct json *json, const struct profile *profile)
{
	json_key(json, "stacks");
	json_open(json, '[');
	for (uint32_t i = 0; i < profile_nr_stacks(profile); i++) {
		uint32_t nr_locations;
		const uint32_t *locations = profile_stack_at(profile, i, &nr_locations);

		json_line(json);
		json_open(json, '[');
		for (uint32_t j = 0; j < nr_locations; j++)
			json_u64(json, locations[j]);
		json_close(json, ']');
	}
	json_close(json, ']');
}

static void write_value_types(struct json *json, const struct profile *profile)
{
	uint32_t nr_types;
	const struct profile_value_type *types = profile_value_types(profile, &nr_types);

	json_key(json, "value_types");
	json_open(json, '[');
	for (uint32_t i = 0; i < nr_types; i++) {
		json_open(json, '{');
		json_key_text(json, "type", profile_string_text(profile, types[i].type));
		json_key_text(json, "unit", profile_string_text(profile, types[i].unit));
		if (types[i].fold != VALUE_SUM)
			json_key_text(json, "fold", value_fold_name((enum value_fold)types[i].fold));
		json_close(json, '}');
	}
	json_close(json, ']');
	json_key_u64(json, "shown_value", profile_shown_value(profile));
}

static void write_values(struct json *json, const struct profile *profile, const struct profile_sample *sample)
{
	uint32_t nr_types;

	profile_value_types(profile, &nr_types);
	json_key(json, "values");
	json_open(json, '[');
	for (uint32_t i = 0; i < nr_types; i++)
		json_i64(json, sample->values[i]);
	json_close(json, ']');
}

/* [key, text] or [key, number, unit]: a key may occur twice. */
static void write_labels(struct json *json, const struct profile *profile, uint32_t number)
{
	uint32_t nr_labels;
	const struct profile_label *labels = profile_labels_at(profile, number, &nr_labels);

	json_key(json, "labels");
	json_open(json, '[');
	for (uint32_t i = 0; i < nr_labels; i++)
		write_label(json, profile, &labels[i]);
	json_close(json, ']');
}

static void write_samples(struct json *json, const struct profile *profile)
{
	json_key(json, "samples");
	json_open(json, '[');
	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);

		json_line(json);
		json_open(json, '{');
		json_key_text(json, "comm", profile_string_text(profile, sample->comm));
		json_key_u64(json, "pid", sample->tgid);
		json_key_u64(json, "tid", sample->tid);
		key_number(json, "cpu", sample->cpu);
		key_number(json, "user_stack", sample->user_stack);
		key_number(json, "kernel_stack", sample->kernel_stack);
		if (sample->time_ns)
			json_key_u64(json, "time_unix_ns", sample->time_ns);
		write_values(json, profile, sample);
		if (sample->labels != PROFILE_NO_LABELS)
			write_labels(json, profile, sample->labels);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* A stack's histograms name process and thread as samples do. */
static void write_histograms(struct json *json, const struct profile *profile)
{
	json_key(json, "histograms");
	json_open(json, '[');
	for (uint32_t i = 0; i < profile_nr_histograms(profile); i++) {
		const struct profile_histogram *histogram = profile_histogram_at(profile, i);

		json_line(json);
		json_open(json, '{');
		write_histogram(json, profile, histogram);
		if (histogram_has_stack(histogram)) {
			json_key_text(json, "comm", profile_string_text(profile, histogram->comm));
			json_key_u64(json, "pid", histogram->tgid);
			json_key_u64(json, "tid", histogram->tid);
			key_number(json, "user_stack", histogram->user_stack);
			key_number(json, "kernel_stack", histogram->kernel_stack);
		}
		json_close(json, '}');
	}
	json_close(json, ']');
}

int write_json(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	struct json json = { .buffer = buffer };

	json_open(&json, '{');
	json_key_text(&json, "format", "sonde-profile");
	json_key_u64(&json, "version", JSON_VERSION);
	json_line(&json);
	json_key(&json, "account");
	write_account(&json, profile_account_of(profile));
	json_line(&json);
	write_mappings(&json, profile);
	json_line(&json);
	write_functions(&json, profile);
	json_line(&json);
	write_frames(&json, profile);
	json_line(&json);
	write_stacks(&json, profile);
	json_line(&json);
	write_value_types(&json, profile);
	json_line(&json);
	write_samples(&json, profile);
	if (profile_nr_histograms(profile)) {
		json_line(&json);
		write_histograms(&json, profile);
	}
	json_close(&json, '}');
	buffer_text(buffer, "\n");
	return 0;
}
