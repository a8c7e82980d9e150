// SPDX-License-Identifier: Apache-2.0
#include "frames/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/u64_map.h"
#include "frames/frame_source.h"

#define MIN_ROOM 64
#define MAX_ROOM (UINT32_MAX / 4)

struct builder {
	const struct profile *profile;
	struct tree tree;
	struct u64_map frame_index, node_index;
	uint32_t max_frames, max_sources, max_nodes; /* room */
	uint32_t *frame_of;		/* by location: its frame + 1; 0: not set yet */
};

/* Functions that add frames and nodes return their index; PROFILE_NONE: no memory. */
static uint32_t add_frame(struct builder *builder, struct tree_frame frame)
{
	uint64_t hash = hash_bytes(&frame, sizeof(frame), 0);
	uint32_t cursor = 0, *found, nr_frames = builder->tree.nr_frames;

	while ((found = u64_map_each(&builder->frame_index, hash, &cursor))) {
		if (!memcmp(&builder->tree.frames[*found], &frame, sizeof(frame)))
			return *found;
	}
	if (!array_grow(&builder->tree.frames, nr_frames, &builder->max_frames, sizeof(frame), MIN_ROOM, MAX_ROOM) ||
	    !array_grow(&builder->tree.sources, nr_frames, &builder->max_sources, sizeof(*builder->tree.sources), MIN_ROOM, MAX_ROOM) ||
	    u64_map_add(&builder->frame_index, hash, nr_frames))
		return PROFILE_NONE;
	builder->tree.frames[nr_frames] = frame;
	builder->tree.sources[nr_frames] = (struct tree_source){ .file = PROFILE_EMPTY_STRING };
	return builder->tree.nr_frames++;
}

static uint32_t add_node(struct builder *builder, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t *found = u64_map_find(&builder->node_index, key), nr_nodes = builder->tree.nr_nodes;

	if (found)
		return *found;
	if (frame == PROFILE_NONE || parent == PROFILE_NONE)
		return PROFILE_NONE;
	if (!array_grow(&builder->tree.nodes, nr_nodes, &builder->max_nodes, sizeof(*builder->tree.nodes), MIN_ROOM, MAX_ROOM))
		return PROFILE_NONE;
	if (nr_nodes && u64_map_add(&builder->node_index, key, nr_nodes)) /* the root has no parent */
		return PROFILE_NONE;
	builder->tree.nodes[nr_nodes] = (struct tree_node){ .parent = parent, .frame = frame };
	return builder->tree.nr_nodes++;
}

static uint32_t location_frame(struct builder *builder, uint32_t number)
{
	const struct profile_location *location = profile_location_at(builder->profile, number);
	const struct profile_function *function = profile_function_at(builder->profile, location->function);
	struct tree_frame frame = { .name = function->name, .path = frame_path(builder->profile, location), .kind = location->kind,
				    .start_line = frame_start_line(builder->profile, location) };
	uint32_t added;

	if (builder->frame_of[number])
		return builder->frame_of[number] - 1;
	added = add_frame(builder, frame);
	if (added == PROFILE_NONE)
		return PROFILE_NONE;
	if (builder->tree.sources[added].file == PROFILE_EMPTY_STRING)
		builder->tree.sources[added] = (struct tree_source){ .file = function->file, .line = function->line };
	builder->frame_of[number] = added + 1;
	return added;
}

static void add_line(struct tree_node *node, uint32_t line)
{
	if (!line)
		return;
	if (!node->min_line || line < node->min_line)
		node->min_line = line;
	if (line > node->max_line)
		node->max_line = line;
}

static uint32_t add_stack(struct builder *builder, uint32_t node, uint32_t stack)
{
	const uint32_t *locations;
	uint32_t nr_locations;

	if (stack == PROFILE_NONE)
		return node;
	locations = profile_stack_at(builder->profile, stack, &nr_locations);
	while (nr_locations-- > 0 && node != PROFILE_NONE) {
		uint32_t location = locations[nr_locations];

		node = add_node(builder, node, location_frame(builder, location));
		if (node != PROFILE_NONE)
			add_line(&builder->tree.nodes[node], profile_location_at(builder->profile, location)->line);
	}
	return node;
}

/* Adds a sample. Returns the node it ends in, or PROFILE_NONE. */
static uint32_t add_sample(struct builder *builder, const struct profile_sample *sample, uint32_t process_name, bool threads)
{
	struct tree_frame process = { .name = process_name, .path = PROFILE_EMPTY_STRING, .kind = TREE_PROCESS };
	struct tree_frame comm = { .name = sample->comm, .path = PROFILE_EMPTY_STRING, .kind = TREE_COMM };
	struct tree_frame thread = { .name = sample->tid, .path = PROFILE_EMPTY_STRING, .kind = TREE_THREAD };
	uint32_t node = add_node(builder, 0, add_frame(builder, process));

	if (sample->comm != process_name && node != PROFILE_NONE)
		node = add_node(builder, node, add_frame(builder, comm));
	if (threads && node != PROFILE_NONE)
		node = add_node(builder, node, add_frame(builder, thread));
	if (node != PROFILE_NONE)
		node = add_stack(builder, node, sample->user_stack);
	if (node != PROFILE_NONE)
		node = add_stack(builder, node, sample->kernel_stack);
	return node;
}

static void builder_done(struct builder *builder)
{
	tree_done(&builder->tree);
	u64_map_done(&builder->frame_index);
	u64_map_done(&builder->node_index);
	free(builder->frame_of);
}

int tree_build(const struct profile *profile, const uint32_t *processes, bool threads, struct tree *ret_tree)
{
	struct tree_frame all = { .name = PROFILE_EMPTY_STRING, .path = PROFILE_EMPTY_STRING, .kind = TREE_ALL };
	CLEANUP(builder_done) struct builder builder = { .profile = profile };

	builder.frame_of = calloc((size_t)profile_nr_locations(profile) + 1, sizeof(*builder.frame_of));
	builder.tree.leaves = calloc((size_t)profile_nr_samples(profile) + 1, sizeof(*builder.tree.leaves));
	if (!builder.frame_of || !builder.tree.leaves || add_node(&builder, 0, add_frame(&builder, all)) == PROFILE_NONE)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		builder.tree.leaves[i] = add_sample(&builder, profile_sample_at(profile, i), processes[i], threads);
		if (builder.tree.leaves[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	*ret_tree = builder.tree;
	builder.tree = (struct tree){ 0 };
	return 0;
}

void tree_done(struct tree *tree)
{
	free(tree->frames);
	free(tree->sources);
	free(tree->leaves);
	free(tree->nodes);
	*tree = (struct tree){ 0 };
}
