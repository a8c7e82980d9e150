// SPDX-License-Identifier: Apache-2.0
/* Reads the dictionary's tables, each after the tables that it refers to. */
#include <errno.h>
#include <string.h>

#include "base/hex.h"
#include "import/otlp.h"
#include "model/span_label.h"

/* Field numbers of opentelemetry-proto, profiles/v1development/profiles.proto and common/v1/common.proto. */
enum { TABLE_MAPPING = 1, TABLE_LOCATION, TABLE_FUNCTION, TABLE_LINK, TABLE_STRING, TABLE_ATTRIBUTE, TABLE_STACK };
enum { MAPPING_START = 1, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILENAME, MAPPING_ATTRIBUTES };
enum { LOCATION_MAPPING = 1, LOCATION_ADDRESS, LOCATION_LINES, LOCATION_ATTRIBUTES };
enum { LINE_FUNCTION = 1, LINE_LINE, LINE_COLUMN };
enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME, FUNCTION_FILENAME, FUNCTION_START_LINE };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE, ATTRIBUTE_UNIT };
enum { LINK_TRACE = 1, LINK_SPAN };
enum { ANY_STRING = 1, ANY_BOOL, ANY_INT, ANY_STRING_PLACE = 8 };

static int read_text(struct otlp_reader *reader, struct reader message)
{
	uint32_t *string = otlp_add(&reader->strings, sizeof(*string));

	if (!string)
		return -ENOMEM;
	*string = import_string(reader->importer, message.pos, reader_left(&message));
	return *string == PROFILE_NONE ? -ENOMEM : 0;
}

int otlp_read_value(struct otlp_reader *reader, struct reader message, struct profile_label *label)
{
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == ANY_STRING)
			label->text = import_string(reader->importer, field.bytes.pos, reader_left(&field.bytes));
		else if (field.number == ANY_STRING_PLACE)
			err = otlp_string_at(reader, field.value, &label->text);
		else if (field.number == ANY_BOOL)
			label->text = profile_string(reader->importer->profile, field.value ? "true" : "false");
		else if (field.number == ANY_INT)
			label->number = (int64_t)field.value, label->is_number = 1;
		else
			label->key = PROFILE_NONE;
	}
	if (message.bad)
		return otlp_bad(reader, message.end, "an attribute's value is cut off");
	if (!err && label->text == PROFILE_NONE)
		return -ENOMEM;
	return err;
}

static int read_attribute(struct otlp_reader *reader, struct reader message)
{
	struct profile_label label = { 0 }, *at = otlp_add(&reader->attributes, sizeof(*at));
	struct reader value = { 0 };
	struct protobuf_field field;
	int err = at ? 0 : -ENOMEM;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == ATTRIBUTE_KEY)
			err = otlp_string_at(reader, field.value, &label.key);
		else if (field.number == ATTRIBUTE_VALUE)
			value = field.bytes;
		else if (field.number == ATTRIBUTE_UNIT)
			err = otlp_string_at(reader, field.value, &label.unit);
	}
	if (message.bad)
		return otlp_bad(reader, message.end, "an attribute is cut off");
	if (!err)
		err = otlp_read_value(reader, value, &label);
	if (!label.is_number)
		label.unit = PROFILE_EMPTY_STRING;
	if (!err)
		*at = label;
	return err;
}

static int read_function(struct otlp_reader *reader, struct reader message)
{
	struct profile_function function = { 0 };
	struct protobuf_field field;
	uint32_t *at = otlp_add(&reader->functions, sizeof(*at));
	int err = at ? 0 : -ENOMEM;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == FUNCTION_NAME)
			err = otlp_string_at(reader, field.value, &function.name);
		else if (field.number == FUNCTION_SYSTEM_NAME)
			err = otlp_string_at(reader, field.value, &function.system_name);
		else if (field.number == FUNCTION_FILENAME)
			err = otlp_string_at(reader, field.value, &function.file);
		else if (field.number == FUNCTION_START_LINE)
			function.line = field.value > INT32_MAX ? 0 : (uint32_t)field.value;
	}
	if (message.bad)
		return otlp_bad(reader, message.end, "a function is cut off");
	if (err)
		return err;
	if (function.name == PROFILE_EMPTY_STRING)
		function.name = function.system_name;
	if (function.system_name == PROFILE_EMPTY_STRING)
		function.system_name = function.name;
	*at = profile_function(reader->importer->profile, &function);
	return *at == PROFILE_NONE ? -ENOMEM : 0;
}

/* The text of the attribute with this key among those listed; PROFILE_EMPTY_STRING: none. */
static uint32_t find_attribute(struct otlp_reader *reader, struct protobuf_field places, const char *key)
{
	const struct profile_label *labels = reader->attributes.items;
	uint64_t place;

	while (protobuf_next_varint(&places, &place)) {
		if (place < reader->attributes.nr && labels[place].key != PROFILE_NONE && !labels[place].is_number &&
		    !strcmp(profile_string_text(reader->importer->profile, labels[place].key), key))
			return labels[place].text;
	}
	return PROFILE_EMPTY_STRING;
}

static int read_mapping(struct otlp_reader *reader, struct reader message)
{
	struct profile *profile = reader->importer->profile;
	struct otlp_mapping *at = otlp_add(&reader->mappings, sizeof(*at));
	struct profile_mapping mapping = { 0 };
	struct protobuf_field field;
	int err = at ? 0 : -ENOMEM;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == MAPPING_START)
			mapping.start_pc = field.value;
		else if (field.number == MAPPING_LIMIT)
			mapping.end_pc = field.value;
		else if (field.number == MAPPING_OFFSET)
			mapping.file_off = field.value;
		else if (field.number == MAPPING_FILENAME)
			err = otlp_string_at(reader, field.value, &mapping.path);
		else if (field.number == MAPPING_ATTRIBUTES && !mapping.build_id)
			mapping.build_id = find_attribute(reader, field, "process.executable.build_id.gnu");
	}
	if (message.bad)
		return otlp_bad(reader, message.end, "a mapping is cut off");
	if (err)
		return err;
	at->path = mapping.path;
	at->is_kernel = import_is_kernel_path(profile_string_text(profile, mapping.path));
	at->number = at->is_kernel || (!mapping.path && !mapping.end_pc) ? PROFILE_NONE : profile_mapping(profile, &mapping);
	return 0;
}

static int add_line(struct otlp_reader *reader, const struct profile_location *location)
{
	uint32_t *at = otlp_add(&reader->lines, sizeof(*at));

	if (!at || location->function == PROFILE_NONE)
		return -ENOMEM;
	*at = profile_location(reader->importer->profile, location);
	return *at == PROFILE_NONE ? -ENOMEM : 0;
}

static int read_line(struct otlp_reader *reader, struct reader message, struct profile_location location)
{
	struct protobuf_field field;
	uint64_t function = 0;

	while (protobuf_next(&message, &field)) {
		if (field.number == LINE_FUNCTION)
			function = field.value;
		else if (field.number == LINE_LINE)
			location.line = field.value > INT32_MAX ? 0 : (uint32_t)field.value;
		else if (field.number == LINE_COLUMN)
			import_count(reader->importer, IMPORT_LOSS_COLUMNS, field.value != 0);
	}
	if (message.bad)
		return otlp_bad(reader, message.end, "a line of a location is cut off");
	if (function >= reader->functions.nr)
		return otlp_bad(reader, message.end, "a location names a function that is not there");
	location.function = ((const uint32_t *)reader->functions.items)[function];
	import_kind_by_name(reader->importer, &location);
	return add_line(reader, &location);
}

/* The interpreter's frame kind; FRAME_NATIVE: none. */
static enum frame_kind interpreted_kind(const char *type)
{
	static const struct {
		const char *type;
		enum frame_kind kind;
#define X(id, name, shown, otlp, ...) { otlp, FRAME_##id },
	} types[] = { SONDE_RUNTIME_LIST(X, X, SONDE_NO_RUNTIME) };
#undef X

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (!strcmp(type, types[i].type))
			return types[i].kind;
	}
	return FRAME_NATIVE;
}

struct location_head {
	uint64_t mapping, address, nr_lines;
	uint32_t type; /* string */
};

static bool read_head(struct otlp_reader *reader, struct reader message, struct location_head *ret_head)
{
	struct protobuf_field field;

	while (protobuf_next(&message, &field)) {
		if (field.number == LOCATION_MAPPING)
			ret_head->mapping = field.value;
		else if (field.number == LOCATION_ADDRESS)
			ret_head->address = field.value;
		else if (field.number == LOCATION_LINES)
			ret_head->nr_lines++;
		else if (field.number == LOCATION_ATTRIBUTES && !ret_head->type)
			ret_head->type = find_attribute(reader, field, "profile.frame.type");
	}
	return !message.bad;
}

static int read_location(struct otlp_reader *reader, struct reader message)
{
	struct otlp_location *at = otlp_add(&reader->locations, sizeof(*at));
	struct profile_location location = { .mapping = PROFILE_NONE };
	const struct otlp_mapping *mapping;
	struct location_head head = { 0 };
	struct protobuf_field field;
	enum frame_kind interpreted;
	uint64_t nr_left;
	int err = at ? 0 : -ENOMEM;

	if (err)
		return err;
	if (!read_head(reader, message, &head))
		return otlp_bad(reader, message.end, "a location is cut off");
	if (head.mapping >= reader->mappings.nr)
		return otlp_bad(reader, message.end, "a location names a mapping that is not there");
	mapping = (const struct otlp_mapping *)reader->mappings.items + head.mapping;
	location.pc = head.address;
	if (mapping->is_kernel || !strcmp(profile_string_text(reader->importer->profile, head.type), "kernel") ||
	    (head.address >= PROFILE_KERNEL_KADDR && !mapping->path))
		location.kind = FRAME_KERNEL;
	else
		location.mapping = mapping->number;
	interpreted = interpreted_kind(profile_string_text(reader->importer->profile, head.type));
	if (interpreted != FRAME_NATIVE) /* what other writers put in its address is an address in the interpreter's code */
		location = (struct profile_location){ .mapping = PROFILE_NONE, .kind = interpreted };
	at->first_line = reader->lines.nr;
	nr_left = head.nr_lines;
	while (!err && protobuf_next(&message, &field)) {
		location.is_inlined = nr_left > 1 && interpreted == FRAME_NATIVE;
		if (field.number == LOCATION_LINES && nr_left--)
			err = read_line(reader, field.bytes, location);
	}
	if (!err && !head.nr_lines) {
		location.is_inlined = 0;
		location.is_nameless = location.mapping != PROFILE_NONE;
		location.function = import_nameless(reader->importer, mapping->path, location.kind == FRAME_KERNEL);
		err = add_line(reader, &location);
	}
	at->nr_lines = reader->lines.nr - at->first_line;
	return err;
}

static int read_stack(struct otlp_reader *reader, struct reader message)
{
	struct reader *at = otlp_add(&reader->stacks, sizeof(*at));

	if (at)
		*at = message;
	return at ? 0 : -ENOMEM;
}

/* Bytes of that size become their digits; others, and all zeros, "". */
static int read_id(struct otlp_reader *reader, struct reader bytes, size_t size, uint32_t *ret_string)
{
	static const uint8_t none[SPAN_TRACE_BYTES];
	char digits[2 * SPAN_TRACE_BYTES + 1] = "";

	if (reader_left(&bytes) == size && memcmp(bytes.pos, none, size) != 0)
		hex_write(bytes.pos, size, digits);
	*ret_string = profile_string(reader->importer->profile, digits);
	return *ret_string == PROFILE_NONE ? -ENOMEM : 0;
}

static int read_link(struct otlp_reader *reader, struct reader message)
{
	struct otlp_link *at = otlp_add(&reader->links, sizeof(*at));
	struct protobuf_field field;
	int err = at ? 0 : -ENOMEM;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == LINK_TRACE)
			err = read_id(reader, field.bytes, SPAN_TRACE_BYTES, &at->trace);
		else if (field.number == LINK_SPAN)
			err = read_id(reader, field.bytes, SPAN_BYTES, &at->span);
	}
	return !err && message.bad ? otlp_bad(reader, message.end, "a link is cut off") : err;
}

static int each_entry(struct otlp_reader *reader, struct reader message, uint32_t table,
		      int (*read)(struct otlp_reader *reader, struct reader message))
{
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == table)
			err = read(reader, field.bytes);
	}
	return !err && message.bad ? otlp_bad(reader, message.end, "the dictionary is cut off") : err;
}

int otlp_read_dictionary(struct otlp_reader *reader, struct reader message)
{
	static const struct {
		uint32_t table;
		int (*read)(struct otlp_reader *reader, struct reader message);
	} steps[] = {
		{ TABLE_STRING, read_text },	 { TABLE_ATTRIBUTE, read_attribute }, { TABLE_FUNCTION, read_function },
		{ TABLE_MAPPING, read_mapping }, { TABLE_LOCATION, read_location },   { TABLE_STACK, read_stack },
		{ TABLE_LINK, read_link },
	};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(steps); i++)
		err = each_entry(reader, message, steps[i].table, steps[i].read);
	return err;
}
