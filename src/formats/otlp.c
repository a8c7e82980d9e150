// SPDX-License-Identifier: Apache-2.0
/* Writes OpenTelemetry's profiles (opentelemetry-proto 1.10 and newer, ProfilesData; collectors take the same message as a request): a
 * resource per process (formats/otlp_resource.h), and in it a profile per value type. Version 1.8 has other numbers of two fields of
 * Profile, 1.8 and 1.9 of two of Sample; whatever else differs, we do not write. */
#include "formats/otlp.h"

#include <string.h>

#include "formats/formats.h"
#include "frames/tick.h"
#include "model/account_text.h"
#include "model/process_label.h"

#define FIELD(id, number, name) static const struct otlp_field id = { number, name }
FIELD(resource_profiles, 1, "resourceProfiles");
FIELD(resource, 1, "resource");
FIELD(scope_profiles, 2, "scopeProfiles");
FIELD(resource_attributes, 1, "attributes");
FIELD(key_value_key, 1, "key");
FIELD(key_value_value, 2, "value");
FIELD(string_value, 1, "stringValue");
FIELD(int_value, 3, "intValue");
FIELD(scope, 1, "scope");
FIELD(scope_name, 1, "name");
FIELD(profiles, 2, "profiles");
FIELD(sample_type, 1, "sampleType");
FIELD(samples, 2, "samples");
FIELD(time_unix_nano, 3, "timeUnixNano");
FIELD(duration_nano, 4, "durationNano");
FIELD(period_type, 5, "periodType");
FIELD(period_field, 6, "period");
FIELD(profile_id, 7, "profileId");
FIELD(profile_attributes, 11, "attributeIndices");
FIELD(type_strindex, 1, "typeStrindex");
FIELD(unit_strindex, 2, "unitStrindex");
FIELD(stack_index, 1, "stackIndex");
FIELD(sample_attributes, 2, "attributeIndices");
FIELD(sample_link, 3, "linkIndex");
FIELD(values, 4, "values");
FIELD(timestamps, 5, "timestampsUnixNano");
/* of older versions */
FIELD(values_1_9, 2, "values");
FIELD(sample_attributes_1_9, 3, "attributeIndices");
FIELD(sample_link_1_9, 4, "linkIndex");
FIELD(profile_id_1_8, 8, "profileId");
FIELD(profile_attributes_1_8, 12, "attributeIndices");

static void resource_text(struct otlp_sink *sink, const char *key, const char *text)
{
	if (!*text)
		return;
	otlp_item(sink, resource_attributes);
	otlp_text(sink, key_value_key, key);
	otlp_begin(sink, key_value_value);
	otlp_text(sink, string_value, text);
	otlp_end(sink);
	otlp_end(sink);
}

/* Those of the process's labels. Returns whether its executable is among them. */
static bool write_process_labels(struct otlp *otlp, uint32_t labels)
{
	uint32_t nr;
	const struct profile_label *list = profile_labels_at(otlp->profile, labels, &nr);
	bool has_executable = false;

	for (uint32_t i = 0; i < nr; i++) {
		const char *key = profile_string_text(otlp->profile, list[i].key);

		if (!otlp_is_of_resource(otlp->profile, &list[i]))
			continue;
		resource_text(&otlp->sink, key, profile_string_text(otlp->profile, list[i].text));
		has_executable |= !strcmp(key, PROCESS_LABEL_EXECUTABLE);
	}
	return has_executable;
}

static void write_resource(struct otlp *otlp, const struct track *track, uint32_t labels)
{
	struct otlp_sink *sink = &otlp->sink;
	bool has_executable;

	otlp_begin(sink, resource);
	otlp_list_begin(sink, resource_attributes);
	if (track->tgid) {
		otlp_item(sink, resource_attributes);
		otlp_text(sink, key_value_key, "process.pid");
		otlp_begin(sink, key_value_value);
		otlp_choice_i64(sink, int_value, track->tgid);
		otlp_end(sink);
		otlp_end(sink);
	}
	has_executable = write_process_labels(otlp, labels);
	if (track->tgid && !has_executable)
		resource_text(sink, PROCESS_LABEL_EXECUTABLE, profile_string_text(otlp->profile, track->comm));
	resource_text(sink, "host.name", profile_account_of(otlp->profile)->host);
	otlp_list_end(sink);
	otlp_end(sink);
}

static void number_attribute(struct otlp *otlp, uint32_t key, int64_t number, uint32_t unit)
{
	struct otlp_attribute attribute;

	memset(&attribute, 0, sizeof(attribute));
	attribute.key = key;
	attribute.unit = unit;
	attribute.number = number;
	attribute.is_number = 1;
	otlp_number(&otlp->sink, otlp_attribute(otlp, &attribute));
}

/* Those of the trace and span are the link. */
static void write_labels(struct otlp *otlp, uint32_t number, bool is_linked)
{
	uint32_t nr_labels;
	const struct profile_label *labels = profile_labels_at(otlp->profile, number, &nr_labels);

	for (uint32_t i = 0; i < nr_labels; i++) {
		if (otlp_is_of_resource(otlp->profile, &labels[i]) || (is_linked && otlp_is_of_link(otlp->profile, &labels[i])))
			continue;
		if (labels[i].is_number)
			number_attribute(otlp, labels[i].key, labels[i].number, labels[i].unit);
		else
			otlp_number(&otlp->sink, otlp_text_attribute(otlp, labels[i].key, labels[i].text));
	}
}

static void write_sample(struct otlp *otlp, const struct profile_sample *sample, uint32_t type)
{
	uint32_t link = otlp_link(otlp, sample->labels);
	struct otlp_sink *sink = &otlp->sink;

	otlp_item(sink, samples);
	otlp_u32(sink, stack_index, otlp_stack(otlp, sample->user_stack, sample->kernel_stack));
	otlp_numbers_begin(sink, otlp->version < OTLP_1_10 ? sample_attributes_1_9 : sample_attributes);
	if (sample->tid)
		number_attribute(otlp, otlp_string(otlp, OTLP_STRING_THREAD_ID), sample->tid, PROFILE_EMPTY_STRING);
	if (sample->comm != PROFILE_EMPTY_STRING)
		otlp_number(sink, otlp_text_attribute(otlp, otlp_string(otlp, OTLP_STRING_THREAD_NAME), sample->comm));
	if (sample->cpu != PROFILE_NONE)
		number_attribute(otlp, otlp_string(otlp, OTLP_STRING_CPU), sample->cpu, PROFILE_EMPTY_STRING);
	write_labels(otlp, sample->labels, link != 0);
	otlp_numbers_end(sink);
	otlp_u32(sink, otlp->version < OTLP_1_10 ? sample_link_1_9 : sample_link, link);
	otlp_numbers_begin(sink, otlp->version < OTLP_1_10 ? values_1_9 : values);
	otlp_number_i64(sink, sample->values[type]);
	otlp_numbers_end(sink);
	if (sample->time_ns) {
		otlp_numbers_begin(sink, timestamps);
		otlp_number_fixed64(sink, sample->time_ns);
		otlp_numbers_end(sink);
	}
	otlp_end(sink);
}

static void write_type(struct otlp *otlp, struct otlp_field field, uint32_t type, uint32_t unit)
{
	otlp_begin(&otlp->sink, field);
	otlp_u32(&otlp->sink, type_strindex, type);
	otlp_u32(&otlp->sink, unit_strindex, unit);
	otlp_end(&otlp->sink);
}

/* The next profile's id: the message's, and the profile's number in it. */
static void write_id(struct otlp *otlp)
{
	uint8_t id[16];
	uint32_t number = otlp->nr_profiles++;

	if (!otlp->profile_id)
		return;
	memcpy(id, otlp->profile_id, sizeof(id));
	for (int i = 0; i < 4; i++)
		id[12 + i] ^= (uint8_t)(number >> (24 - 8 * i));
	otlp_id(&otlp->sink, otlp->version < OTLP_1_9 ? profile_id_1_8 : profile_id, id, sizeof(id));
}

/* Samples of one process with one resource. */
struct pieces {
	const struct otlp_piece *first, *end;
};

static void write_profile(struct otlp *otlp, struct pieces pieces, uint32_t type)
{
	const struct account *account = profile_account_of(otlp->profile);
	uint32_t nr_types,
	    comment = otlp_text_attribute(otlp, otlp_string(otlp, OTLP_STRING_COMMENT), otlp_string(otlp, OTLP_STRING_ACCOUNT));
	const struct profile_value_type *types = profile_sum_types(otlp->profile, &nr_types);
	uint64_t period = tick_period(otlp->profile);
	struct otlp_sink *sink = &otlp->sink;

	otlp_item(sink, profiles);
	write_type(otlp, sample_type, types[type].type, types[type].unit);
	otlp_list_begin(sink, samples);
	for (const struct otlp_piece *piece = pieces.first; piece < pieces.end; piece++) {
		const struct profile_sample *sample = profile_sample_at(otlp->profile, piece->sample);

		if (sample->values[type])
			write_sample(otlp, sample, type);
	}
	otlp_list_end(sink);
	otlp_fixed64(sink, time_unix_nano, account->start_unix_ns);
	otlp_u64(sink, duration_nano, account->duration_ns);
	if (period) {
		write_type(otlp, period_type, otlp_string(otlp, OTLP_STRING_PERIOD_TYPE), otlp_string(otlp, OTLP_STRING_PERIOD_UNIT));
		otlp_u64(sink, period_field, period);
	}
	write_id(otlp);
	otlp_numbers_begin(sink, otlp->version < OTLP_1_9 ? profile_attributes_1_8 : profile_attributes);
	otlp_number(sink, comment);
	otlp_numbers_end(sink);
	otlp_end(sink);
}

static void write_pieces(struct otlp *otlp, const struct track *track, struct pieces pieces)
{
	struct otlp_sink *sink = &otlp->sink;
	uint32_t nr_types;

	profile_sum_types(otlp->profile, &nr_types);
	otlp_item(sink, resource_profiles);
	write_resource(otlp, track, pieces.first->resource);
	otlp_list_begin(sink, scope_profiles);
	otlp_item(sink, scope_profiles);
	otlp_begin(sink, scope);
	otlp_text(sink, scope_name, "sonde");
	otlp_end(sink);
	otlp_list_begin(sink, profiles);
	for (uint32_t type = 0; type < nr_types; type++)
		write_profile(otlp, pieces, type);
	otlp_list_end(sink);
	otlp_end(sink);
	otlp_list_end(sink);
	otlp_end(sink);
}

/* The tracks are those of one process. */
static void write_process(struct otlp *otlp, const struct track *first, const struct track *end)
{
	struct pieces pieces;
	const struct otlp_piece *last;
	int err = otlp_resources_find(&otlp->resources, &otlp->tracks, first, end);

	if (err) {
		otlp->err = err;
		return;
	}
	pieces.first = otlp->resources.pieces;
	for (last = pieces.first + otlp->resources.nr; pieces.first < last; pieces.first = pieces.end) {
		pieces.end = pieces.first;
		while (pieces.end < last && pieces.end->resource == pieces.first->resource)
			pieces.end++;
		write_pieces(otlp, first, pieces);
	}
}

static void write_message(struct otlp *otlp)
{
	struct otlp_sink *sink = &otlp->sink;

	if (sink->is_json)
		json_open(&sink->json, '{');
	otlp_list_begin(sink, resource_profiles);
	for (uint32_t i = 0; i < otlp->tracks.nr && !sink->json.buffer->err;) {
		const struct track *first = &otlp->tracks.all[i];

		while (i < otlp->tracks.nr && otlp->tracks.all[i].tgid == first->tgid)
			i++;
		write_process(otlp, first, &otlp->tracks.all[i]);
	}
	otlp_list_end(sink);
	otlp_write_dictionary(otlp);
	if (sink->is_json)
		json_close(&sink->json, '}');
}

static void otlp_done(struct otlp *otlp)
{
	buffer_done(&otlp->sink.scratch);
	buffer_done(&otlp->account);
	tracks_done(&otlp->tracks);
	otlp_resources_done(&otlp->resources);
	inlines_done(&otlp->inlines);
	interned_done(&otlp->attributes);
	interned_done(&otlp->stacks);
	interned_done(&otlp->links);
}

static int write_otlp(const struct profile *profile, bool is_json, enum otlp_version version, const struct export_options *options,
		      struct buffer *buffer)
{
	CLEANUP(otlp_done) struct otlp otlp = {
		.sink = { .json = { .buffer = buffer }, .scratch = BUFFER_INIT(buffer->max), .is_json = is_json },
		.profile = profile,
		.profile_id = options->profile_id,
		.version = version,
		.resources = { .profile = profile },
		.account = BUFFER_INIT(buffer->max),
		.attributes = INTERNED_INIT(struct otlp_attribute, sizeof(struct otlp_attribute), UINT64_MAX),
		.stacks = INTERNED_INIT(struct otlp_stack, sizeof(struct otlp_stack), UINT64_MAX),
		.links = INTERNED_INIT(struct span_ids, sizeof(struct span_ids), UINT64_MAX),
	};
	int err = tracks_find(profile, &otlp.tracks);

	if (!err)
		err = inlines_find(profile, &otlp.inlines);
	if (err)
		return err;
	account_text(profile_account_of(profile), 0, &otlp.account);
	if (otlp.account.err)
		return otlp.account.err;
	write_message(&otlp);
	return otlp.err;
}

int write_otlp_json(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	int err = write_otlp(profile, true, OTLP_1_10, options, buffer);

	buffer_text(buffer, "\n");
	return err;
}

int write_otlp_protobuf(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	return write_otlp(profile, false, OTLP_1_10, options, buffer);
}

int write_otlp_1_9(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	return write_otlp(profile, false, OTLP_1_9, options, buffer);
}

int write_otlp_1_8(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	return write_otlp(profile, false, OTLP_1_8, options, buffer);
}
