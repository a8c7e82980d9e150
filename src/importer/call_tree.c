// SPDX-License-Identifier: Apache-2.0
#include "importer/call_tree.h"

#include <errno.h>

#include "base/array.h"

void call_tree_done(struct call_tree *tree)
{
	free(tree->nodes);
}

int call_tree_add(struct call_tree *tree, uint32_t parent, uint32_t location)
{
	if (!array_grow(&tree->nodes, tree->nr, &tree->max, sizeof(*tree->nodes), 256, UINT32_MAX / 8))
		return -ENOMEM;
	tree->nodes[tree->nr++] = (struct call_node){ .parent = parent, .location = location };
	return 0;
}

static int make(struct importer *importer, struct call_tree *tree, uint32_t node)
{
	struct profile_sample stacks = import_blank();
	struct call_node *made = &tree->nodes[node];
	uint32_t nr_steps = 0;
	int err = 0;

	import_begin(importer);
	for (; node != PROFILE_NONE && !err; node = tree->nodes[node].parent) {
		if (nr_steps++ == tree->nr)
			return -EBADMSG;
		if (tree->nodes[node].location != PROFILE_NONE)
			err = import_push(importer, tree->nodes[node].location);
	}
	if (!err)
		err = import_end_stack(importer, &stacks);
	if (err)
		return err;
	made->user_stack = stacks.user_stack;
	made->kernel_stack = stacks.kernel_stack;
	made->is_made = true;
	return 0;
}

int call_tree_stack(struct importer *importer, struct call_tree *tree, uint32_t node, struct profile_sample *sample)
{
	int err = tree->nodes[node].is_made ? 0 : make(importer, tree, node);

	if (err)
		return err;
	sample->user_stack = tree->nodes[node].user_stack;
	sample->kernel_stack = tree->nodes[node].kernel_stack;
	return 0;
}
