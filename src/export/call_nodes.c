// SPDX-License-Identifier: Apache-2.0
#include "export/call_nodes.h"

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

static int add_stack(struct call_nodes *nodes, const struct profile *profile, uint32_t stack, const uint32_t *of_location, uint32_t *node)
{
	const uint32_t *locations;
	uint32_t nr_locations;

	if (stack == PROFILE_NONE)
		return 0;
	locations = profile_stack_at(profile, stack, &nr_locations);
	while (nr_locations-- > 0) {
		uint32_t location = locations[nr_locations];

		*node = call_nodes_add(nodes, *node, of_location ? of_location[location] : location);
		if (*node == PROFILE_NONE)
			return -ENOMEM;
	}
	return 0;
}

int call_nodes_add_sample(struct call_nodes *nodes, uint32_t node, const struct profile *profile, const struct profile_sample *sample,
			  const uint32_t *of_location, uint32_t *ret_node)
{
	int err = add_stack(nodes, profile, sample->user_stack, of_location, &node);

	if (!err)
		err = add_stack(nodes, profile, sample->kernel_stack, of_location, &node);
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
