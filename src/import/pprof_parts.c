// SPDX-License-Identifier: Apache-2.0
/* Reads the messages of a pprof file: mappings, functions, locations, samples. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "import/pprof.h"

#define VSYSCALL	   "[vsyscall]" /* the only user page at kernel addresses */

enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILENAME, MAPPING_BUILD_ID };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILENAME, FUNCTION_START_LINE };
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION_ID = 1, LINE_LINE, LINE_COLUMN };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STR, LABEL_NUM, LABEL_NUM_UNIT };

int pprof_read_mapping(struct pprof_reader *reader, struct reader message)
{
	struct profile *profile = reader->importer->profile;
	struct profile_mapping mapping = { 0 };
	struct pprof_mapping *at = &reader->mapping_list[reader->nr_mappings];
	struct protobuf_field field;
	uint64_t id = 0;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == MAPPING_ID)
			id = field.value;
		else if (field.number == MAPPING_START)
			mapping.start_pc = field.value;
		else if (field.number == MAPPING_LIMIT)
			mapping.end_pc = field.value;
		else if (field.number == MAPPING_OFFSET)
			mapping.file_off = field.value;
		else if (field.number == MAPPING_FILENAME)
			err = pprof_string(reader, &field, &mapping.path);
		else if (field.number == MAPPING_BUILD_ID)
			err = pprof_string(reader, &field, &mapping.build_id);
	}
	if (message.bad)
		return pprof_bad(reader, message.end, "a mapping is cut off");
	if (err)
		return err;
	at->path = mapping.path;
	at->is_kernel = import_is_kernel_path(profile_string_text(profile, mapping.path));
	at->number = at->is_kernel ? PROFILE_NONE : profile_mapping(profile, &mapping);
	if (!at->is_kernel && at->number == PROFILE_NONE)
		return -ENOMEM;
	return id_table_add(&reader->mappings, id, reader->nr_mappings++);
}

/* The line, or 0 if it is out of range. */
static uint32_t line_of(uint64_t line)
{
	return line > INT32_MAX ? 0 : (uint32_t)line;
}

int pprof_read_function(struct pprof_reader *reader, struct reader message)
{
	struct profile_function function = { 0 };
	struct protobuf_field field;
	uint32_t number;
	uint64_t id = 0;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == FUNCTION_ID)
			id = field.value;
		else if (field.number == FUNCTION_NAME)
			err = pprof_string(reader, &field, &function.name);
		else if (field.number == FUNCTION_SYSTEM_NAME)
			err = pprof_string(reader, &field, &function.system_name);
		else if (field.number == FUNCTION_FILENAME)
			err = pprof_string(reader, &field, &function.file);
		else if (field.number == FUNCTION_START_LINE)
			function.line = line_of(field.value);
	}
	if (message.bad)
		return pprof_bad(reader, message.end, "a function is cut off");
	if (err)
		return err;
	if (function.name == PROFILE_EMPTY_STRING)
		function.name = function.system_name;
	number = profile_function(reader->importer->profile, &function);
	return number == PROFILE_NONE ? -ENOMEM : id_table_add(&reader->functions, id, number);
}

static int add_line(struct pprof_reader *reader, const struct profile_location *location)
{
	if (location->function == PROFILE_NONE)
		return -ENOMEM;
	if (!array_grow(&reader->lines, reader->nr_lines, &reader->max_lines, sizeof(*reader->lines), 1024, UINT32_MAX / 8))
		return -ENOMEM;
	reader->lines[reader->nr_lines] = profile_location(reader->importer->profile, location);
	return reader->lines[reader->nr_lines++] == PROFILE_NONE ? -ENOMEM : 0;
}

/* profile.proto has no frame kinds. A lone function without address and mapping is an interpreter's if the name of its source file says
 * so. */
static void take_interpreted(const struct profile *profile, struct profile_location *location)
{
	const char *file = profile_string_text(profile, profile_function_at(profile, location->function)->file);

	if (!location->pc && location->mapping == PROFILE_NONE && location->kind == FRAME_NATIVE)
		location->kind = import_kind_of_file(file, strlen(file));
}

/* Reads one function at the address; `is_alone`: it is the only one. */
static int read_line(struct pprof_reader *reader, struct reader message, struct profile_location location, bool is_alone)
{
	struct protobuf_field field;
	uint64_t function = 0;

	while (protobuf_next(&message, &field)) {
		if (field.number == LINE_FUNCTION_ID)
			function = field.value;
		else if (field.number == LINE_LINE)
			location.line = line_of(field.value);
		else if (field.number == LINE_COLUMN)
			import_count(reader->importer, IMPORT_LOSS_COLUMNS, field.value != 0);
	}
	if (message.bad)
		return pprof_bad(reader, message.end, "a line of a location is cut off");
	if (!id_table_find(&reader->functions, function, &location.function))
		return pprof_bad(reader, message.end, "a location names a function that is not there");
	import_kind_by_name(reader->importer, &location);
	if (is_alone)
		take_interpreted(reader->importer->profile, &location);
	return add_line(reader, &location);
}

struct location_head {
	uint64_t id, mapping, address, nr_lines;
};

static bool read_head(struct reader message, struct location_head *ret_head)
{
	struct protobuf_field field;

	while (protobuf_next(&message, &field)) {
		if (field.number == LOCATION_ID)
			ret_head->id = field.value;
		else if (field.number == LOCATION_MAPPING_ID)
			ret_head->mapping = field.value;
		else if (field.number == LOCATION_ADDRESS)
			ret_head->address = field.value;
		else if (field.number == LOCATION_LINE)
			ret_head->nr_lines++;
	}
	return !message.bad;
}

int pprof_read_location(struct pprof_reader *reader, struct reader message)
{
	struct pprof_location *at = &reader->location_list[reader->nr_locations];
	const struct pprof_mapping *mapping = NULL;
	struct profile_location location = { .mapping = PROFILE_NONE };
	struct location_head head = { 0 };
	struct protobuf_field field;
	uint64_t nr_left;
	int err = 0;

	if (!read_head(message, &head))
		return pprof_bad(reader, message.end, "a location is cut off");
	if (head.mapping) {
		uint32_t number;

		if (!id_table_find(&reader->mappings, head.mapping, &number))
			return pprof_bad(reader, message.end, "a location names a mapping that is not there");
		mapping = &reader->mapping_list[number];
		location.mapping = mapping->number;
	}
	location.pc = head.address;
	if ((mapping && mapping->is_kernel) ||
	    (head.address >= PROFILE_KERNEL_KADDR &&
	     (!mapping || strcmp(profile_string_text(reader->importer->profile, mapping->path), VSYSCALL) != 0)))
		location.kind = FRAME_KERNEL;
	if (location.kind == FRAME_KERNEL)
		location.mapping = PROFILE_NONE;
	at->first_line = reader->nr_lines;
	nr_left = head.nr_lines;
	while (!err && protobuf_next(&message, &field)) {
		location.is_inlined = nr_left > 1;
		if (field.number == LOCATION_LINE && nr_left--)
			err = read_line(reader, field.bytes, location, head.nr_lines == 1);
	}
	if (!err && !head.nr_lines) {
		location.is_inlined = 0;
		location.is_nameless = location.mapping != PROFILE_NONE;
		location.function =
		    import_nameless(reader->importer, mapping ? mapping->path : PROFILE_EMPTY_STRING, location.kind == FRAME_KERNEL);
		err = add_line(reader, &location);
	}
	at->nr_lines = reader->nr_lines - at->first_line;
	return err ? err : id_table_add(&reader->locations, head.id, reader->nr_locations++);
}

static int push_locations(struct pprof_reader *reader, struct protobuf_field field)
{
	uint64_t id;
	uint32_t number;
	int err = 0;

	while (!err && protobuf_next_varint(&field, &id)) {
		const struct pprof_location *at;

		if (!id_table_find(&reader->locations, id, &number))
			return pprof_bad(reader, field.bytes.pos ? (const void *)field.bytes.pos : reader->importer->bytes,
					 "a sample names a location that is not there");
		at = &reader->location_list[number];
		for (uint32_t i = 0; !err && i < at->nr_lines; i++)
			err = import_push(reader->importer, reader->lines[at->first_line + i]);
	}
	if (field.bytes.bad)
		return pprof_bad(reader, field.bytes.end, "a sample's stack is cut off");
	return err;
}

static int read_label(struct pprof_reader *reader, struct reader message, struct profile_sample *sample)
{
	struct profile_label label = { .is_number = 1 };
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == LABEL_KEY) {
			err = pprof_string(reader, &field, &label.key);
		} else if (field.number == LABEL_STR) {
			err = pprof_string(reader, &field, &label.text);
			label.is_number = 0;
		} else if (field.number == LABEL_NUM) {
			label.number = (int64_t)field.value;
		} else if (field.number == LABEL_NUM_UNIT) {
			err = pprof_string(reader, &field, &label.unit);
		}
	}
	if (message.bad)
		return pprof_bad(reader, message.end, "a label is cut off");
	if (err)
		return err;
	if (label.is_number && !label.number &&
	    label.unit == PROFILE_EMPTY_STRING) /* an empty text, or a 0, which google/pprof ignores too */
		return 0;
	if (!label.is_number)
		label.number = 0, label.unit = PROFILE_EMPTY_STRING;
	import_label(reader->importer, sample, &label);
	return 0;
}

static int read_values(struct pprof_reader *reader, struct protobuf_field field, int64_t *values, uint32_t *nr_values)
{
	uint64_t value;

	while (protobuf_next_varint(&field, &value)) {
		if (*nr_values == reader->nr_types)
			return pprof_bad(reader, field.bytes.end ? (const void *)field.bytes.end : reader->importer->bytes,
					 "a sample has more values than there are kinds");
		values[(*nr_values)++] = (int64_t)value;
	}
	return field.bytes.bad ? pprof_bad(reader, field.bytes.end, "a sample's values are cut off") : 0;
}

static struct pprof_stack *add_stack(struct pprof_reader *reader, uint64_t hash)
{
	if (!array_grow(&reader->stacks, reader->nr_stacks, &reader->max_stacks, sizeof(*reader->stacks), 1024, UINT32_MAX / 8))
		return NULL;
	return u64_map_add(&reader->stack_index, hash, reader->nr_stacks) ? NULL : &reader->stacks[reader->nr_stacks++];
}

/* Reads the stack of a sample that lists its locations in one field, as nearly all do. Equal bytes are the same stack. */
static int read_stack(struct pprof_reader *reader, const struct protobuf_field *field, struct profile_sample *sample)
{
	size_t size = reader_left(&field->bytes);
	uint64_t hash = hash_bytes(field->bytes.pos, size, 0);
	struct pprof_stack *stack;
	uint32_t cursor = 0, *found;
	int err;

	while ((found = u64_map_each(&reader->stack_index, hash, &cursor))) {
		stack = &reader->stacks[*found];
		if (reader_left(&stack->bytes) == size && !memcmp(stack->bytes.pos, field->bytes.pos, size)) {
			sample->user_stack = stack->user;
			sample->kernel_stack = stack->kernel;
			return 0;
		}
	}
	err = push_locations(reader, *field);
	if (!err)
		err = import_end_stack(reader->importer, sample);
	if (err)
		return err;
	stack = add_stack(reader, hash);
	if (!stack)
		return -ENOMEM;
	*stack = (struct pprof_stack){ .bytes = field->bytes, .user = sample->user_stack, .kernel = sample->kernel_stack };
	return 0;
}

/* Reads locations that are spread over several fields: single numbers or several lists. */
static int read_scattered_stack(struct pprof_reader *reader, struct reader message, struct profile_sample *sample)
{
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == SAMPLE_LOCATION_ID)
			err = push_locations(reader, field);
	}
	return err ? err : import_end_stack(reader->importer, sample);
}

static void take_values(struct pprof_reader *reader, const int64_t *values, struct profile_sample *sample)
{
	int64_t ticks;

	for (uint32_t i = 0; i < reader->nr_kept; i++)
		sample->values[i] = values[reader->kept[i]];
	if (reader->is_ticks && (__builtin_mul_overflow(values[0], reader->period, &ticks) || ticks != values[1]))
		reader->is_ticks = false;
}

int pprof_read_sample(struct pprof_reader *reader, struct reader message)
{
	struct profile_sample sample = import_blank();
	int64_t values[IMPORT_MAX_VALUES];
	struct protobuf_field field, stack = { .type = PROTOBUF_USED_UP };
	struct reader again = message;
	uint32_t nr_values = 0, nr_stacks = 0;
	int err = 0;

	memset(values, 0, reader->nr_types * sizeof(*values));
	import_begin(reader->importer);
	while (!err && protobuf_next(&message, &field)) {
		if (field.number == SAMPLE_LOCATION_ID)
			stack = field, nr_stacks++;
		else if (field.number == SAMPLE_VALUE)
			err = read_values(reader, field, values, &nr_values);
		else if (field.number == SAMPLE_LABEL)
			err = read_label(reader, field.bytes, &sample);
	}
	if (err)
		return err;
	if (message.bad)
		return pprof_bad(reader, message.end, "a sample is cut off");
	if (nr_stacks == 1 && stack.type == PROTOBUF_BYTES)
		err = read_stack(reader, &stack, &sample);
	else if (nr_stacks)
		err = read_scattered_stack(reader, again, &sample);
	take_values(reader, values, &sample);
	return err ? err : import_end_sample(reader->importer, &sample);
}
