// SPDX-License-Identifier: Apache-2.0
#include "export/frame_source.h"

#include <string.h>

#include "base/u64_map.h"

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

uint32_t frame_path(const struct profile *profile, const struct profile_location *location)
{
	if (frame_is_interpreted(location->kind))
		return profile_function_at(profile, location->function)->file;
	return location->mapping == PROFILE_NONE ? PROFILE_EMPTY_STRING : profile_mapping_at(profile, location->mapping)->path;
}

uint32_t frame_start_line(const struct profile *profile, const struct profile_location *location)
{
	return frame_is_interpreted(location->kind) ? profile_function_at(profile, location->function)->line : 0;
}

static const char *base_of(const struct profile *profile, uint32_t function)
{
	return path_base(profile_string_text(profile, profile_function_at(profile, function)->file));
}

const char *frame_source(const struct profile *profile, const struct profile_location *location)
{
	return frame_is_interpreted(location->kind) ? base_of(profile, location->function) : "";
}

uint32_t *frame_sources(const struct profile *profile)
{
	CLEANUP(u64_map_done) struct u64_map index = { 0 };
	uint32_t nr_functions = profile_nr_functions(profile);
	CLEANUP(freep) uint32_t *sources = calloc((size_t)nr_functions + 1, sizeof(*sources));

	for (uint32_t i = 0; sources && i < nr_functions; i++) {
		const char *base = base_of(profile, i);
		uint64_t hash = hash_bytes(base, strlen(base), 0);
		uint32_t cursor = 0, *found;

		while ((found = u64_map_each(&index, hash, &cursor)) && strcmp(base_of(profile, *found), base) != 0)
			;
		sources[i] = found ? *found : i;
		if (!found && u64_map_add(&index, hash, i))
			return NULL;
	}
	return MOVE(sources);
}
