/* SPDX-License-Identifier: Apache-2.0 */
/* inlines: pprof and its kin have one location for all that was inlined at one address, with a line for each function, the innermost first.
 * Such a chain is one of our locations and the chain that it was inlined into; what that is, only the stack says, so equal locations may
 * begin different chains. */
#pragma once
#include "frames/call_nodes.h"
#include "model/profile.h"

struct inlines {
	uint32_t nr_locations;
	struct call_nodes
	    longer; /* chains of several; numbered behind our locations, each of which is a chain of its own under its number */
	uint32_t *of_frames;      /* the chains that begin at the frames of all stacks, one stack behind the other */
	size_t *first;            /* by stack: where its frames begin there */
	uint32_t *ids;            /* by chain: from 1 on, 0 for those that are nowhere but in longer ones */
};

/* 0 or -ENOMEM. */
MUST_CHECK int inlines_find(const struct profile *profile, struct inlines *ret_inlines);
void inlines_done(struct inlines *inlines);
uint32_t inlines_nr_chains(const struct inlines *inlines);
uint32_t inlines_location(const struct inlines *inlines, uint32_t chain); /* the innermost */
uint32_t inlines_outer(const struct inlines *inlines, uint32_t chain);    /* the chain that it was inlined into, or PROFILE_NONE */
/* The stack's chains, one for each of its locations; PROFILE_NONE has none. */
const uint32_t *inlines_of_stack(const struct inlines *inlines, const struct profile *profile, uint32_t stack, uint32_t *ret_nr);
/* Whether the i-th of them is no part of the one before. */
bool inlines_begins(const struct inlines *inlines, const uint32_t *chains, uint32_t i);
