// SPDX-License-Identifier: Apache-2.0
#include "frames/frame_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/interned.h"
#include "frames/frame_source.h"

/* `sources`: NULL unless frames are by name. */
static struct frame_entry entry_of(const struct profile *profile, uint32_t number, const uint32_t *sources)
{
	const struct profile_location *location = profile_location_at(profile, number);
	struct frame_entry entry = { .path = PROFILE_EMPTY_STRING, .function = PROFILE_NONE, .kind = location->kind };

	entry.name = profile_function_at(profile, location->function)->name;
	if (sources) {
		if (frame_is_interpreted(location->kind))
			entry.function = sources[location->function];
		return entry;
	}
	entry.function = location->function;
	entry.path = frame_path(profile, location);
	return entry;
}

int frame_list_find(const struct profile *profile, bool by_name, struct frame_list *ret_list)
{
	CLEANUP(frame_list_done) struct frame_list list = { 0 };
	CLEANUP(interned_done) struct interned entries = INTERNED_INIT(struct frame_entry, sizeof(struct frame_entry), UINT64_MAX);
	CLEANUP(freep) uint32_t *sources = by_name ? frame_sources(profile) : NULL;
	uint32_t nr_locations = profile_nr_locations(profile);

	list.of_location = calloc((size_t)nr_locations + 1, sizeof(*list.of_location));
	if (!list.of_location || (by_name && !sources))
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_locations; i++) {
		struct frame_entry entry = entry_of(profile, i, sources);

		list.of_location[i] = interned_add(&entries, &entry);
		if (list.of_location[i] == INTERNED_NONE)
			return -ENOMEM;
	}
	list.nr_entries = entries.nr;
	list.entries = (void *)MOVE(entries.entries);
	*ret_list = list;
	list = (struct frame_list){ 0 };
	return 0;
}

void frame_list_done(struct frame_list *list)
{
	free(list->entries);
	free(list->of_location);
	*list = (struct frame_list){ 0 };
}

const char *frame_entry_file(const struct profile *profile, const struct frame_entry *entry)
{
	uint32_t file = entry->function == PROFILE_NONE ? PROFILE_EMPTY_STRING : profile_function_at(profile, entry->function)->file;

	if (file == PROFILE_EMPTY_STRING && entry->path == PROFILE_EMPTY_STRING && entry->kind == FRAME_KERNEL)
		return "[kernel]";
	return profile_string_text(profile, file != PROFILE_EMPTY_STRING ? file : entry->path);
}

const char *frame_entry_source(const struct profile *profile, const struct frame_entry *entry)
{
	if (entry->function == PROFILE_NONE || !frame_is_interpreted(entry->kind))
		return "";
	return path_base(profile_string_text(profile, profile_function_at(profile, entry->function)->file));
}

const char *frame_entry_name(const struct profile *profile, const struct frame_entry *entry)
{
	const char *name = profile_string_text(profile, entry->name);

	return *name ? name : "[unknown]";
}
