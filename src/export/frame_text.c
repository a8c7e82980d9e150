// SPDX-License-Identifier: Apache-2.0
#include "export/frame_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

void plain_text(struct buffer *buffer, const char *text, char semicolon)
{
	const char *end = text + strlen(text);

	while (text < end) {
		const char *from = text;
		char bytes[UTF8_MAX_BYTES];
		uint32_t code;

		while (text < end && *text >= ' ' && *text < 0x7f && *text != ';')
			text++;
		buffer_append(buffer, from, (size_t)(text - from));
		if (text == end)
			return;
		code = utf8_next(&text, end);
		if (code == ';')
			code = (uint8_t)semicolon;
		else if (!utf8_is_plain(code))
			code = '?';
		buffer_append(buffer, bytes, utf8_encode(code, bytes));
	}
}

uint64_t frame_offset(const struct profile *profile, const struct profile_location *location)
{
	const char *name = profile_string_text(profile, profile_function_at(profile, location->function)->name);

	if (location->function_off || *name != '[')
		return location->function_off;
	return location->elf_vaddr ? location->elf_vaddr : location->pc;
}

void frame_text(struct buffer *buffer, const struct profile *profile, uint32_t location, const struct export_options *options,
		char semicolon)
{
	const struct profile_location *at = profile_location_at(profile, location);
	const char *name = profile_string_text(profile, profile_function_at(profile, at->function)->name);
	bool code = at->kind == FRAME_NATIVE || at->kind == FRAME_KERNEL;

	plain_text(buffer, *name ? name : "[unknown]", semicolon);
	if (code && options->offsets)
		buffer_printf(buffer, "+0x%" PRIx64, frame_offset(profile, at));
	if (options->annotate && at->kind == FRAME_KERNEL)
		buffer_text(buffer, "_[k]");
}
