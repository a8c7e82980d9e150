// SPDX-License-Identifier: Apache-2.0
/* Writes one JSON object per line: the account, each sample with its whole stack, then the histograms. So no line depends on another. The
 * text of a location is built once and copied. */
#include <errno.h>
#include <stdlib.h>

#include "codec/json.h"
#include "formats/account_json.h"
#include "formats/formats.h"
#include "formats/frame_json.h"
#include "formats/histogram_json.h"

#define JSONL_VERSION 1

struct lines {
	struct json json;
	const struct profile *profile;
	/* Objects of all locations, concatenated. */
	struct buffer frames;
	size_t *ends;	      /* by location: where its object ends */
};

static int write_frames(struct lines *lines)
{
	uint32_t nr_locations = profile_nr_locations(lines->profile);

	lines->ends = malloc(((size_t)nr_locations + 1) * sizeof(*lines->ends));
	if (!lines->ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_locations; i++) {
		struct json json = { .buffer = &lines->frames };

		json_open(&json, '{');
		write_frame_keys(&json, lines->profile, i);
		json_close(&json, '}');
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
		buffer_settle(buffer);
		lines->json.comma = true;
	}
}

static void write_whole_stack(struct lines *lines, uint32_t kernel_stack, uint32_t user_stack)
{
	json_key(&lines->json, "stack");
	json_open(&lines->json, '[');
	write_stack(lines, kernel_stack);
	write_stack(lines, user_stack);
	json_close(&lines->json, ']');
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
		if (types[i].fold != VALUE_SUM)
			json_key_text(json, "fold", value_fold_name((enum value_fold)types[i].fold));
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
			if (labels[i].unit != PROFILE_EMPTY_STRING)
				json_key_text(json, "unit", profile_string_text(lines->profile, labels[i].unit));
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
	write_whole_stack(lines, sample->kernel_stack, sample->user_stack);
	json_close(json, '}');
	buffer_append(json->buffer, "\n", 1);
}

static void write_histogram_line(struct lines *lines, const struct profile_histogram *histogram)
{
	struct json *json = &lines->json;

	json->comma = false;
	json_open(json, '{');
	json_key_text(json, "record", "histogram");
	write_histogram(json, lines->profile, histogram);
	if (histogram_has_stack(histogram)) {
		json_key_text(json, "comm", profile_string_text(lines->profile, histogram->comm));
		json_key_u64(json, "pid", histogram->tgid);
		json_key_u64(json, "tid", histogram->tid);
		write_whole_stack(lines, histogram->kernel_stack, histogram->user_stack);
	}
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
	for (uint32_t i = 0; i < profile_nr_histograms(profile) && !buffer->err; i++)
		write_histogram_line(&lines, profile_histogram_at(profile, i));
	return 0;
}
