/* SPDX-License-Identifier: Apache-2.0 */
/* call_nodes: stacks as a tree whose nodes are (caller, frame), for the formats that write such trees. A frame is a number that the caller
 * chooses. */
#pragma once
#include "base/u64_map.h"
#include "model/profile.h"

struct call_node {
	uint32_t parent, frame; /* the parent's index is smaller; PROFILE_NONE: none */
};

struct call_nodes {
	struct call_node *all;
	uint32_t nr, max; /* max: room */
	struct u64_map index;
};

/* Returns the index of the node, adding it if needed; PROFILE_NONE: no memory. */
uint32_t call_nodes_add(struct call_nodes *nodes, uint32_t parent, uint32_t frame);
/* Walks from *node down a stack of frames, given leaf first, and sets *node to the innermost node. `numbers` maps a frame to its number;
 * NULL: the frames are the numbers. 0 or -ENOMEM. */
MUST_CHECK int call_nodes_add_stack(struct call_nodes *nodes, const uint32_t *frames, uint32_t nr_frames, const uint32_t *numbers,
				    uint32_t *node);
/* The same from `node` through the sample's user stack and kernel stack. Sets *ret_node to the innermost node, or to `node` if there are no
 * frames. */
MUST_CHECK int call_nodes_add_sample(struct call_nodes *nodes, uint32_t node, const struct profile *profile,
				     const struct profile_sample *sample, const uint32_t *of_location, uint32_t *ret_node);
void call_nodes_done(struct call_nodes *nodes);
