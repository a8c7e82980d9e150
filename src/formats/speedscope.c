// SPDX-License-Identifier: Apache-2.0
/* Writes speedscope's own format (its file-format-schema.json): a profile per thread and value type, with shared frames. With time stamps,
 * samples of a clock are at their times, with empty stacks between them. */
#include <string.h>

#include "codec/json.h"
#include "formats/formats.h"
#include "frames/frame_list.h"
#include "frames/timeline.h"
#include "frames/tracks.h"
#include "model/account_text.h"

struct scope {
	struct json json;
	const struct profile *profile;
	struct frame_list frames;
	struct tracks tracks;
	uint64_t first_ns;
};

static void write_frames(struct scope *scope)
{
	struct json *json = &scope->json;

	json_key(json, "shared");
	json_open(json, '{');
	json_key(json, "frames");
	json_open(json, '[');
	for (uint32_t i = 0; i < scope->frames.nr_entries; i++) {
		const struct frame_entry *entry = &scope->frames.entries[i];
		const char *file = frame_entry_file(scope->profile, entry);
		uint32_t line = profile_function_at(scope->profile, entry->function)->line;

		json_line(json);
		json_open(json, '{');
		json_key_text(json, "name", frame_entry_name(scope->profile, entry));
		if (*file)
			json_key_text(json, "file", file);
		if (line)
			json_key_u64(json, "line", line);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void write_side(struct scope *scope, uint32_t stack)
{
	const uint32_t *locations;
	uint32_t nr_locations;

	if (stack == PROFILE_NONE)
		return;
	locations = profile_stack_at(scope->profile, stack, &nr_locations);
	while (nr_locations-- > 0)
		json_u64(&scope->json, scope->frames.of_location[locations[nr_locations]]);
}

static struct timeline timeline_of(const struct scope *scope, const struct track *track, uint32_t type)
{
	return (struct timeline){
		.scale = value_scale_of(scope->profile, type),
		.first_ns = scope->first_ns,
		.type = type,
		.is_timed = track->is_timed,
	};
}

static void write_samples(struct scope *scope, const struct track *track, uint32_t type)
{
	struct json *json = &scope->json;
	struct timeline timeline = timeline_of(scope, track, type);

	json_key(json, "samples");
	json_open(json, '[');
	for (uint32_t i = track->first; i < track->first + track->nr; i++) {
		const struct profile_sample *sample = profile_sample_at(scope->profile, scope->tracks.samples[i]);
		struct step step = timeline_step(&timeline, sample);

		if (step.gap) {
			json_open(json, '[');
			json_close(json, ']');
		}
		json_open(json, '[');
		write_side(scope, sample->user_stack);
		write_side(scope, sample->kernel_stack);
		json_close(json, ']');
	}
	json_close(json, ']');
}

static void write_weights(struct scope *scope, const struct track *track, uint32_t type)
{
	struct json *json = &scope->json;
	struct timeline timeline = timeline_of(scope, track, type);

	json_key(json, "weights");
	json_open(json, '[');
	for (uint32_t i = track->first; i < track->first + track->nr; i++) {
		struct step step = timeline_step(&timeline, profile_sample_at(scope->profile, scope->tracks.samples[i]));

		if (step.gap)
			json_fixed(json, step.gap, 0);
		json_fixed(json, step.weight, 0);
	}
	json_close(json, ']');
	json_key(json, "startValue");
	json_u64(json, 0);
	json_key(json, "endValue");
	json_fixed(json, timeline.at, 0);
}

static int write_profile(struct scope *scope, const struct track *track, uint32_t type)
{
	CLEANUP(buffer_done) struct buffer name = BUFFER_INIT(scope->json.buffer->max);
	struct value_scale scale = value_scale_of(scope->profile, type);
	uint32_t nr_types;
	const struct profile_value_type *types = profile_sum_types(scope->profile, &nr_types);
	bool known = scale.is_time || !strcmp(scale.unit, "bytes");

	track_name(scope->profile, track, &name);
	if (nr_types > 1)
		buffer_printf(&name, ": %s", profile_string_text(scope->profile, types[type].type));
	if (name.err)
		return name.err;
	json_line(&scope->json);
	json_open(&scope->json, '{');
	json_key_text(&scope->json, "type", "sampled");
	json_key_text(&scope->json, "name", name.data);
	json_key_text(&scope->json, "unit", known ? scale.unit : "none");
	write_samples(scope, track, type);
	write_weights(scope, track, type);
	json_close(&scope->json, '}');
	return 0;
}

/* The thread with the largest sum of the shown value: speedscope shows it first. */
static uint32_t largest_track(const struct scope *scope)
{
	uint32_t largest = 0, shown = profile_shown_value(scope->profile);
	double largest_sum = 0;

	for (uint32_t i = 0; i < scope->tracks.nr; i++) {
		const struct track *track = &scope->tracks.all[i];
		double sum = 0;

		for (uint32_t j = track->first; j < track->first + track->nr; j++)
			sum += (double)profile_sample_at(scope->profile, scope->tracks.samples[j])->values[shown];
		if (sum > largest_sum) {
			largest_sum = sum;
			largest = i;
		}
	}
	return shown * scope->tracks.nr + largest;
}

static int write_profiles(struct scope *scope)
{
	uint32_t nr_types;
	int err = 0;

	profile_sum_types(scope->profile, &nr_types);
	json_key(&scope->json, "profiles");
	json_open(&scope->json, '[');
	for (uint32_t type = 0; type < nr_types; type++) {
		for (uint32_t i = 0; i < scope->tracks.nr && !err; i++)
			err = write_profile(scope, &scope->tracks.all[i], type);
	}
	json_close(&scope->json, ']');
	json_key_u64(&scope->json, "activeProfileIndex", largest_track(scope));
	return err;
}

static void scope_done(struct scope *scope)
{
	frame_list_done(&scope->frames);
	tracks_done(&scope->tracks);
}

int write_speedscope(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(scope_done) struct scope scope = { .json = { .buffer = buffer }, .profile = profile, .first_ns = first_time_ns(profile) };
	char name[sizeof(profile_account_of(profile)->command_line) + 8];
	int err = frame_list_find(profile, false, &scope.frames);

	if (!err)
		err = tracks_find(profile, &scope.tracks);
	if (err)
		return err;
	snprintf(name, sizeof(name), "sonde %s", account_command(profile_account_of(profile)));
	json_open(&scope.json, '{');
	json_key_text(&scope.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_key_text(&scope.json, "exporter", "sonde");
	json_key_text(&scope.json, "name", name);
	json_line(&scope.json);
	write_frames(&scope);
	json_line(&scope.json);
	err = write_profiles(&scope);
	json_close(&scope.json, '}');
	buffer_text(buffer, "\n");
	return err;
}
