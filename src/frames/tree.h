/* SPDX-License-Identifier: Apache-2.0 */
/* tree: a profile's stacks as a call tree: all > process name > (thread name >) (thread >) user frames > kernel frames, root first.
 * Processes with equal names are one, and so are threads. A thread whose name is its process's has no frame of its own for it. A frame is
 * (name, file, kind): the same name in two files is two frames. */
#pragma once
#include "model/profile.h"

/* Continues enum frame_kind. */
enum { TREE_ALL = FRAME_KIND_COUNT, TREE_PROCESS, TREE_THREAD, TREE_COMM, TREE_KIND_COUNT };

struct tree_frame {
	uint32_t name; /* a string; of TREE_THREAD: the tid */
	uint32_t path; /* a string: frame_path; "" without one */
	uint32_t kind; /* enum frame_kind or one of the above */
	uint32_t start_line; /* frame_start_line */
};

struct tree_source { /* of a frame, from one of its locations that has it */
	uint32_t file; /* a string: the source file; "": unknown */
	uint32_t line; /* first line of the function; 0: unknown */
};

struct tree_node {
	uint32_t parent, frame;		/* the parent's index is smaller; the root, 0, is its own parent */
	uint32_t min_line, max_line;	/* of all locations merged here; 0: unknown */
};

struct tree {
	struct tree_frame *frames;
	struct tree_source *sources; /* one per frame */
	struct tree_node *nodes;
	uint32_t *leaves; /* by sample of the profile: its node */
	uint32_t nr_frames, nr_nodes;
};

/* `processes`: by sample, the name of its process (a string). 0 or -ENOMEM. */
MUST_CHECK int tree_build(const struct profile *profile, const uint32_t *processes, bool threads, struct tree *ret_tree);
void tree_done(struct tree *tree);
