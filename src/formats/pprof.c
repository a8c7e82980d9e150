// SPDX-License-Identifier: Apache-2.0
/* Writes pprof's profile.proto, gzipped. Ids are the numbers of our entries + 1 (for locations, see inlines), and our string 0 is its empty
 * one. So no lookup is needed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codec/protobuf.h"
#include "formats/formats.h"
#include "codec/gzip.h"
#include "frames/frame_source.h"
#include "frames/frame_text.h"
#include "frames/inlines.h"
#include "frames/tick.h"
#include "model/account_text.h"

/* Field numbers of google/pprof, proto/profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING_TABLE,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_SAMPLE_TYPE
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STR, LABEL_NUM, LABEL_NUM_UNIT };
enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILENAME, MAPPING_BUILD_ID, MAPPING_HAS_FUNCTIONS };
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION_ID = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILENAME, FUNCTION_START_LINE };

/* All kernel addresses, including modules and BPF programs, are one mapping with the name that perf uses. */
#define KERNEL_NAME	   "[kernel.kallsyms]"

struct pprof {
	struct buffer message, scratch;
	const struct profile *profile;
	uint32_t nr_strings, nr_values;
	uint64_t period; /* what one tick stands for; 0: not known, or the values are not ticks */
	struct inlines inlines;
	uint32_t comm_key, pid_key, tid_key, cpu_key, time_key, time_unit;
};

/* Appends to the string table; returns the new string's index. */
static uint32_t add_string(struct pprof *pprof, const char *text)
{
	pprof->scratch.size = 0;
	plain_text(&pprof->scratch, text, ';');
	protobuf_bytes(&pprof->message, PROFILE_STRING_TABLE, pprof->scratch.data, pprof->scratch.size);
	return pprof->nr_strings++;
}

static void write_value_type(struct pprof *pprof, uint32_t field, const char *type, const char *unit)
{
	uint32_t type_string = add_string(pprof, type), unit_string = add_string(pprof, unit);
	size_t opened = protobuf_open(&pprof->message, field);

	protobuf_u64(&pprof->message, VALUE_TYPE_TYPE, type_string);
	protobuf_u64(&pprof->message, VALUE_TYPE_UNIT, unit_string);
	protobuf_close(&pprof->message, opened);
}

static void write_types(struct pprof *pprof)
{
	const struct account *account = profile_account_of(pprof->profile);

	uint32_t nr_types;
	const struct profile_value_type *types = profile_sum_types(pprof->profile, &nr_types);
	const char *shown = profile_string_text(pprof->profile, types[profile_shown_value(pprof->profile)].type);

	for (uint32_t i = 0; i < nr_types; i++)
		write_value_type(pprof, PROFILE_SAMPLE_TYPE, profile_string_text(pprof->profile, types[i].type),
				 profile_string_text(pprof->profile, types[i].unit));
	if (pprof->period) {
		write_value_type(pprof, PROFILE_SAMPLE_TYPE, tick_event(account), account->event_unit);
		write_value_type(pprof, PROFILE_PERIOD_TYPE, tick_event(account), account->event_unit);
		protobuf_u64(&pprof->message, PROFILE_PERIOD, pprof->period);
	}
	protobuf_u64(&pprof->message, PROFILE_DEFAULT_SAMPLE_TYPE, add_string(pprof, pprof->period ? tick_event(account) : shown));
}

static void write_mapping(struct pprof *pprof, uint32_t id, const struct profile_mapping *mapping)
{
	size_t opened = protobuf_open(&pprof->message, PROFILE_MAPPING);

	protobuf_u64(&pprof->message, MAPPING_ID, id);
	protobuf_u64(&pprof->message, MAPPING_START, mapping->start_pc);
	protobuf_u64(&pprof->message, MAPPING_LIMIT, mapping->end_pc);
	protobuf_u64(&pprof->message, MAPPING_OFFSET, mapping->file_off);
	protobuf_u64(&pprof->message, MAPPING_FILENAME, mapping->path);
	protobuf_u64(&pprof->message, MAPPING_BUILD_ID, mapping->build_id);
	protobuf_u64(&pprof->message, MAPPING_HAS_FUNCTIONS, true); /* else pprof would look for symbols itself */
	protobuf_close(&pprof->message, opened);
}

/* The mapping of the outermost frame that is in no shared library: the program. PROFILE_NONE: none. */
static uint32_t program_of(const struct profile *profile, uint32_t stack)
{
	const uint32_t *locations;
	uint32_t nr = 0, mapping;

	if (stack == PROFILE_NONE)
		return PROFILE_NONE;
	locations = profile_stack_at(profile, stack, &nr);
	while (nr-- > 0) {
		mapping = profile_location_at(profile, locations[nr])->mapping;
		if (mapping != PROFILE_NONE &&
		    !strstr(path_base(profile_string_text(profile, profile_mapping_at(profile, mapping)->path)), ".so"))
			return mapping;
	}
	return PROFILE_NONE;
}

/* Stores the mapping of the program with most samples; PROFILE_NONE: there is none. 0 or -ENOMEM. */
static int main_program(const struct profile *profile, uint32_t *ret_mapping)
{
	CLEANUP(freep) uint64_t *counts = calloc((size_t)profile_nr_mappings(profile) + 1, sizeof(*counts));
	uint32_t most = PROFILE_NONE, value = profile_shown_value(profile);

	if (!counts)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);
		uint32_t program = program_of(profile, sample->user_stack);

		if (program == PROFILE_NONE)
			continue;
		counts[program] += (uint64_t)llabs(sample->values[value]);
		if (most == PROFILE_NONE || counts[program] > counts[most])
			most = program;
	}
	*ret_mapping = most;
	return 0;
}

/* pprof's reports name the first mapping as the profiled program. */
static int write_mappings(struct pprof *pprof)
{
	struct profile_mapping kernel = { .start_pc = PROFILE_KERNEL_KADDR, .end_pc = UINT64_MAX };
	uint32_t nr_mappings = profile_nr_mappings(pprof->profile), first;
	int err = main_program(pprof->profile, &first);

	if (err)
		return err;
	kernel.path = add_string(pprof, KERNEL_NAME);
	if (first != PROFILE_NONE)
		write_mapping(pprof, first + 1, profile_mapping_at(pprof->profile, first));
	for (uint32_t i = 0; i < nr_mappings; i++) {
		if (i != first)
			write_mapping(pprof, i + 1, profile_mapping_at(pprof->profile, i));
	}
	write_mapping(pprof, nr_mappings + 1, &kernel);
	return 0;
}

/* 0: none. An address outside its mapping would make pprof's arithmetic wrap. Kernel frames always have the mapping, even without an
 * address, so that pprof shows them as the kernel's. */
static uint32_t mapping_id(const struct profile *profile, const struct profile_location *location)
{
	const struct profile_mapping *mapping;

	if (location->kind == FRAME_KERNEL)
		return profile_nr_mappings(profile) + 1;
	if (location->mapping == PROFILE_NONE)
		return 0;
	mapping = profile_mapping_at(profile, location->mapping);
	return location->pc >= mapping->start_pc && location->pc < mapping->end_pc ? location->mapping + 1 : 0;
}

static void write_lines(struct pprof *pprof, uint32_t chain)
{
	if (profile_location_at(pprof->profile, inlines_location(&pprof->inlines, chain))->is_nameless)
		return;
	for (; chain != PROFILE_NONE; chain = inlines_outer(&pprof->inlines, chain)) {
		const struct profile_location *location = profile_location_at(pprof->profile, inlines_location(&pprof->inlines, chain));
		size_t line = protobuf_open(&pprof->message, LOCATION_LINE);

		protobuf_u64(&pprof->message, LINE_FUNCTION_ID, (uint64_t)location->function + 1);
		protobuf_u64(&pprof->message, LINE_LINE, location->line);
		protobuf_close(&pprof->message, line);
	}
}

static void write_locations(struct pprof *pprof)
{
	for (uint32_t i = 0; i < inlines_nr_chains(&pprof->inlines); i++) {
		const struct profile_location *location = profile_location_at(pprof->profile, inlines_location(&pprof->inlines, i));
		size_t opened;

		if (!pprof->inlines.ids[i])
			continue;
		opened = protobuf_open(&pprof->message, PROFILE_LOCATION);
		protobuf_u64(&pprof->message, LOCATION_ID, pprof->inlines.ids[i]);
		protobuf_u64(&pprof->message, LOCATION_MAPPING_ID, mapping_id(pprof->profile, location));
		protobuf_u64(&pprof->message, LOCATION_ADDRESS, location->pc);
		write_lines(pprof, i);
		protobuf_close(&pprof->message, opened);
	}
}

static void write_functions(struct pprof *pprof)
{
	for (uint32_t i = 0; i < profile_nr_functions(pprof->profile); i++) {
		const struct profile_function *function = profile_function_at(pprof->profile, i);
		size_t opened = protobuf_open(&pprof->message, PROFILE_FUNCTION);

		protobuf_u64(&pprof->message, FUNCTION_ID, i + 1);
		protobuf_u64(&pprof->message, FUNCTION_NAME, function->name);
		protobuf_u64(&pprof->message, FUNCTION_SYSTEM_NAME, function->system_name);
		protobuf_u64(&pprof->message, FUNCTION_FILENAME, function->file);
		protobuf_u64(&pprof->message, FUNCTION_START_LINE, function->line);
		protobuf_close(&pprof->message, opened);
	}
}

static void write_text_label(struct buffer *message, uint32_t key, uint32_t string)
{
	size_t opened = protobuf_open(message, SAMPLE_LABEL);

	protobuf_u64(message, LABEL_KEY, key);
	protobuf_u64(message, LABEL_STR, string);
	protobuf_close(message, opened);
}

/* google/pprof ignores a number label that is 0 and has no unit. Without a unit it assumes the key as the unit, so that is written. */
static void write_number_label(struct buffer *message, uint32_t key, uint64_t number, uint32_t unit)
{
	size_t opened = protobuf_open(message, SAMPLE_LABEL);

	protobuf_u64(message, LABEL_KEY, key);
	protobuf_u64(message, LABEL_NUM, number);
	protobuf_u64(message, LABEL_NUM_UNIT, unit);
	protobuf_close(message, opened);
}

static void write_location_ids(struct pprof *pprof, uint32_t stack)
{
	uint32_t nr;
	const uint32_t *chains = inlines_of_stack(&pprof->inlines, pprof->profile, stack, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		if (inlines_begins(&pprof->inlines, chains, i))
			protobuf_varint(&pprof->message, pprof->inlines.ids[chains[i]]);
	}
}

static void write_labels(struct pprof *pprof, uint32_t number)
{
	uint32_t nr_labels;
	const struct profile_label *labels = profile_labels_at(pprof->profile, number, &nr_labels);

	for (uint32_t i = 0; i < nr_labels; i++) {
		if (labels[i].is_number)
			write_number_label(&pprof->message, labels[i].key, (uint64_t)labels[i].number, labels[i].unit);
		else
			write_text_label(&pprof->message, labels[i].key, labels[i].text);
	}
}

static void write_sample(struct pprof *pprof, const struct profile_sample *sample)
{
	size_t opened = protobuf_open(&pprof->message, PROFILE_SAMPLE), packed = protobuf_open(&pprof->message, SAMPLE_LOCATION_ID);

	write_location_ids(pprof, sample->kernel_stack);
	write_location_ids(pprof, sample->user_stack);
	protobuf_close(&pprof->message, packed);
	packed = protobuf_open(&pprof->message, SAMPLE_VALUE);
	for (uint32_t i = 0; i < pprof->nr_values; i++)
		protobuf_varint(&pprof->message, (uint64_t)sample->values[i]);
	if (pprof->period)
		protobuf_varint(&pprof->message, (uint64_t)tick_value(sample->values[0], pprof->period));
	protobuf_close(&pprof->message, packed);
	write_text_label(&pprof->message, pprof->comm_key, sample->comm);
	write_number_label(&pprof->message, pprof->pid_key, sample->tgid, pprof->pid_key);
	write_number_label(&pprof->message, pprof->tid_key, sample->tid, pprof->tid_key);
	if (sample->cpu != PROFILE_NONE)
		write_number_label(&pprof->message, pprof->cpu_key, sample->cpu, pprof->cpu_key);
	if (sample->time_ns)
		write_number_label(&pprof->message, pprof->time_key, sample->time_ns, pprof->time_unit);
	write_labels(pprof, sample->labels);
	protobuf_close(&pprof->message, opened);
}

static void write_samples(struct pprof *pprof)
{
	pprof->comm_key = add_string(pprof, "comm");
	pprof->pid_key = add_string(pprof, "pid");
	pprof->tid_key = add_string(pprof, "tid");
	pprof->cpu_key = add_string(pprof, "cpu");
	pprof->time_key = add_string(pprof, "end_timestamp_ns"); /* libdatadog's name; the format has no field for it */
	pprof->time_unit = add_string(pprof, "nanoseconds");
	profile_sum_types(pprof->profile, &pprof->nr_values);
	for (uint32_t i = 0; i < profile_nr_samples(pprof->profile); i++)
		write_sample(pprof, profile_sample_at(pprof->profile, i));
}

/* Writes the account, one comment per line. */
static int write_comments(struct pprof *pprof)
{
	const struct account *account = profile_account_of(pprof->profile);
	CLEANUP(buffer_done) struct buffer lines = BUFFER_INIT(pprof->message.max);
	char *line, *end;

	buffer_text(&lines, "sonde ");
	plain_text(&lines, account_command(account), ';');
	buffer_text(&lines, "\nhost: ");
	plain_text(&lines, account->host, ';');
	buffer_text(&lines, ", Linux ");
	plain_text(&lines, account->kernel, ';');
	buffer_text(&lines, "\n");
	account_text(account, 0, &lines);
	if (lines.err)
		return lines.err;
	for (line = lines.data; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		protobuf_u64(&pprof->message, PROFILE_COMMENT, add_string(pprof, line));
	}
	return 0;
}

static void pprof_done(struct pprof *pprof)
{
	buffer_done(&pprof->message);
	buffer_done(&pprof->scratch);
	inlines_done(&pprof->inlines);
}

int write_pprof(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	const struct account *account = profile_account_of(profile);
	CLEANUP(pprof_done) struct pprof pprof = {
		.message = BUFFER_INIT(buffer->max),
		.scratch = BUFFER_INIT(buffer->max),
		.profile = profile,
		.period = tick_period(profile),
	};
	int err = inlines_find(profile, &pprof.inlines);

	if (err)
		return err;
	for (uint32_t i = 0; i < profile_nr_strings(profile); i++)
		add_string(&pprof, profile_string_text(profile, i));
	write_types(&pprof);
	write_samples(&pprof);
	err = write_mappings(&pprof);
	if (err)
		return err;
	write_locations(&pprof);
	write_functions(&pprof);
	protobuf_u64(&pprof.message, PROFILE_TIME_NANOS, account->start_unix_ns);
	protobuf_u64(&pprof.message, PROFILE_DURATION_NANOS, account->duration_ns);
	err = write_comments(&pprof);
	if (!err)
		err = pprof.message.err ? pprof.message.err : pprof.scratch.err;
	return err ? err : gzip(pprof.message.data, pprof.message.size, GZIP_FAST, buffer);
}
