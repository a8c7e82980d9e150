/* SPDX-License-Identifier: Apache-2.0 */
/* frame_list: the frames of formats without addresses: functions of files. Many locations share one frame. */
#pragma once
#include "model/profile.h"

struct frame_entry {
	uint32_t name, path; /* strings; path: frame_path, or "" if frames are by name */
	/* If frames are by name: PROFILE_NONE or, if the source file is shown, a function with a file of that name. */
	uint32_t function;
	uint32_t kind;	     /* enum frame_kind */
};

struct frame_list {
	struct frame_entry *entries;
	uint32_t nr_entries;
	uint32_t *of_location; /* by location: the frame's index */
};

/* `by_name`: frames with the same text are one, whatever their file. 0 or -ENOMEM. */
MUST_CHECK int frame_list_find(const struct profile *profile, bool by_name, struct frame_list *ret_list);
void frame_list_done(struct frame_list *list);
/* Its source file, else the mapped file, else "[kernel]" or "". */
const char *frame_entry_file(const struct profile *profile, const struct frame_entry *entry);
/* What follows the name in brackets where only one text is shown; see frame_source. */
const char *frame_entry_source(const struct profile *profile, const struct frame_entry *entry);
/* Never "". */
const char *frame_entry_name(const struct profile *profile, const struct frame_entry *entry);
