// SPDX-License-Identifier: Apache-2.0
#include "import/pprof.h"
#include "import/readers.h"

#include <errno.h>
#include <string.h>

#define MAX_COMMENTS (ACCOUNT_MAX_NOTES - 4)

int pprof_bad(struct pprof_reader *reader, const void *at, const char *why)
{
	return import_bad(reader->importer, "pprof", at, why);
}

int pprof_string(struct pprof_reader *reader, const struct protobuf_field *field, uint32_t *ret_string)
{
	if (field->type != PROTOBUF_VARINT || field->value >= reader->nr_strings)
		return diag_errno(reader->importer->diag, EBADMSG, "bad pprof: it names text %llu of %u", (unsigned long long)field->value,
				  reader->nr_strings);
	*ret_string = reader->strings[field->value];
	return 0;
}

/* Counts the fields of each number and finds where they are. */
static int find_fields(struct pprof_reader *reader)
{
	struct reader message = reader_of(reader->importer->bytes, reader->importer->size);
	const uint8_t *at = message.pos;
	struct protobuf_field field;

	for (; protobuf_next(&message, &field); at = message.pos) {
		if (field.number >= PPROF_NR_FIELDS)
			continue;
		if (!reader->nr_fields[field.number]++)
			reader->first[field.number] = at;
		reader->behind[field.number] = message.pos;
	}
	return message.bad ? pprof_bad(reader, at, "no whole field stands there: it is cut off or damaged") : 0;
}

/* Calls `take` for the fields of this number, within their part of the file. */
static int each_field(struct pprof_reader *reader, uint32_t number,
		      int (*take)(struct pprof_reader *reader, const struct protobuf_field *field))
{
	struct reader message = { .pos = reader->first[number], .end = reader->behind[number] };
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == number)
			err = take(reader, &field);
	}
	return err;
}

static int take_text(struct pprof_reader *reader, const struct protobuf_field *field)
{
	uint32_t string = import_string(reader->importer, field->bytes.pos, reader_left(&field->bytes));

	if (string == PROFILE_NONE)
		return -ENOMEM;
	reader->strings[reader->nr_strings++] = string;
	return 0;
}

static int read_value_type(struct pprof_reader *reader, struct reader message, struct profile_value_type *ret_type)
{
	struct profile_value_type type = { 0 };
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number <= 2)
			err = pprof_string(reader, &field, field.number == 1 ? &type.type : &type.unit);
	}
	if (message.bad)
		return pprof_bad(reader, message.end, "a kind of values is cut off");
	*ret_type = type;
	return err;
}

/* sonde's own comments are its account in words. The command line and the host are restored; other comments are kept as they are. */
static void note_comment(struct importer *importer, const char *text)
{
	struct account *account = profile_account(importer->profile);
	const char *comma;

	if (account->nr_notes == MAX_COMMENTS) { /* skipped unread: each byte of the file may refer to a long text */
		import_count(importer, IMPORT_LOSS_COMMENTS, 1);
	} else if (!strncmp(text, "sonde ", 6) && !*account->command_line) {
		snprintf(account->command_line, sizeof(account->command_line), "%s", text + 6);
	} else if (!strncmp(text, "host: ", 6) && !*account->kernel && (comma = strstr(text, ", Linux "))) {
		snprintf(account->host, sizeof(account->host), "%.*s", (int)(comma - text - 6), text + 6);
		snprintf(account->kernel, sizeof(account->kernel), "%s", comma + 8);
	} else {
		account_note(account, "%s", text + (strncmp(text, "warning: ", 9) ? 0 : 9));
	}
}

static int take_comment(struct pprof_reader *reader, const struct protobuf_field *packed)
{
	struct protobuf_field field = *packed, one = { .type = PROTOBUF_VARINT };
	uint32_t string = PROFILE_EMPTY_STRING;

	while (protobuf_next_varint(&field, &one.value)) {
		int err = pprof_string(reader, &one, &string);

		if (err)
			return err;
		note_comment(reader->importer, profile_string_text(reader->importer->profile, string));
	}
	return field.bytes.bad ? pprof_bad(reader, field.bytes.end, "a comment is cut off") : 0;
}

/* Takes what samples refer to, except locations, and what applies to the whole profile. */
static int take_named(struct pprof_reader *reader, const struct protobuf_field *field)
{
	struct account *account = profile_account(reader->importer->profile);

	switch (field->number) {
	case PPROF_MAPPING:
		return pprof_read_mapping(reader, field->bytes);
	case PPROF_FUNCTION:
		return pprof_read_function(reader, field->bytes);
	case PPROF_SAMPLE_TYPE:
		if (reader->nr_types == IMPORT_MAX_VALUES)
			return pprof_bad(reader, field->bytes.pos, "it has more kinds of values than 64");
		return read_value_type(reader, field->bytes, &reader->types[reader->nr_types++]);
	case PPROF_PERIOD_TYPE:
		return read_value_type(reader, field->bytes, &reader->period_type);
	case PPROF_COMMENT:
		return take_comment(reader, field);
	case PPROF_DROP_FRAMES:
	case PPROF_KEEP_FRAMES:
		import_count(reader->importer, IMPORT_LOSS_PATTERNS, field->value != 0);
		break;
	case PPROF_TIME_NANOS:
		account->start_unix_ns = field->value;
		break;
	case PPROF_DURATION_NANOS:
		account->duration_ns = field->value;
		break;
	case PPROF_PERIOD:
		reader->period = (int64_t)field->value;
		break;
	case PPROF_DEFAULT_SAMPLE_TYPE:
		return pprof_string(reader, field, &reader->default_type);
	}
	return 0;
}

static int take_location(struct pprof_reader *reader, const struct protobuf_field *field)
{
	return pprof_read_location(reader, field->bytes);
}

static int take_sample(struct pprof_reader *reader, const struct protobuf_field *field)
{
	return pprof_read_sample(reader, field->bytes);
}

static int make_room(struct pprof_reader *reader)
{
	const uint64_t *nr = reader->nr_fields;

	if (nr[PPROF_STRING_TABLE] >= UINT32_MAX || nr[PPROF_MAPPING] >= UINT32_MAX || nr[PPROF_LOCATION] >= UINT32_MAX)
		return diag_errno(reader->importer->diag, EFBIG, "it has more than 2^32 entries");
	reader->strings = calloc(nr[PPROF_STRING_TABLE] + 1, sizeof(*reader->strings));
	reader->mapping_list = calloc(nr[PPROF_MAPPING] + 1, sizeof(*reader->mapping_list));
	reader->location_list = calloc(nr[PPROF_LOCATION] + 1, sizeof(*reader->location_list));
	if (!reader->strings || !reader->mapping_list || !reader->location_list || id_table_init(&reader->mappings, nr[PPROF_MAPPING]) ||
	    id_table_init(&reader->functions, nr[PPROF_FUNCTION]) || id_table_init(&reader->locations, nr[PPROF_LOCATION]))
		return -ENOMEM;
	return 0;
}

/* Of more than four kinds of values, keeps the first ones and the one that is shown. */
static int choose_values(struct pprof_reader *reader)
{
	uint32_t shown = reader->nr_types ? reader->nr_types - 1 : 0, nr = reader->nr_types;
	struct profile_value_type types[PROFILE_MAX_VALUES];

	if (!nr)
		return diag_errno(reader->importer->diag, EBADMSG, "bad pprof: it does not name its values");
	for (uint32_t i = 0; i < reader->nr_types; i++) {
		if (reader->default_type != PROFILE_EMPTY_STRING && reader->types[i].type == reader->default_type)
			shown = i;
	}
	if (nr > PROFILE_MAX_VALUES) {
		import_count(reader->importer, IMPORT_LOSS_VALUES, nr - PROFILE_MAX_VALUES);
		nr = PROFILE_MAX_VALUES;
	}
	for (uint32_t i = 0; i < nr; i++)
		reader->kept[i] = i;
	if (shown >= nr)
		reader->kept[nr - 1] = shown;
	for (uint32_t i = 0; i < nr; i++)
		types[i] = reader->types[reader->kept[i]];
	reader->nr_kept = nr;
	profile_set_value_types(reader->importer->profile, types, nr, shown < nr ? shown : nr - 1);
	return 0;
}

static bool may_be_ticks(const struct pprof_reader *reader)
{
	const struct profile *profile = reader->importer->profile;
	const struct profile_value_type *types = reader->types;

	return reader->nr_types == 2 && reader->period > 0 && !strcmp(profile_string_text(profile, types[0].type), "samples") &&
	       !strcmp(profile_string_text(profile, types[0].unit), "count") && types[1].type == reader->period_type.type &&
	       types[1].unit == reader->period_type.unit;
}

static void read_period(struct pprof_reader *reader)
{
	struct profile *profile = reader->importer->profile;
	struct account *account = profile_account(profile);

	snprintf(account->event, sizeof(account->event), "%s", profile_string_text(profile, reader->period_type.type));
	snprintf(account->event_unit, sizeof(account->event_unit), "%s", profile_string_text(profile, reader->period_type.unit));
	account->period = reader->period > 0 ? (uint64_t)reader->period : 0;
	reader->is_ticks = may_be_ticks(reader);
}

/* If the second value is always the count times the period, drops it: the model has a single period instead. */
static void settle_ticks(struct pprof_reader *reader)
{
	struct profile *profile = reader->importer->profile;

	if (!reader->is_ticks)
		return;
	for (uint32_t i = 0; i < profile_nr_samples(profile); i++)
		profile_sample_values(profile, i)[1] = 0;
	profile_set_value_types(profile, reader->types, 1, 0);
}

/* Reads what is referred to before what refers to it; otherwise in order of field numbers. */
static int read_fields(struct pprof_reader *reader)
{
	int err = find_fields(reader);

	if (!err)
		err = make_room(reader);
	if (!err)
		err = each_field(reader, PPROF_STRING_TABLE, take_text);
	for (uint32_t number = 0; !err && number < PPROF_NR_FIELDS; number++) {
		if (number != PPROF_STRING_TABLE && number != PPROF_LOCATION && number != PPROF_SAMPLE)
			err = each_field(reader, number, take_named);
	}
	if (!err)
		err = choose_values(reader);
	if (!err)
		err = each_field(reader, PPROF_LOCATION, take_location);
	if (err)
		return err;
	read_period(reader);
	err = each_field(reader, PPROF_SAMPLE, take_sample);
	settle_ticks(reader);
	return err;
}

static void pprof_reader_done(struct pprof_reader *reader)
{
	free(reader->strings);
	free(reader->mapping_list);
	free(reader->location_list);
	free(reader->lines);
	free(reader->stacks);
	u64_map_done(&reader->stack_index);
	id_table_done(&reader->mappings);
	id_table_done(&reader->functions);
	id_table_done(&reader->locations);
}

int read_pprof(struct importer *importer)
{
	CLEANUP(pprof_reader_done) struct pprof_reader reader = { .importer = importer };

	return read_fields(&reader);
}
