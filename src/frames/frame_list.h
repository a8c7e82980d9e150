/* SPDX-License-Identifier: Apache-2.0 */
/* frame_list: what formats without addresses call a frame: a function of a file. Many locations are one frame. */
#pragma once
#include "model/profile.h"

struct frame_entry {
	uint32_t name, path; /* strings; frame_path; "" when frames are by name */
	uint32_t
	    function; /* when frames are by name, PROFILE_NONE or, of those that show their source file, one with a file of that name */
	uint32_t kind;	     /* enum frame_kind */
};

struct frame_list {
	struct frame_entry *entries;
	uint32_t nr_entries;
	uint32_t *of_location; /* by location: the frame's number */
};

/* `by_name`: frames that read the same are one, whatever file they are of. 0 or -ENOMEM. */
MUST_CHECK int frame_list_find(const struct profile *profile, bool by_name, struct frame_list *ret_list);
void frame_list_done(struct frame_list *list);
/* Its source file, or else the mapped one, or "[kernel]", or "". */
const char *frame_entry_file(const struct profile *profile, const struct frame_entry *entry);
/* What stands in brackets behind the name where that is all that is shown, as frame_source. */
const char *frame_entry_source(const struct profile *profile, const struct frame_entry *entry);
/* Never "". */
const char *frame_entry_name(const struct profile *profile, const struct frame_entry *entry);
