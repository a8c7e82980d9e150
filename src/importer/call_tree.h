/* SPDX-License-Identifier: Apache-2.0 */
/* call_tree: the tree of calls in a viewer's file. Its nodes name their callers, so a stack is made once for each node. */
#pragma once
#include "importer/importer.h"

struct call_node {
	uint32_t parent;   /* PROFILE_NONE: a root */
	uint32_t location; /* PROFILE_NONE: it is no frame */
	uint32_t user_stack, kernel_stack; /* once it is made */
	bool is_made;
};

struct call_tree {
	struct call_node *nodes;
	uint32_t nr, max;
};

void call_tree_done(struct call_tree *tree);
/* Adds a node; its parent may be set later. 0 or -ENOMEM. */
MUST_CHECK int call_tree_add(struct call_tree *tree, uint32_t parent, uint32_t location);
/* Sets the sample's stacks to those of the node. 0, -ENOMEM, -EFBIG; -EBADMSG, without a message: a node calls itself. */
MUST_CHECK int call_tree_stack(struct importer *importer, struct call_tree *tree, uint32_t node, struct profile_sample *sample);
