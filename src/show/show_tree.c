// SPDX-License-Identifier: Apache-2.0
/* Call trees: from the root, from a function to its callers, from a function to what it calls. There is one node per function in a row:
 * direct recursion is one node. An only child is written below its parent without more indentation, which grows at forks only. So deep
 * stacks stay on the screen. Cost: the frames of all samples. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "frames/call_nodes.h"
#include "frames/functions.h"
#include "show/show.h"
#include "show/show_text.h"

#define DEFAULT_TREE_LINES 1000
#define MAX_INDENT 60 /* deeper forks are not indented further */
#define NONE PROFILE_NONE

struct node {
	int64_t self, total;
	uint32_t first_child, next; /* next: of the same parent */
	uint32_t deepest;           /* most calls in a row */
};

enum direction { FROM_ROOT, TO_CALLERS, TO_CALLEES };

struct shown_tree {
	const struct profile *profile;
	const struct show_options *options;
	struct functions functions;
	bool *is_wanted;          /* by row of the functions: the requested function */
	enum direction direction;
	uint32_t fold;            /* of the shown value */
	struct call_nodes calls;  /* frames: rows, and after those the processes' names */
	struct node *nodes;       /* by index in `calls` */
	uint32_t max_nodes;       /* size of `nodes` */
	int64_t path_self;        /* self value for each node on the path */
	double min_percent;
	uint32_t nr_lines, max_lines, nr_left_out;
	uint32_t nr_cut_nodes;    /* those below min_percent */
};

static void shown_tree_done(struct shown_tree *tree)
{
	functions_done(&tree->functions);
	call_nodes_done(&tree->calls);
	free(tree->is_wanted);
	free(tree->nodes);
}

static int make_room(struct shown_tree *tree)
{
	uint32_t had = tree->max_nodes;

	if (!array_grow(&tree->nodes, tree->calls.nr - 1, &tree->max_nodes, sizeof(*tree->nodes), 1024, UINT32_MAX / 4))
		return -ENOMEM;
	for (uint32_t i = had; i < tree->max_nodes; i++)
		tree->nodes[i] = (struct node){ .first_child = NONE, .next = NONE, .deepest = 1 };
	return 0;
}

/* Moves *node to its child for this frame and counts the value there. */
static int descend(struct shown_tree *tree, uint32_t *node, uint32_t frame, int64_t value)
{
	uint32_t nr = tree->calls.nr, child = call_nodes_add(&tree->calls, *node, frame);

	if (child == PROFILE_NONE || make_room(tree))
		return -ENOMEM;
	if (tree->calls.nr > nr && *node != NONE) {
		tree->nodes[child].next = tree->nodes[*node].first_child;
		tree->nodes[*node].first_child = child;
	}
	tree->nodes[child].total = value_fold(tree->fold, tree->nodes[child].total, value);
	tree->nodes[child].self = value_fold(tree->fold, tree->nodes[child].self, tree->path_self);
	*node = child;
	return 0;
}

/* Descends through the frames from..to of the stack, without `to`; step is 1 or -1. */
static int descend_frames(struct shown_tree *tree, uint32_t *node, const struct whole_stack *stack, int64_t from, int64_t to, int step,
			  int64_t value)
{
	uint32_t last = NONE, depth = 1;

	for (int64_t i = from; i != to; i += step) {
		uint32_t frame = tree->functions.of_location[whole_stack_at(stack, (uint32_t)i)];

		if (frame == last) {
			depth++;
			if (tree->nodes[*node].deepest < depth)
				tree->nodes[*node].deepest = depth;
			continue;
		}
		if (descend(tree, node, frame, value))
			return -ENOMEM;
		last = frame;
		depth = 1;
	}
	return 0;
}

static bool is_wanted(const struct shown_tree *tree, const struct whole_stack *stack, uint32_t i)
{
	return tree->is_wanted[tree->functions.of_location[whole_stack_at(stack, i)]];
}

/* From the root: the whole stack. Callers: outward from the innermost frame of the function; self is the function's own on the whole path.
 * Callees: inward from the outermost frame of the function. */
static int add_sample(struct shown_tree *tree, const struct profile_sample *sample)
{
	struct whole_stack stack = whole_stack_of(tree->profile, sample);
	int64_t value = sample->values[profile_shown_value(tree->profile)], at = (int64_t)stack.nr - 1;
	uint32_t node = 0;
	int err = 0;

	tree->path_self = 0;
	if (tree->direction == TO_CALLERS) {
		for (at = 0; at < stack.nr && !is_wanted(tree, &stack, (uint32_t)at); at++)
			;
		if (at == stack.nr)
			return 0;
		tree->path_self = at ? 0 : value;
		return descend_frames(tree, &node, &stack, at, stack.nr, 1, value);
	}
	if (tree->direction == TO_CALLEES) {
		while (at >= 0 && !is_wanted(tree, &stack, (uint32_t)at))
			at--;
		if (at < 0)
			return 0;
	} else {
		tree->nodes[0].total = value_fold(tree->fold, tree->nodes[0].total, value);
		err = descend(tree, &node, tree->functions.nr + 1 + sample->comm, value);
	}
	if (!err)
		err = descend_frames(tree, &node, &stack, at, -1, -1, value);
	tree->nodes[node].self = value_fold(tree->fold, tree->nodes[node].self, value);
	return err;
}

/* --- text ----------------------------------------------------------------------------------------------------------------------------- */

static void write_label(const struct shown_tree *tree, uint32_t number, struct buffer *buffer)
{
	uint32_t frame = tree->calls.all[number].frame;
	const struct function_row *row;
	char room[FUNCTION_PLACE_BYTES];

	if (frame == tree->functions.nr) {
		buffer_text(buffer, "all");
		return;
	}
	if (frame > tree->functions.nr) {
		const char *comm = profile_string_text(tree->profile, frame - tree->functions.nr - 1);

		show_name(buffer, *comm ? comm : "[no name]");
		return;
	}
	row = &tree->functions.rows[frame];
	show_name(buffer, function_row_name(tree->profile, row));
	if (tree->nodes[number].deepest > 1)
		buffer_printf(buffer, " (calls itself, up to %" PRIu32 " deep)", tree->nodes[number].deepest);
	show_dim(buffer, tree->options, function_row_place(tree->profile, row, room));
}

static void write_line(struct shown_tree *tree, uint32_t number, uint32_t indent, bool forks, struct buffer *buffer)
{
	const struct node *node = &tree->nodes[number];
	size_t from = buffer->size;

	if (tree->nr_lines == tree->max_lines) {
		tree->nr_left_out++;
		return;
	}
	tree->nr_lines++;
	show_part(buffer, tree->profile, tree->options, node->total, tree->functions.all);
	show_part(buffer, tree->profile, tree->options, node->self, tree->functions.all);
	buffer_printf(buffer, "  %*s%s", (int)(indent < MAX_INDENT ? indent : MAX_INDENT), "", forks ? "- " : "");
	write_label(tree, number, buffer);
	show_line_end(buffer, tree->options, from);
}

static int by_total(const void *a, const void *b, void *arg)
{
	const struct shown_tree *tree = arg;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int64_t left_total = tree->nodes[left].total, right_total = tree->nodes[right].total;

	if (left_total != right_total)
		return left_total < right_total ? 1 : -1;
	return left < right ? -1 : left > right;
}

struct waiting { /* a node still to be written */
	uint32_t node, indent;
	bool forks;
};

static bool is_shown(const struct shown_tree *tree, uint32_t node)
{
	int64_t total = tree->nodes[node].total;

	return 100.0 * (double)(total < 0 ? -total : total) >= tree->min_percent * (double)tree->functions.all;
}

/* Pushes the children that are shown onto the stack, the largest on top. */
static int push_children(struct shown_tree *tree, const struct waiting *parent, struct buffer *waiting)
{
	CLEANUP(buffer_done) struct buffer list = BUFFER_INIT((size_t)4 << 30);
	uint32_t nr_children = 0, nr_shown, *children, indent = parent->indent + (parent->forks ? 2 : 0);

	for (uint32_t child = tree->nodes[parent->node].first_child; child != NONE; child = tree->nodes[child].next) {
		nr_children++;
		if (is_shown(tree, child))
			buffer_append(&list, &child, sizeof(child));
		else
			tree->nr_cut_nodes++;
	}
	if (list.err)
		return list.err;
	nr_shown = (uint32_t)(list.size / sizeof(*children));
	children = (uint32_t *)list.data;
	if (nr_shown)
		qsort_r(children, nr_shown, sizeof(*children), by_total, tree);
	for (uint32_t i = nr_shown; i-- > 0;) {
		struct waiting child = { .node = children[i], .indent = indent, .forks = nr_children > 1 };

		buffer_append(waiting, &child, sizeof(child));
	}
	return waiting->err;
}

static int write_nodes(struct shown_tree *tree, struct buffer *buffer)
{
	CLEANUP(buffer_done) struct buffer waiting = BUFFER_INIT((size_t)4 << 30);
	struct waiting next = { .node = 0 };
	int err = 0;

	if (tree->direction == FROM_ROOT)
		buffer_append(&waiting, &next, sizeof(next));
	else
		err = push_children(tree, &next, &waiting);
	while (!err && waiting.size) {
		waiting.size -= sizeof(next);
		memcpy(&next, waiting.data + waiting.size, sizeof(next));
		write_line(tree, next.node, next.indent, next.forks, buffer);
		err = push_children(tree, &next, &waiting);
	}
	return err ? err : waiting.err;
}

static void write_end(const struct shown_tree *tree, struct buffer *buffer)
{
	if (tree->nr_cut_nodes)
		buffer_printf(buffer, "%" PRIu32 " branches below %.3g %% are not shown (--min 0 shows them)\n", tree->nr_cut_nodes,
			      tree->min_percent);
	if (tree->nr_left_out)
		buffer_printf(buffer, "%" PRIu32 " more lines are not shown (-n)\n", tree->nr_left_out);
}

/* Matches names as shown and as linked. */
static int find_wanted(struct shown_tree *tree, const char *function, struct diag *diag)
{
	const struct profile *profile = tree->profile;
	bool is_found = false;

	tree->is_wanted = calloc((size_t)tree->functions.nr + 1, sizeof(*tree->is_wanted));
	if (!tree->is_wanted)
		return -ENOMEM;
	for (uint32_t i = 0; function && i < profile_nr_locations(profile); i++) {
		const struct profile_function *at = profile_function_at(profile, profile_location_at(profile, i)->function);

		if (!strcmp(profile_string_text(profile, at->name), function) ||
		    !strcmp(profile_string_text(profile, at->system_name), function))
			is_found = tree->is_wanted[tree->functions.of_location[i]] = true;
	}
	return is_found || !function ? 0 : diag_errno(diag, ENOENT, "no function in it is called '%.200s'", function);
}

static int show(struct shown_tree *tree, const char *function, struct buffer *buffer, struct diag *diag)
{
	const struct profile *profile = tree->profile;
	uint32_t root = NONE;
	int err = functions_tally(profile, profile_shown_value(profile), &tree->functions);

	if (!err)
		err = find_wanted(tree, function, diag);
	if (!err)
		err = descend(tree, &root, tree->functions.nr, 0);
	for (uint32_t i = 0; !err && i < profile_nr_samples(profile); i++)
		err = add_sample(tree, profile_sample_at(profile, i));
	if (err)
		return err;
	show_title(buffer, profile, tree->options, tree->functions.all);
	show_parts_heading(buffer, profile, tree->options, "TOTAL", "SELF", NULL,
			   tree->direction == TO_CALLERS ? "FUNCTION AND ITS CALLERS (self: of the function, when called so)" : "FUNCTION");
	err = write_nodes(tree, buffer);
	write_end(tree, buffer);
	return err;
}

static int show_direction(const struct profile *profile, enum direction direction, const char *function, const struct show_options *options,
			  struct buffer *buffer, struct diag *diag)
{
	CLEANUP(shown_tree_done) struct shown_tree tree = {
		.profile = profile,
		.options = options,
		.direction = direction,
		.fold = profile_shown_fold(profile),
		.min_percent = options->min_percent,
		.max_lines = options->max_lines ? options->max_lines : DEFAULT_TREE_LINES,
	};

	return show(&tree, function, buffer, diag);
}

int show_tree(const struct profile *profile, const struct show_options *options, struct buffer *buffer)
{
	return show_direction(profile, FROM_ROOT, NULL, options, buffer, NULL);
}

int show_callers(const struct profile *profile, const char *function, const struct show_options *options, struct buffer *buffer,
		 struct diag *diag)
{
	return show_direction(profile, TO_CALLERS, function, options, buffer, diag);
}

int show_callees(const struct profile *profile, const char *function, const struct show_options *options, struct buffer *buffer,
		 struct diag *diag)
{
	return show_direction(profile, TO_CALLEES, function, options, buffer, diag);
}
