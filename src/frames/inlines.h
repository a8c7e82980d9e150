/* SPDX-License-Identifier: Apache-2.0 */
/* inlines: pprof and similar formats have a single location for all functions inlined at one address, with a line for each, innermost
 * first. Such a chain is one of our locations plus the chain that it was inlined into. Only the stack says which chain that is, so equal
 * locations may begin different chains. */
#pragma once
#include "frames/call_nodes.h"
#include "model/profile.h"

struct inlines {
	uint32_t nr_locations;
	/* Chains of several locations, numbered after our locations. Each location is also a chain of its own, under its own number. */
	struct call_nodes longer;
	uint32_t *of_frames;      /* the chains that begin at the frames of all stacks, stack after stack */
	size_t *first;            /* by stack: index of its first frame there */
	uint32_t *ids;            /* by chain: ids from 1 on; 0: only part of longer chains */
};

/* 0 or -ENOMEM. */
MUST_CHECK int inlines_find(const struct profile *profile, struct inlines *ret_inlines);
void inlines_done(struct inlines *inlines);
uint32_t inlines_nr_chains(const struct inlines *inlines);
uint32_t inlines_location(const struct inlines *inlines, uint32_t chain); /* the innermost */
uint32_t inlines_outer(const struct inlines *inlines, uint32_t chain);    /* the chain it was inlined into, or PROFILE_NONE */
/* The stack's chains, one for each of its locations; NULL for PROFILE_NONE. */
const uint32_t *inlines_of_stack(const struct inlines *inlines, const struct profile *profile, uint32_t stack, uint32_t *ret_nr);
/* True if the i-th chain is not part of the one before it. */
bool inlines_begins(const struct inlines *inlines, const uint32_t *chains, uint32_t i);
