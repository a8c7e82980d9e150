/* SPDX-License-Identifier: Apache-2.0 */
/* tree: a profile as a call tree: all > process name > (thread >) user frames > kernel frames, root first. Processes of equal names are
 * one. A frame is (name, file, kind): the same name in two files are two. */
#pragma once
#include "export/export.h"

/* Continues enum frame_kind. */
enum { TREE_ALL = FRAME_MARK + 1, TREE_PROCESS, TREE_THREAD };

struct tree_frame {
	uint32_t name; /* a string; of TREE_THREAD: the tid */
	uint32_t path; /* a string: of the file, "" without one */
	uint32_t kind; /* enum frame_kind or one of the above */
};

struct tree_node {
	uint32_t parent, frame; /* the parent's number is smaller; the root, 0, is its own */
	int64_t self;		/* of the value that is shown: what ends here */
};

struct tree {
	struct tree_frame *frames;
	struct tree_node *nodes;
	uint32_t nr_frames, nr_nodes;
};

/* 0 or -ENOMEM. */
MUST_CHECK int tree_build(const struct profile *profile, bool threads, struct tree *ret_tree);
void tree_done(struct tree *tree);
