/* SPDX-License-Identifier: Apache-2.0 */
/* call_nodes: stacks as a tree whose nodes are (caller, frame), for the formats that write such trees. What a frame is, the caller says: a
 * number. */
#pragma once
#include "base/u64_map.h"
#include "model/profile.h"

struct call_node {
	uint32_t parent, frame; /* the parent's number is smaller; PROFILE_NONE: none */
};

struct call_nodes {
	struct call_node *all;
	uint32_t nr, max; /* max: room */
	struct u64_map index;
};

/* The node's number, an old one when there is an equal one; PROFILE_NONE: no memory. */
uint32_t call_nodes_add(struct call_nodes *nodes, uint32_t parent, uint32_t frame);
/* Goes on from *node through a stack whose frames are given leaf first; its innermost node becomes *node. `numbers` gives what each is;
 * NULL: they are that themselves. 0 or -ENOMEM. */
MUST_CHECK int call_nodes_add_stack(struct call_nodes *nodes, const uint32_t *frames, uint32_t nr_frames, const uint32_t *numbers,
				    uint32_t *node);
/* The same from `node` through the user stack and the kernel stack of the sample; the innermost node (`node` itself when there are no
 * frames) becomes *ret_node. */
MUST_CHECK int call_nodes_add_sample(struct call_nodes *nodes, uint32_t node, const struct profile *profile,
				     const struct profile_sample *sample, const uint32_t *of_location, uint32_t *ret_node);
void call_nodes_done(struct call_nodes *nodes);
