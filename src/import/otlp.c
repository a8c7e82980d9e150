// SPDX-License-Identifier: Apache-2.0
#include "import/otlp.h"
#include "import/readers.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "import/otlp_json.h"
#include "model/span_label.h"

/* Field numbers of opentelemetry-proto, profiles/v1development/profiles.proto. */
enum { FILE_RESOURCE_PROFILES = 1, FILE_DICTIONARY };
enum { RESOURCE_RESOURCE = 1, RESOURCE_SCOPES };
enum { SCOPE_PROFILES = 2 };
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLES, PROFILE_TIME, PROFILE_DURATION, PROFILE_PERIOD_TYPE, PROFILE_PERIOD };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE, KEY_VALUE_KEY_PLACE };
enum { SAMPLE_STACK = 1, SAMPLE_TIMES = 5 };

/* A sample tries all of them, because those that are our own fields may stand anywhere among them. */
#define MAX_RESOURCE_LABELS (2 * IMPORT_MAX_LABELS)

struct sample_fields { /* fields of one sample, the same for all versions */
	uint64_t stack, link;
	struct protobuf_field attributes, values, times;
};

void *otlp_add(struct otlp_list *list, size_t item_bytes)
{
	if (!array_grow(&list->items, list->nr, &list->max, item_bytes, 64, UINT32_MAX / 64))
		return NULL;
	return memset((char *)list->items + list->nr++ * item_bytes, 0, item_bytes);
}

int otlp_bad(struct otlp_reader *reader, const void *at, const char *why)
{
	if (reader->is_json)
		return diag_errno(reader->importer->diag, EBADMSG, "bad OTLP's JSON: %s", why);
	return import_bad(reader->importer, "OTLP", at ? at : reader->bytes, why);
}

int otlp_string_at(struct otlp_reader *reader, uint64_t place, uint32_t *ret_string)
{
	if (place >= reader->strings.nr)
		return diag_errno(reader->importer->diag, EBADMSG, "bad OTLP: it names text %llu of %u", (unsigned long long)place,
				  reader->strings.nr);
	*ret_string = ((const uint32_t *)reader->strings.items)[place];
	return 0;
}

static int read_key_value(struct otlp_reader *reader, struct reader message)
{
	struct profile_label label = { 0 }, *at;
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == KEY_VALUE_KEY && reader_left(&field.bytes))
			label.key = import_string(reader->importer, field.bytes.pos, reader_left(&field.bytes));
		else if (field.number == KEY_VALUE_KEY_PLACE)
			err = otlp_string_at(reader, field.value, &label.key);
		else if (field.number == KEY_VALUE_VALUE)
			err = otlp_read_value(reader, field.bytes, &label);
	}
	if (message.bad)
		return otlp_bad(reader, message.end, "an attribute is cut off");
	if (err || label.key == PROFILE_NONE)
		return err;
	if (reader->resource.nr == MAX_RESOURCE_LABELS) {
		import_count(reader->importer, IMPORT_LOSS_LABELS, 1);
		return 0;
	}
	at = otlp_add(&reader->resource, sizeof(*at));
	if (!at)
		return -ENOMEM;
	*at = label;
	return 0;
}

/* Reads the resource's attributes: they become labels of each of its samples. */
static int read_resource(struct otlp_reader *reader, struct reader message)
{
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == 1)
			err = read_key_value(reader, field.bytes);
	}
	return !err && message.bad ? otlp_bad(reader, message.end, "a resource is cut off") : err;
}

/* Versions 1.8 and 1.9 number the fields values, attributes, link; later ones attributes, link, values. JSON has names. */
static bool split_sample(struct reader message, bool is_json, struct sample_fields *ret_fields)
{
	struct protobuf_field field, second = { .type = PROTOBUF_USED_UP }, third = second, fourth = second;

	*ret_fields = (struct sample_fields){ .times = second };
	while (protobuf_next(&message, &field)) {
		if (field.number == SAMPLE_STACK)
			ret_fields->stack = field.value;
		else if (field.number == 2)
			second = field;
		else if (field.number == 3)
			third = field;
		else if (field.number == 4)
			fourth = field;
		else if (field.number == SAMPLE_TIMES)
			ret_fields->times = field;
	}
	if (!is_json && (third.type == PROTOBUF_BYTES || fourth.type == PROTOBUF_VARINT ||
			 (fourth.type == PROTOBUF_USED_UP && ret_fields->times.type == PROTOBUF_USED_UP))) {
		ret_fields->values = second;
		ret_fields->attributes = third;
		ret_fields->link = fourth.value;
	} else {
		ret_fields->values = fourth;
		ret_fields->attributes = second;
		ret_fields->link = third.value;
	}
	return !message.bad;
}

static int push_stack(struct otlp_reader *reader, uint64_t stack)
{
	const struct otlp_location *locations = reader->locations.items;
	struct protobuf_field field;
	struct reader message;
	uint64_t place;
	int err = 0;

	if (stack >= reader->stacks.nr)
		return otlp_bad(reader, NULL, "a sample names a stack that is not there");
	message = ((const struct reader *)reader->stacks.items)[stack];
	while (!err && protobuf_next(&message, &field)) {
		while (!err && field.number == 1 && protobuf_next_varint(&field, &place)) {
			if (place >= reader->locations.nr)
				return otlp_bad(reader, message.pos, "a stack names a location that is not there");
			for (uint32_t i = 0; !err && i < locations[place].nr_lines; i++)
				err =
				    import_push(reader->importer, ((const uint32_t *)reader->lines.items)[locations[place].first_line + i]);
		}
		if (field.bytes.bad)
			return otlp_bad(reader, message.pos, "a stack is cut off");
	}
	return !err && message.bad ? otlp_bad(reader, message.end, "a stack is cut off") : err;
}

static int add_labels(struct otlp_reader *reader, struct protobuf_field places, struct profile_sample *sample)
{
	const struct profile_label *attributes = reader->attributes.items, *resource = reader->resource.items;
	uint64_t place;

	while (protobuf_next_varint(&places, &place)) {
		if (place >= reader->attributes.nr)
			return otlp_bad(reader, places.bytes.pos, "a sample names an attribute that is not there");
		if (attributes[place].key == PROFILE_NONE)
			import_count(reader->importer, IMPORT_LOSS_LABELS, 1);
		else
			import_label(reader->importer, sample, &attributes[place]);
	}
	for (uint32_t i = 0; i < reader->resource.nr; i++)
		import_label(reader->importer, sample, &resource[i]);
	return places.bytes.bad ? otlp_bad(reader, places.bytes.end, "a sample's attributes are cut off") : 0;
}

/* The trace and span, beside labels that the sample may have by the same keys. */
static int add_link(struct otlp_reader *reader, uint64_t place, struct profile_sample *sample)
{
	const struct otlp_link *link;
	struct profile_label label = { 0 };

	if (!place) /* none, also where there is no table */
		return 0;
	if (place >= reader->links.nr)
		return otlp_bad(reader, NULL, "a sample names a link that is not there");
	link = (const struct otlp_link *)reader->links.items + place;
	label.key = profile_string(reader->importer->profile, SPAN_LABEL_TRACE);
	label.text = link->trace;
	if (label.key != PROFILE_NONE && label.text)
		import_label(reader->importer, sample, &label);
	label.key = profile_string(reader->importer->profile, SPAN_LABEL_SPAN);
	label.text = link->span;
	if (label.key != PROFILE_NONE && label.text)
		import_label(reader->importer, sample, &label);
	return label.key == PROFILE_NONE ? -ENOMEM : 0;
}

/* Adds one sample for each time, with its value, or 1 if there are no values. Without times, adds one sample with the sum of the values. */
static int add_values(struct otlp_reader *reader, struct sample_fields *fields, struct profile_sample *sample, uint32_t column)
{
	uint64_t value, time_ns;
	bool has_values = fields->values.type != PROTOBUF_USED_UP;
	int err = 0;

	if (fields->times.type == PROTOBUF_USED_UP) {
		while (protobuf_next_varint(&fields->values, &value))
			sample->values[column] = number_sum(sample->values[column], (int64_t)value);
		return fields->values.bytes.bad ? otlp_bad(reader, fields->values.bytes.end, "a sample's values are cut off")
						: import_end(reader->importer, sample);
	}
	while (!err && protobuf_next_fixed64(&fields->times, &time_ns)) {
		value = 1;
		if (has_values && !protobuf_next_varint(&fields->values, &value))
			break;
		sample->time_ns = time_ns;
		sample->values[column] = (int64_t)value;
		err = import_end(reader->importer, sample);
	}
	if (fields->times.bytes.bad || fields->values.bytes.bad)
		return otlp_bad(reader, fields->times.bytes.end, "a sample's times are cut off");
	return err;
}

static int read_sample(struct otlp_reader *reader, struct reader message, uint32_t column)
{
	struct profile_sample sample = import_blank();
	struct sample_fields fields;
	int err;

	if (!split_sample(message, reader->is_json, &fields))
		return otlp_bad(reader, message.end, "a sample is cut off");
	import_begin(reader->importer);
	err = push_stack(reader, fields.stack);
	if (!err)
		err = add_link(reader, fields.link, &sample);
	if (!err)
		err = add_labels(reader, fields.attributes, &sample);
	return err ? err : add_values(reader, &fields, &sample, column);
}

static int read_value_type(struct otlp_reader *reader, struct reader message, struct profile_value_type *ret_type)
{
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number <= 2)
			err = otlp_string_at(reader, field.value, field.number == 1 ? &ret_type->type : &ret_type->unit);
	}
	return !err && message.bad ? otlp_bad(reader, message.end, "a kind of values is cut off") : err;
}

/* The index of these values in our own samples; PROFILE_NONE: no room for another kind. */
static uint32_t column_of(struct otlp_reader *reader, const struct profile_value_type *type)
{
	for (uint32_t i = 0; i < reader->nr_types; i++) {
		if (reader->types[i].type == type->type && reader->types[i].unit == type->unit)
			return i;
	}
	if (reader->nr_types == PROFILE_MAX_VALUES)
		return PROFILE_NONE;
	reader->types[reader->nr_types] = *type;
	return reader->nr_types++;
}

static int read_head(struct otlp_reader *reader, struct reader message, uint32_t *ret_column)
{
	struct profile *profile = reader->importer->profile;
	struct account *account = profile_account(profile);
	struct profile_value_type type = { 0 }, period = { 0 };
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == PROFILE_SAMPLE_TYPE)
			err = read_value_type(reader, field.bytes, &type);
		else if (field.number == PROFILE_TIME)
			account->start_unix_ns = field.value;
		else if (field.number == PROFILE_DURATION)
			account->duration_ns = field.value;
		else if (field.number == PROFILE_PERIOD_TYPE)
			err = read_value_type(reader, field.bytes, &period);
		else if (field.number == PROFILE_PERIOD)
			account->period = field.value > INT64_MAX ? 0 : field.value;
	}
	if (message.bad)
		return otlp_bad(reader, message.end, "a profile is cut off");
	if (err)
		return err;
	if (period.type) {
		snprintf(account->event, sizeof(account->event), "%s", profile_string_text(profile, period.type));
		snprintf(account->event_unit, sizeof(account->event_unit), "%s", profile_string_text(profile, period.unit));
	}
	*ret_column = column_of(reader, &type);
	if (*ret_column == PROFILE_NONE)
		import_count(reader->importer, IMPORT_LOSS_VALUES, 1);
	return 0;
}

static int read_profile(struct otlp_reader *reader, struct reader message)
{
	struct protobuf_field field;
	uint32_t column = 0;
	int err = read_head(reader, message, &column);

	while (!err && column != PROFILE_NONE && protobuf_next(&message, &field)) {
		if (field.number == PROFILE_SAMPLES)
			err = read_sample(reader, field.bytes, column);
	}
	return err;
}

static int read_scope(struct otlp_reader *reader, struct reader message)
{
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == SCOPE_PROFILES)
			err = read_profile(reader, field.bytes);
	}
	return !err && message.bad ? otlp_bad(reader, message.end, "the profiles of a scope are cut off") : err;
}

/* The resource may stand before or after the profiles, so it is read first. */
static int read_resource_profiles(struct otlp_reader *reader, struct reader message)
{
	struct reader again = message;
	struct protobuf_field field;
	int err = 0;

	reader->resource.nr = 0;
	while (!err && protobuf_next(&again, &field)) {
		if (field.number == RESOURCE_RESOURCE)
			err = read_resource(reader, field.bytes);
	}
	while (!err && protobuf_next(&message, &field)) {
		if (field.number == RESOURCE_SCOPES)
			err = read_scope(reader, field.bytes);
	}
	return !err && (message.bad || again.bad) ? otlp_bad(reader, message.end, "the profiles of a resource are cut off") : err;
}

static int each_field(struct otlp_reader *reader, uint32_t number, int (*read)(struct otlp_reader *reader, struct reader message))
{
	struct reader message = reader_of(reader->bytes, reader->size);
	const uint8_t *at = message.pos;
	struct protobuf_field field;
	int err = 0;

	for (; !err && protobuf_next(&message, &field); at = message.pos) {
		if (field.number == number)
			err = read(reader, field.bytes);
	}
	return !err && message.bad ? otlp_bad(reader, at, "no whole field stands there: it is cut off or damaged") : err;
}

static void otlp_reader_done(struct otlp_reader *reader)
{
	free(reader->strings.items);
	free(reader->functions.items);
	free(reader->lines.items);
	free(reader->attributes.items);
	free(reader->mappings.items);
	free(reader->locations.items);
	free(reader->stacks.items);
	free(reader->links.items);
	free(reader->resource.items);
}

static int read_message(struct importer *importer, const void *bytes, size_t size, bool is_json)
{
	CLEANUP(otlp_reader_done) struct otlp_reader reader = { .importer = importer, .bytes = bytes, .size = size, .is_json = is_json };
	int err = each_field(&reader, FILE_DICTIONARY, otlp_read_dictionary);

	if (!err)
		err = each_field(&reader, FILE_RESOURCE_PROFILES, read_resource_profiles);
	if (!err && reader.nr_types)
		profile_set_value_types(importer->profile, reader.types, reader.nr_types, 0);
	return err;
}

int otlp_read_message(struct importer *importer, const void *bytes, size_t size)
{
	return read_message(importer, bytes, size, true);
}

int read_otlp(struct importer *importer)
{
	return read_message(importer, importer->bytes, importer->size, false);
}
