// SPDX-License-Identifier: Apache-2.0
#include "formats/label_json.h"

void write_label(struct json *json, const struct profile *profile, const struct profile_label *label)
{
	json_open(json, '[');
	json_text(json, profile_string_text(profile, label->key));
	if (label->is_number)
		json_i64(json, label->number);
	json_text(json, profile_string_text(profile, label->is_number ? label->unit : label->text));
	json_close(json, ']');
}
