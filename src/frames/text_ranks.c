// SPDX-License-Identifier: Apache-2.0
#include "frames/text_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "frames/frame_source.h"

struct ranked {
	const char *text;
	uint32_t string;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct ranked *)a)->text, ((const struct ranked *)b)->text);
}

/* Ranks are even, which leaves room between two for a text that is not in the profile. */
uint32_t *text_ranks(const struct profile *profile, bool of_bases)
{
	uint32_t nr = profile_nr_strings(profile), rank = 0;
	CLEANUP(freep) struct ranked *sorted = calloc((size_t)nr + 1, sizeof(*sorted));
	uint32_t *ranks = calloc((size_t)nr + 1, sizeof(*ranks));

	if (!sorted || !ranks) {
		free(ranks);
		return NULL;
	}
	for (uint32_t i = 0; i < nr; i++) {
		const char *text = profile_string_text(profile, i);

		sorted[i] = (struct ranked){ .text = of_bases ? path_base(text) : text, .string = i };
	}
	qsort(sorted, nr, sizeof(*sorted), by_text);
	for (uint32_t i = 0; i < nr; i++) {
		if (i && by_text(&sorted[i - 1], &sorted[i]))
			rank += 2;
		ranks[sorted[i].string] = rank;
	}
	return ranks;
}

uint32_t text_rank_of(const struct profile *profile, const uint32_t *ranks, const char *text)
{
	uint32_t rank = 0;

	for (uint32_t i = 0; i < profile_nr_strings(profile); i++) {
		int by = strcmp(profile_string_text(profile, i), text);

		if (!by)
			return ranks[i];
		if (by < 0 && ranks[i] >= rank)
			rank = ranks[i] + 1;
	}
	return rank;
}
