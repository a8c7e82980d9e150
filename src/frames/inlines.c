// SPDX-License-Identifier: Apache-2.0
#include "frames/inlines.h"

#include <errno.h>
#include <stdlib.h>

uint32_t inlines_nr_chains(const struct inlines *inlines)
{
	return inlines->nr_locations + inlines->longer.nr;
}

uint32_t inlines_location(const struct inlines *inlines, uint32_t chain)
{
	return chain < inlines->nr_locations ? chain : inlines->longer.all[chain - inlines->nr_locations].frame;
}

uint32_t inlines_outer(const struct inlines *inlines, uint32_t chain)
{
	return chain < inlines->nr_locations ? PROFILE_NONE : inlines->longer.all[chain - inlines->nr_locations].parent;
}

const uint32_t *inlines_of_stack(const struct inlines *inlines, const struct profile *profile, uint32_t stack, uint32_t *ret_nr)
{
	*ret_nr = 0;
	if (stack == PROFILE_NONE)
		return NULL;
	profile_stack_at(profile, stack, ret_nr);
	return inlines->of_frames + inlines->first[stack];
}

bool inlines_begins(const struct inlines *inlines, const uint32_t *chains, uint32_t i)
{
	return !i || inlines_outer(inlines, chains[i - 1]) != chains[i];
}

/* Marks and interpreted frames may stand between an inlined function and the one that contains it, so pc and kind are compared. */
static bool is_in_next(const struct profile *profile, const uint32_t *locations)
{
	const struct profile_location *inner = profile_location_at(profile, locations[0]),
				      *outer = profile_location_at(profile, locations[1]);

	return inner->is_inlined && outer->pc == inner->pc && outer->kind == inner->kind;
}

/* Walks from the root: each chain continues the one that contains it. The waker's frames stand the other way round, so each is a chain of
 * its own. */
static int find_chains(struct inlines *inlines, const struct profile *profile, uint32_t stack)
{
	uint32_t nr, nr_waker, *chains = inlines->of_frames + inlines->first[stack];
	const uint32_t *locations = profile_stack_at(profile, stack, &nr);

	nr_waker = profile_nr_of_waker(profile, stack);
	for (uint32_t i = nr; i-- > 0;) {
		uint32_t node;

		chains[i] = locations[i];
		if (i < nr_waker || i + 1 == nr || !is_in_next(profile, &locations[i]))
			continue;
		node = call_nodes_add(&inlines->longer, chains[i + 1], locations[i]);
		if (node == PROFILE_NONE)
			return -ENOMEM;
		chains[i] = inlines->nr_locations + node;
	}
	return 0;
}

static int give_ids(struct inlines *inlines, const struct profile *profile)
{
	uint32_t nr_chains = inlines_nr_chains(inlines), nr_ids = 0;

	inlines->ids = calloc((size_t)nr_chains + 1, sizeof(*inlines->ids));
	if (!inlines->ids)
		return -ENOMEM;
	for (uint32_t stack = 0; stack < profile_nr_stacks(profile); stack++) {
		uint32_t nr;
		const uint32_t *chains = inlines_of_stack(inlines, profile, stack, &nr);

		for (uint32_t i = 0; i < nr; i++)
			inlines->ids[chains[i]] |= inlines_begins(inlines, chains, i);
	}
	for (uint32_t chain = 0; chain < nr_chains; chain++) {
		if (inlines->ids[chain])
			inlines->ids[chain] = ++nr_ids;
	}
	return 0;
}

int inlines_find(const struct profile *profile, struct inlines *ret_inlines)
{
	CLEANUP(inlines_done) struct inlines inlines = { .nr_locations = profile_nr_locations(profile) };
	uint32_t nr_stacks = profile_nr_stacks(profile), nr;
	size_t nr_frames = 0;
	int err = 0;

	inlines.first = malloc(((size_t)nr_stacks + 1) * sizeof(*inlines.first));
	if (!inlines.first)
		return -ENOMEM;
	for (uint32_t stack = 0; stack < nr_stacks; stack++, nr_frames += nr) {
		inlines.first[stack] = nr_frames;
		profile_stack_at(profile, stack, &nr);
	}
	inlines.of_frames = malloc((nr_frames + 1) * sizeof(*inlines.of_frames));
	if (!inlines.of_frames)
		return -ENOMEM;
	for (uint32_t stack = 0; stack < nr_stacks && !err; stack++)
		err = find_chains(&inlines, profile, stack);
	if (!err)
		err = give_ids(&inlines, profile);
	if (err)
		return err;
	*ret_inlines = inlines;
	inlines = (struct inlines){ 0 };
	return 0;
}

void inlines_done(struct inlines *inlines)
{
	call_nodes_done(&inlines->longer);
	free(inlines->of_frames);
	free(inlines->first);
	free(inlines->ids);
	*inlines = (struct inlines){ 0 };
}
