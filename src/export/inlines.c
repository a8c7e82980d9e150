// SPDX-License-Identifier: Apache-2.0
#include "export/inlines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool inlines_begins(const struct profile *profile, const uint32_t *locations, uint32_t i)
{
	return !i || !profile_location_at(profile, locations[i - 1])->is_inlined || frame_is_interpreted(profile_location_at(profile, locations[i])->kind);
}

int inlines_find(const struct profile *profile, struct inlines *ret_inlines)
{
	CLEANUP(inlines_done) struct inlines inlines = { .nr_locations = profile_nr_locations(profile) };

	inlines.outer = malloc(((size_t)inlines.nr_locations + 1) * sizeof(*inlines.outer));
	inlines.is_used = calloc((size_t)inlines.nr_locations + 1, sizeof(*inlines.is_used));
	if (!inlines.outer || !inlines.is_used)
		return -ENOMEM;
	memset(inlines.outer, 0xff, ((size_t)inlines.nr_locations + 1) * sizeof(*inlines.outer));
	for (uint32_t stack = 0; stack < profile_nr_stacks(profile); stack++) {
		uint32_t nr;
		const uint32_t *locations = profile_stack_at(profile, stack, &nr);

		for (uint32_t i = 0; i < nr; i++) {
			if (inlines_begins(profile, locations, i))
				inlines.is_used[locations[i]] = true;
			else
				inlines.outer[locations[i - 1]] = locations[i];
		}
	}
	*ret_inlines = inlines;
	inlines = (struct inlines){ 0 };
	return 0;
}

void inlines_done(struct inlines *inlines)
{
	free(inlines->outer);
	free(inlines->is_used);
	*inlines = (struct inlines){ 0 };
}
