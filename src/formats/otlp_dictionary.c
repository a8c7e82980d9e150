// SPDX-License-Identifier: Apache-2.0
/* Writes ProfilesDictionary of opentelemetry-proto 1.10 and newer (opentelemetry/proto/profiles/v1development/profiles.proto). The first
 * element of each table is empty, so an index is the number of our entry + 1 (for locations, see inlines). Our strings start with the empty
 * one already. */
#include <errno.h>
#include <string.h>

#include "base/hex.h"
#include "formats/otlp.h"
#include "frames/tick.h"

#define FIELD(id, number, name) static const struct otlp_field id = { number, name }
FIELD(dictionary, 2, "dictionary");
FIELD(mapping_table, 1, "mappingTable");
FIELD(location_table, 2, "locationTable");
FIELD(function_table, 3, "functionTable");
FIELD(link_table, 4, "linkTable");
FIELD(string_table, 5, "stringTable");
FIELD(attribute_table, 6, "attributeTable");
FIELD(stack_table, 7, "stackTable");
FIELD(memory_start, 1, "memoryStart");
FIELD(memory_limit, 2, "memoryLimit");
FIELD(file_offset, 3, "fileOffset");
FIELD(filename, 4, "filenameStrindex");
FIELD(mapping_attributes, 5, "attributeIndices");
FIELD(mapping_index, 1, "mappingIndex");
FIELD(address, 2, "address");
FIELD(lines, 3, "lines");
FIELD(location_attributes, 4, "attributeIndices");
FIELD(function_index, 1, "functionIndex");
FIELD(line_number, 2, "line");
FIELD(name, 1, "nameStrindex");
FIELD(system_name, 2, "systemNameStrindex");
FIELD(function_file, 3, "filenameStrindex");
FIELD(start_line, 4, "startLine");
FIELD(attribute_key, 1, "keyStrindex");
FIELD(attribute_value, 2, "value");
FIELD(attribute_unit, 3, "unitStrindex");
FIELD(string_value, 1, "stringValue");
FIELD(int_value, 3, "intValue");
FIELD(location_indices, 1, "locationIndices");
FIELD(link_trace, 1, "traceId");
FIELD(link_span, 2, "spanId");

static const char *string_text(const struct otlp *otlp, uint32_t string)
{
#define X(id, text) text,
	static const char *const texts[] = { OTLP_STRING_LIST(X) };
#undef X
	uint32_t nr_strings = profile_nr_strings(otlp->profile);

	if (string < nr_strings)
		return profile_string_text(otlp->profile, string);
	switch (string - nr_strings) {
	case OTLP_STRING_PERIOD_TYPE:
		return tick_event(profile_account_of(otlp->profile));
	case OTLP_STRING_PERIOD_UNIT:
		return profile_account_of(otlp->profile)->event_unit;
	case OTLP_STRING_ACCOUNT:
		return otlp->account.data ? otlp->account.data : "";
	}
	return texts[string - nr_strings];
}

uint32_t otlp_string(const struct otlp *otlp, enum otlp_string string)
{
	return profile_nr_strings(otlp->profile) + string;
}

/* The entry's index in a table whose first element is empty. */
static uint32_t number_of(struct otlp *otlp, struct interned *table, const void *entry)
{
	uint32_t number = interned_add(table, entry);

	if (number == INTERNED_NONE)
		otlp->err = -ENOMEM;
	return number == INTERNED_NONE ? 0 : number + 1;
}

uint32_t otlp_attribute(struct otlp *otlp, const struct otlp_attribute *attribute)
{
	return number_of(otlp, &otlp->attributes, attribute);
}

uint32_t otlp_text_attribute(struct otlp *otlp, uint32_t key, uint32_t text)
{
	struct otlp_attribute attribute;

	memset(&attribute, 0, sizeof(attribute));
	attribute.key = key;
	attribute.text = text;
	return otlp_attribute(otlp, &attribute);
}

uint32_t otlp_stack(struct otlp *otlp, uint32_t user, uint32_t kernel)
{
	return user == PROFILE_NONE && kernel == PROFILE_NONE ? 0 : number_of(otlp, &otlp->stacks, &(struct otlp_stack){ user, kernel });
}

struct link_bytes {
	uint8_t trace[SPAN_TRACE_BYTES], span[SPAN_BYTES];
};

static bool read_link(const struct otlp *otlp, const struct span_ids *ids, struct link_bytes *ret_bytes)
{
	return ids->trace != PROFILE_NONE && ids->span != PROFILE_NONE &&
	       hex_read(string_text(otlp, ids->trace), ret_bytes->trace, sizeof(ret_bytes->trace)) &&
	       hex_read(string_text(otlp, ids->span), ret_bytes->span, sizeof(ret_bytes->span));
}

uint32_t otlp_link(struct otlp *otlp, uint32_t labels)
{
	struct span_ids ids = span_ids_of(otlp->profile, labels);
	struct link_bytes bytes;

	return read_link(otlp, &ids, &bytes) ? number_of(otlp, &otlp->links, &ids) : 0;
}

bool otlp_is_of_link(const struct profile *profile, const struct profile_label *label)
{
	const char *key = profile_string_text(profile, label->key);

	return !label->is_number && (!strcmp(key, SPAN_LABEL_TRACE) || !strcmp(key, SPAN_LABEL_SPAN));
}

static void begin_table(struct otlp_sink *sink, struct otlp_field field)
{
	otlp_list_begin(sink, field);
	otlp_item(sink, field); /* the empty element */
	otlp_end(sink);
}

static void write_attribute_index(struct otlp_sink *sink, struct otlp_field field, uint32_t attribute)
{
	otlp_numbers_begin(sink, field);
	otlp_number(sink, attribute);
	otlp_numbers_end(sink);
}

static void write_mappings(struct otlp *otlp)
{
	struct otlp_sink *sink = &otlp->sink;

	begin_table(sink, mapping_table);
	for (uint32_t i = 0; i < profile_nr_mappings(otlp->profile); i++) {
		const struct profile_mapping *mapping = profile_mapping_at(otlp->profile, i);

		otlp_item(sink, mapping_table);
		otlp_u64(sink, memory_start, mapping->start_pc);
		otlp_u64(sink, memory_limit, mapping->end_pc);
		otlp_u64(sink, file_offset, mapping->file_off);
		otlp_u32(sink, filename, mapping->path);
		if (mapping->build_id != PROFILE_EMPTY_STRING)
			write_attribute_index(sink, mapping_attributes,
					      otlp_text_attribute(otlp, otlp_string(otlp, OTLP_STRING_BUILD_ID), mapping->build_id));
		otlp_end(sink);
	}
	otlp_list_end(sink);
}

static enum otlp_string frame_type(uint32_t kind)
{
#define X(id, ...) [FRAME_##id] = OTLP_STRING_##id,
	static const enum otlp_string types[] = { [FRAME_NATIVE] = OTLP_STRING_NATIVE,
						  [FRAME_KERNEL] = OTLP_STRING_KERNEL,
						  [FRAME_MISSED] = OTLP_STRING_ABORT,
						  [FRAME_MARK] = OTLP_STRING_ABORT,
						  SONDE_RUNTIME_LIST(X, X, SONDE_NO_RUNTIME) };
#undef X

	return types[kind];
}

static void write_lines(struct otlp *otlp, uint32_t chain)
{
	struct otlp_sink *sink = &otlp->sink;

	if (profile_location_at(otlp->profile, inlines_location(&otlp->inlines, chain))->is_nameless)
		return;
	otlp_list_begin(sink, lines);
	for (; chain != PROFILE_NONE; chain = inlines_outer(&otlp->inlines, chain)) {
		const struct profile_location *location = profile_location_at(otlp->profile, inlines_location(&otlp->inlines, chain));

		otlp_item(sink, lines);
		otlp_u32(sink, function_index, location->function + 1);
		otlp_u64(sink, line_number, location->line);
		otlp_end(sink);
	}
	otlp_list_end(sink);
}

static void write_locations(struct otlp *otlp)
{
	struct otlp_sink *sink = &otlp->sink;
	uint32_t key = otlp_string(otlp, OTLP_STRING_FRAME_TYPE);

	begin_table(sink, location_table);
	for (uint32_t i = 0; i < inlines_nr_chains(&otlp->inlines); i++) {
		const struct profile_location *location = profile_location_at(otlp->profile, inlines_location(&otlp->inlines, i));

		if (!otlp->inlines.ids[i])
			continue;
		otlp_item(sink, location_table);
		otlp_u32(sink, mapping_index, location->mapping == PROFILE_NONE ? 0 : location->mapping + 1);
		otlp_u64(sink, address, location->pc);
		write_lines(otlp, i);
		write_attribute_index(sink, location_attributes,
				      otlp_text_attribute(otlp, key, otlp_string(otlp, frame_type(location->kind))));
		otlp_end(sink);
	}
	otlp_list_end(sink);
}

static void write_functions(struct otlp *otlp)
{
	struct otlp_sink *sink = &otlp->sink;

	begin_table(sink, function_table);
	for (uint32_t i = 0; i < profile_nr_functions(otlp->profile); i++) {
		const struct profile_function *function = profile_function_at(otlp->profile, i);

		otlp_item(sink, function_table);
		otlp_u32(sink, name, function->name);
		otlp_u32(sink, system_name, function->system_name);
		otlp_u32(sink, function_file, function->file);
		otlp_u64(sink, start_line, function->line);
		otlp_end(sink);
	}
	otlp_list_end(sink);
}

static void write_side(struct otlp *otlp, uint32_t stack)
{
	uint32_t nr;
	const uint32_t *chains = inlines_of_stack(&otlp->inlines, otlp->profile, stack, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		if (inlines_begins(&otlp->inlines, chains, i))
			otlp_number(&otlp->sink, otlp->inlines.ids[chains[i]]);
	}
}

static void write_stacks(struct otlp *otlp)
{
	struct otlp_sink *sink = &otlp->sink;

	begin_table(sink, stack_table);
	for (uint32_t i = 0; i < otlp->stacks.nr; i++) {
		const struct otlp_stack *stack = interned_at(&otlp->stacks, i);

		otlp_item(sink, stack_table);
		otlp_numbers_begin(sink, location_indices);
		write_side(otlp, stack->kernel);
		write_side(otlp, stack->user);
		otlp_numbers_end(sink);
		otlp_end(sink);
	}
	otlp_list_end(sink);
}

static void write_attributes(struct otlp *otlp)
{
	struct otlp_sink *sink = &otlp->sink;

	begin_table(sink, attribute_table);
	for (uint32_t i = 0; i < otlp->attributes.nr; i++) {
		const struct otlp_attribute *attribute = interned_at(&otlp->attributes, i);

		otlp_item(sink, attribute_table);
		otlp_u32(sink, attribute_key, attribute->key);
		otlp_begin(sink, attribute_value);
		if (attribute->is_number)
			otlp_choice_i64(sink, int_value, attribute->number);
		else
			otlp_text(sink, string_value, string_text(otlp, attribute->text));
		otlp_end(sink);
		otlp_u32(sink, attribute_unit, attribute->unit);
		otlp_end(sink);
	}
	otlp_list_end(sink);
}

static void write_links(struct otlp *otlp)
{
	struct otlp_sink *sink = &otlp->sink;

	begin_table(sink, link_table);
	for (uint32_t i = 0; i < otlp->links.nr; i++) {
		struct link_bytes bytes = { 0 };

		(void)read_link(otlp, interned_at(&otlp->links, i), &bytes); /* it was one */
		otlp_item(sink, link_table);
		otlp_id(sink, link_trace, bytes.trace, sizeof(bytes.trace));
		otlp_id(sink, link_span, bytes.span, sizeof(bytes.span));
		otlp_end(sink);
	}
	otlp_list_end(sink);
}

void otlp_write_dictionary(struct otlp *otlp)
{
	struct otlp_sink *sink = &otlp->sink;

	otlp_begin(sink, dictionary);
	write_mappings(otlp);
	write_locations(otlp);
	write_functions(otlp);
	write_links(otlp);
	otlp_list_begin(sink, string_table);
	for (uint32_t i = 0; i < profile_nr_strings(otlp->profile) + OTLP_STRING_COUNT; i++)
		otlp_text_item(sink, string_table, string_text(otlp, i));
	otlp_list_end(sink);
	write_stacks(otlp);
	write_attributes(otlp); /* last, because the others add to it */
	otlp_end(sink);
}
