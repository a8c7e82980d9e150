// SPDX-License-Identifier: Apache-2.0
#include "importer/json_label.h"

#include <errno.h>

static uint32_t read_string(struct importer *importer, struct json_reader *r, struct buffer *text)
{
	uint32_t string;

	json_read_text(r, text);
	if (r->bad || text->err)
		return PROFILE_EMPTY_STRING;
	string = import_string(importer, text->data, text->size);
	if (string == PROFILE_NONE)
		text->err = -ENOMEM;
	return string;
}

/* In the longer form a number beyond 2^53 - 1 is written as text. */
bool json_label(struct importer *importer, struct json_reader *r, struct buffer *text, struct profile_label *ret_label)
{
	struct profile_label label = { 0 };
	struct json_reader value = *r;
	uint32_t nr = 0;

	for (json_enter(r, '['); json_next(r); nr++) {
		value = nr == 1 ? *r : value;
		if (nr == 0)
			label.key = read_string(importer, r, text);
		else if (nr == 1 && json_peek(r) == '"')
			label.text = read_string(importer, r, text);
		else if (nr == 1)
			label.number = json_read_i64(r);
		else if (nr == 2)
			label.unit = read_string(importer, r, text);
		else
			json_fail(r, "a label has up to three parts");
	}
	if (nr == 3) {
		label.text = PROFILE_EMPTY_STRING;
		label.number = json_read_i64(&value);
		label.is_number = 1;
	}
	if (nr < 2 || value.bad)
		json_fail(r, "a label is a key and a text, or a key, a number and a unit");
	if (r->bad || text->err)
		return false;
	*ret_label = label;
	return true;
}
