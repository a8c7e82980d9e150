// SPDX-License-Identifier: Apache-2.0
#include "importer/reading.h"

#include <errno.h>
#include <string.h>

#define NO_NAME "[no name]" /* as sonde's writers call threads without one */

void reading_done(struct reading *in)
{
	buffer_done(&in->key);
	buffer_done(&in->text);
}

int reading_verdict(const struct reading *in, const char *format)
{
	int err = in->text.err ? in->text.err : in->key.err;

	if (err == -EFBIG)
		return diag_errno(in->importer->diag, EFBIG, "a text in it is longer than %zu bytes", READING_TEXT_BYTES);
	return !err && in->r.bad ? import_bad(in->importer, format, in->r.pos, in->r.bad) : err;
}

uint32_t reading_string(struct reading *in)
{
	uint32_t string;

	if (json_take_null(&in->r))
		return PROFILE_EMPTY_STRING;
	json_read_text(&in->r, &in->text);
	if (in->r.bad || in->text.err)
		return PROFILE_EMPTY_STRING;
	string = import_string(in->importer, in->text.data, in->text.size);
	if (string != PROFILE_NONE)
		return string;
	in->text.err = -ENOMEM;
	return PROFILE_EMPTY_STRING;
}

uint32_t reading_line(struct reading *in)
{
	int64_t line = json_take_null(&in->r) ? 0 : json_read_decimal(&in->r, 0);

	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

int reading_set_types(struct importer *importer, const struct value_text *kinds, uint32_t nr)
{
	struct profile_value_type types[PROFILE_MAX_VALUES] = { 0 };

	for (uint32_t i = 0; i < nr; i++) {
		types[i].type = profile_string(importer->profile, kinds[i].type);
		types[i].unit = profile_string(importer->profile, kinds[i].unit);
		if (types[i].type == PROFILE_NONE || types[i].unit == PROFILE_NONE)
			return -ENOMEM;
	}
	profile_set_value_types(importer->profile, types, nr, 0);
	return 0;
}

static uint32_t mapping_of(struct profile *profile, uint32_t path)
{
	return path == PROFILE_EMPTY_STRING ? PROFILE_NONE : profile_mapping(profile, &(struct profile_mapping){ .path = path });
}

uint32_t reading_location(struct importer *importer, const struct frame_text *frame)
{
	struct profile *profile = importer->profile;
	struct profile_function function = {
		.name = frame->name, .system_name = frame->name, .file = frame->file, .line = frame->first_line
	};
	struct profile_location location = { .mapping = mapping_of(profile, frame->path), .kind = frame->kind, .line = frame->line };
	const char *file = profile_string_text(profile, frame->file);

	if (location.kind == FRAME_NATIVE)
		location.kind = import_kind_of_file(file, strlen(file));
	location.function = profile_function(profile, &function);
	if (location.function == PROFILE_NONE || (frame->path != PROFILE_EMPTY_STRING && location.mapping == PROFILE_NONE))
		return PROFILE_NONE;
	import_kind_by_name(importer, &location);
	return profile_location(profile, &location);
}

/* Takes " (12/34)" or " (12)" off the end. */
static void take_ids(const char *text, size_t *size, struct profile_sample *sample)
{
	uint32_t ids[2] = { 0 };
	size_t at = *size;
	int nr = 0;

	if (!at || text[--at] != ')')
		return;
	for (bool more = true; more && nr < 2; nr++) {
		if (!import_id_before(text, &at, &ids[nr]) || !at)
			return;
		more = text[at - 1] == '/';
		at -= more;
	}
	if (at < 2 || text[at - 1] != '(' || text[at - 2] != ' ')
		return;
	*size = at - 2;
	sample->tid = ids[0];
	sample->tgid = nr == 2 ? ids[1] : ids[0];
}

int reading_thread(struct importer *importer, const char *text, size_t size, struct profile_sample *sample)
{
	take_ids(text, &size, sample);
	if (size == strlen(NO_NAME) && !memcmp(text, NO_NAME, size))
		size = 0;
	sample->comm = import_string(importer, text, size);
	return sample->comm == PROFILE_NONE ? -ENOMEM : 0;
}
