// SPDX-License-Identifier: Apache-2.0
#include "frames/call_nodes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

#define MIN_NODES 64
#define MAX_NODES (UINT32_MAX / 4)

uint32_t call_nodes_add(struct call_nodes *nodes, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t *found = u64_map_find(&nodes->index, key);

	if (found)
		return *found;
	if (!array_grow(&nodes->all, nodes->nr, &nodes->max, sizeof(*nodes->all), MIN_NODES, MAX_NODES) ||
	    u64_map_add(&nodes->index, key, nodes->nr))
		return PROFILE_NONE;
	nodes->all[nodes->nr] = (struct call_node){ parent, frame };
	return nodes->nr++;
}

int call_nodes_add_stack(struct call_nodes *nodes, const uint32_t *frames, uint32_t nr_frames, const uint32_t *numbers, uint32_t *node)
{
	while (nr_frames-- > 0) {
		uint32_t next = call_nodes_add(nodes, *node, numbers ? numbers[frames[nr_frames]] : frames[nr_frames]);

		if (next == PROFILE_NONE)
			return -ENOMEM;
		*node = next;
	}
	return 0;
}

static int add_side(struct call_nodes *nodes, const struct profile *profile, uint32_t stack, const uint32_t *of_location, uint32_t *node)
{
	const uint32_t *locations;
	uint32_t nr;

	if (stack == PROFILE_NONE)
		return 0;
	locations = profile_stack_at(profile, stack, &nr);
	return call_nodes_add_stack(nodes, locations, nr, of_location, node);
}

int call_nodes_add_sample(struct call_nodes *nodes, uint32_t node, const struct profile *profile, const struct profile_sample *sample,
			  const uint32_t *of_location, uint32_t *ret_node)
{
	int err = add_side(nodes, profile, sample->user_stack, of_location, &node);

	if (!err)
		err = add_side(nodes, profile, sample->kernel_stack, of_location, &node);
	if (!err)
		*ret_node = node;
	return err;
}

void call_nodes_done(struct call_nodes *nodes)
{
	free(nodes->all);
	u64_map_done(&nodes->index);
	*nodes = (struct call_nodes){ 0 };
}
