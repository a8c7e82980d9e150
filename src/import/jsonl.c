// SPDX-License-Identifier: Apache-2.0
/* Reads sonde's lines of JSON (formats/jsonl.c): an account, then a sample with its whole stack in each line. The lines of histograms are
 * counted, not read. */
#include <errno.h>
#include <string.h>

#include "importer/json_account.h"
#include "import/readers.h"
#include "importer/reading.h"

#define FORMAT	      "sonde lines"
#define JSONL_VERSION 1

struct lines {
	struct reading in;
	struct profile_value_type types[PROFILE_MAX_VALUES];
	uint32_t nr_types; /* 0: no sample was read yet */
};

static void lines_done(struct lines *lines)
{
	reading_done(&lines->in);
}

static enum frame_kind read_kind(struct reading *in)
{
	enum frame_kind kind;

	json_read_text(&in->r, &in->text);
	if (reading_failed(in))
		return FRAME_NATIVE;
	kind = frame_kind_by_name(in->text.data);
	if (kind == FRAME_KIND_COUNT)
		json_fail(&in->r, "there is no such kind of frame");
	return kind;
}

static int push_frame(struct reading *in)
{
	struct profile *profile = in->importer->profile;
	struct profile_location location = { .mapping = PROFILE_NONE };
	struct profile_function function = { 0 };
	struct profile_mapping mapping = { 0 };

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "name"))
			function.name = reading_string(in);
		else if (reading_is_key(in, "system_name"))
			function.system_name = reading_string(in);
		else if (reading_is_key(in, "kind"))
			location.kind = read_kind(in);
		else if (reading_is_key(in, "file"))
			function.file = reading_string(in);
		else if (reading_is_key(in, "line"))
			location.line = reading_line(in);
		else if (reading_is_key(in, "inlined"))
			location.is_inlined = json_read_bool(&in->r);
		else if (reading_is_key(in, "nameless"))
			location.is_nameless = json_read_bool(&in->r);
		else if (reading_is_key(in, "pc"))
			location.pc = json_read_u64(&in->r);
		else if (reading_is_key(in, "address"))
			location.elf_vaddr = json_read_u64(&in->r);
		else if (reading_is_key(in, "path"))
			mapping.path = reading_string(in);
		else if (reading_is_key(in, "build_id"))
			mapping.build_id = reading_string(in);
		else
			json_skip(&in->r);
	}
	if (reading_failed(in))
		return 0;
	if (function.system_name == PROFILE_EMPTY_STRING)
		function.system_name = function.name;
	location.function = profile_function(profile, &function);
	if (mapping.path != PROFILE_EMPTY_STRING)
		location.mapping = profile_mapping(profile, &mapping);
	if (location.function == PROFILE_NONE || (mapping.path != PROFILE_EMPTY_STRING && location.mapping == PROFILE_NONE))
		return -ENOMEM;
	return import_push(in->importer, profile_location(profile, &location));
}

static int read_stack(struct reading *in)
{
	int err = 0;

	for (json_enter(&in->r, '['); !err && !reading_failed(in) && json_next(&in->r);)
		err = push_frame(in);
	return err;
}

static void read_value(struct lines *lines, struct profile_value_type *type, int64_t *value)
{
	struct reading *in = &lines->in;

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "type")) {
			type->type = reading_string(in);
		} else if (reading_is_key(in, "unit")) {
			type->unit = reading_string(in);
		} else if (reading_is_key(in, "value")) {
			*value = json_read_i64(&in->r);
		} else if (reading_is_key(in, "fold")) {
			json_read_text(&in->r, &in->text);
			while (!reading_failed(in) && type->fold < VALUE_FOLD_COUNT &&
			       strcmp(in->text.data, value_fold_name((enum value_fold)type->fold)) != 0)
				type->fold++;
		} else {
			json_skip(&in->r);
		}
	}
	if (type->fold >= VALUE_FOLD_COUNT)
		json_fail(&in->r, "values fold by sum, min or max");
}

/* The file does not say which value is shown: it is the first in the event's unit. */
static uint32_t shown_of(const struct lines *lines)
{
	const struct profile *profile = lines->in.importer->profile;

	for (uint32_t i = 0; i < lines->nr_types; i++) {
		if (!strcmp(profile_string_text(profile, lines->types[i].unit), profile_account_of(profile)->event_unit))
			return i;
	}
	return 0;
}

/* All lines have the kinds of values of the first one. */
static void read_values(struct lines *lines, struct profile_sample *sample)
{
	struct profile_value_type types[PROFILE_MAX_VALUES] = { 0 };
	struct json_reader *r = &lines->in.r;
	uint32_t nr = 0;

	for (json_enter(r, '['); json_next(r); nr++) {
		if (nr == PROFILE_MAX_VALUES) {
			json_fail(r, PROFILE_TOO_MANY_VALUES);
			return;
		}
		read_value(lines, &types[nr], &sample->values[nr]);
		if (nr && types[nr].fold == VALUE_SUM && types[nr - 1].fold != VALUE_SUM)
			json_fail(r, "kinds of values that are sums stand before those that are not");
	}
	if (reading_failed(&lines->in) || !nr)
		return;
	if (!lines->nr_types) {
		memcpy(lines->types, types, sizeof(types));
		lines->nr_types = nr;
		profile_set_value_types(lines->in.importer->profile, types, nr, shown_of(lines));
	} else if (nr != lines->nr_types || memcmp(types, lines->types, sizeof(types)) != 0) {
		json_fail(r, "its values are of other kinds than those of the first sample");
	}
}

static void read_label(struct reading *in, struct profile_sample *sample)
{
	struct profile_label label = { 0 };

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "key")) {
			label.key = reading_string(in);
		} else if (reading_is_key(in, "text")) {
			label.text = reading_string(in);
		} else if (reading_is_key(in, "unit")) {
			label.unit = reading_string(in);
		} else if (reading_is_key(in, "number")) {
			label.number = json_read_i64(&in->r);
			label.is_number = 1;
		} else {
			json_skip(&in->r);
		}
	}
	if (!reading_failed(in))
		import_label(in->importer, sample, &label);
}

static int read_sample(struct lines *lines)
{
	struct reading *in = &lines->in;
	struct profile_sample sample = import_blank();
	int err = 0;

	import_begin(in->importer);
	while (!err && !reading_failed(in) && json_next_key(&in->r, &in->key)) {
		if (reading_is_key(in, "comm"))
			sample.comm = reading_string(in);
		else if (reading_is_key(in, "pid"))
			sample.tgid = reading_line(in);
		else if (reading_is_key(in, "tid"))
			sample.tid = reading_line(in);
		else if (reading_is_key(in, "cpu"))
			sample.cpu = reading_line(in);
		else if (reading_is_key(in, "time_unix_ns"))
			sample.time_ns = json_read_u64(&in->r);
		else if (reading_is_key(in, "values"))
			read_values(lines, &sample);
		else if (reading_is_key(in, "stack"))
			err = read_stack(in);
		else if (reading_is_key(in, "labels"))
			for (json_enter(&in->r, '['); json_next(&in->r);)
				read_label(in, &sample);
		else
			json_skip(&in->r);
	}
	return err || reading_failed(in) ? err : import_end(in->importer, &sample);
}

static void read_head(struct lines *lines)
{
	struct reading *in = &lines->in;

	while (json_next_key(&in->r, &in->key)) {
		if (reading_is_key(in, "version") && json_read_u64(&in->r) != JSONL_VERSION)
			json_fail(&in->r, "its version is another one than this sonde's");
		else if (reading_is_key(in, "account"))
			json_account(&in->r, &in->key, &in->text, profile_account(in->importer->profile));
		else if (!reading_is_key(in, "version"))
			json_skip(&in->r);
	}
}

/* A line's first key is `record`. */
static int read_line(struct lines *lines)
{
	struct reading *in = &lines->in;

	if (!json_enter(&in->r, '{') || !json_next_key(&in->r, &in->key) || !reading_is_key(in, "record")) {
		json_fail(&in->r, "a line does not begin with `record`");
		return 0;
	}
	json_read_text(&in->r, &in->text);
	if (reading_failed(in))
		return 0;
	if (!strcmp(in->text.data, "sample"))
		return read_sample(lines);
	if (!strcmp(in->text.data, "account")) {
		read_head(lines);
		return 0;
	}
	while (json_next_key(&in->r, &in->key))
		json_skip(&in->r);
	import_count(in->importer, IMPORT_LOSS_HISTOGRAMS, 1);
	return 0;
}

int read_jsonl(struct importer *importer)
{
	CLEANUP(lines_done) struct lines lines = { .in = READING_OF(importer) };
	const char *pos = importer->bytes, *end = pos + importer->size;
	int err = 0;

	while (!err && pos < end) {
		const char *newline = memchr(pos, '\n', (size_t)(end - pos)), *last = newline ? newline : end;

		lines.in.r = json_reader_of(pos, (size_t)(last - pos));
		if (pos < last)
			err = read_line(&lines);
		if (!err && pos < last)
			json_end(&lines.in.r);
		if (!err)
			err = reading_verdict(&lines.in, FORMAT);
		pos = newline ? newline + 1 : end;
	}
	return err;
}
