// SPDX-License-Identifier: Apache-2.0
#include "formats/frame_json.h"

static void key_text_if(struct json *json, const char *key, const char *text)
{
	if (*text)
		json_key_text(json, key, text);
}

void write_nameless(struct json *json, const struct profile_location *location)
{
	if (!location->is_nameless)
		return;
	json_key(json, "nameless");
	json_bool(json, true);
}

void write_frame_keys(struct json *json, const struct profile *profile, uint32_t number)
{
	const struct profile_location *location = profile_location_at(profile, number);
	const struct profile_function *function = profile_function_at(profile, location->function);

	json_key_text(json, "name", profile_string_text(profile, function->name));
	json_key_text(json, "kind", frame_kind_name(location->kind));
	if (function->system_name != function->name)
		key_text_if(json, "system_name", profile_string_text(profile, function->system_name));
	key_text_if(json, "file", profile_string_text(profile, function->file));
	if (location->line)
		json_key_u64(json, "line", location->line);
	if (location->is_inlined) {
		json_key(json, "inlined");
		json_bool(json, true);
	}
	write_nameless(json, location);
	if (location->pc)
		json_key_hex(json, "pc", location->pc);
	if (location->mapping != PROFILE_NONE) {
		const struct profile_mapping *mapping = profile_mapping_at(profile, location->mapping);

		json_key_hex(json, "address", location->elf_vaddr);
		key_text_if(json, "path", profile_string_text(profile, mapping->path));
		key_text_if(json, "build_id", profile_string_text(profile, mapping->build_id));
	}
}
