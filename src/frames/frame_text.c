// SPDX-License-Identifier: Apache-2.0
#include "frames/frame_text.h"

#include <inttypes.h>

#include "frames/frame_source.h"

uint64_t frame_offset(const struct profile *profile, const struct profile_location *location)
{
	const char *name = profile_string_text(profile, profile_function_at(profile, location->function)->name);

	if (frame_is_interpreted(location->kind))
		return location->line;
	if (location->function_off || *name != '[')
		return location->function_off;
	return location->elf_vaddr ? location->elf_vaddr : location->pc;
}

void frame_text(struct buffer *buffer, const struct profile *profile, uint32_t location, const struct export_options *options,
		char semicolon)
{
	const struct profile_location *at = profile_location_at(profile, location);
	const char *name = profile_string_text(profile, profile_function_at(profile, at->function)->name);
	const char *source = frame_source(profile, at);
	bool code = at->kind == FRAME_NATIVE || at->kind == FRAME_KERNEL;

	plain_text(buffer, *name ? name : "[unknown]", semicolon);
	if (code && options->offsets)
		buffer_printf(buffer, "+0x%" PRIx64, frame_offset(profile, at));
	if (*source) {
		buffer_text(buffer, " (");
		plain_text(buffer, source, semicolon);
		if (options->offsets && at->line)
			buffer_printf(buffer, ":%" PRIu32, at->line);
		buffer_text(buffer, ")");
	}
	if (options->annotate && at->kind == FRAME_KERNEL)
		buffer_text(buffer, "_[k]");
}

void frame_text_stack(struct buffer *buffer, const struct profile *profile, uint32_t stack, bool offsets, const char *indent)
{
	const struct export_options options = { .offsets = offsets };
	const uint32_t *locations;
	uint32_t nr = 0;

	if (stack == PROFILE_NONE)
		return;
	locations = profile_stack_at(profile, stack, &nr);
	for (uint32_t i = 0; i < nr; i++) {
		buffer_text(buffer, indent);
		frame_text(buffer, profile, locations[i], &options, ';');
		buffer_text(buffer, "\n");
	}
}
