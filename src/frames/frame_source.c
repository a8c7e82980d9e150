// SPDX-License-Identifier: Apache-2.0
#include "frames/frame_source.h"

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

/* Finds the first function whose file has the same base name, plus one. 0 or -ENOMEM. */
static int find_source(const struct profile *profile, struct u64_map *index, uint32_t function, uint32_t *ret_source)
{
	const char *base = base_of(profile, function);
	uint64_t hash = hash_bytes(base, strlen(base), 0);
	uint32_t cursor = 0, *found;

	while ((found = u64_map_each(index, hash, &cursor)) && strcmp(base_of(profile, *found), base) != 0)
		;
	*ret_source = (found ? *found : function) + 1;
	return found ? 0 : u64_map_add(index, hash, function);
}

uint32_t *frame_sources(const struct profile *profile)
{
	CLEANUP(u64_map_done) struct u64_map index = { 0 };
	uint32_t nr_functions = profile_nr_functions(profile);
	CLEANUP(freep) uint32_t *sources = calloc((size_t)nr_functions + 1, sizeof(*sources));
	/* by string: the same, plus one */
	CLEANUP(freep) uint32_t *of_file = calloc((size_t)profile_nr_strings(profile), sizeof(*of_file));

	for (uint32_t i = 0; sources && of_file && i < nr_functions; i++) {
		uint32_t *source = &of_file[profile_function_at(profile, i)->file];

		if (!*source && find_source(profile, &index, i, source))
			return NULL;
		sources[i] = *source - 1;
	}
	return of_file ? MOVE(sources) : NULL;
}
