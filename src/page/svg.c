// SPDX-License-Identifier: Apache-2.0
/* Writes a flame graph as a static picture, laid out as users of FlameGraph know it: the root at the bottom, callees above, siblings by
 * name. There is no script, only a title for each frame. Frames are by name: all > process name > (thread >) user frames > kernel
 * frames. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "base/order.h"
#include "frames/call_nodes.h"
#include "frames/frame_list.h"
#include "frames/text_ranks.h"
#include "model/account_text.h"
#include "page/page_formats.h"
#include "page/svg_text.h"

#define WIDTH	      1200
#define MARGIN	      10
#define FRAME_HEIGHT  16
#define TITLE_HEIGHT  36
#define LINE_HEIGHT   15
#define MIN_PIXELS    0.5 /* narrower frames are not drawn */
#define TEXT_PIXELS   21  /* narrower frames have no text */
#define COLUMN_PIXELS 7.2 /* width of a letter, 12 pixels high */
#define HEAD_COLUMNS  160
#define ALL_COLUMNS   4096
#define ROOT	      0U
#define NO_NAME	      "[no name]" /* of a process */
#define NO_FUNCTION   "[unknown]" /* frame_entry_name */

enum { KIND_PROCESS = FRAME_KIND_COUNT, KIND_THREAD, KIND_ALL };

struct svg {
	struct buffer *buffer;
	const struct profile *profile;
	struct frame_list frames; /* numbers after its own: process names by string, then threads by tid */
	struct call_nodes nodes;
	uint32_t *sorted;	  /* nodes by parent, then by name; without the root */
	uint32_t *depth;	  /* by node */
	uint32_t *name_ranks, *base_ranks, unknown_rank, no_name_rank; /* text_ranks, and the ranks of the texts for missing names */
	int64_t *total, *before;  /* by node; `before` only of a difference, where `total` is the value after */
	double *x;		  /* by node: left edge as a share of all */
	uint32_t max_depth;
	bool is_difference;
	struct buffer name;	  /* of the current frame, with its source file */
	struct buffer lines;	  /* above the picture */
	uint32_t nr_lines;
};

struct shown {
	const char *name; /* NULL: a thread, whose number is tid */
	const char *source; /* follows in brackets, or "" */
	uint32_t kind, tid;
};

/* Frame numbers: those of the list, then strings of processes, then tids. */
static uint32_t process_frame(const struct svg *svg, uint32_t comm)
{
	return svg->frames.nr_entries + comm;
}

static struct shown shown_of(const struct svg *svg, uint32_t node)
{
	uint32_t frame = svg->nodes.all[node].frame, nr_strings = profile_nr_strings(svg->profile);
	const char *name;

	if (node == ROOT)
		return (struct shown){ "all", "", KIND_ALL, 0 };
	if (frame < svg->frames.nr_entries)
		return (struct shown){ frame_entry_name(svg->profile, &svg->frames.entries[frame]),
				       frame_entry_source(svg->profile, &svg->frames.entries[frame]), svg->frames.entries[frame].kind, 0 };
	frame -= svg->frames.nr_entries;
	if (frame >= nr_strings)
		return (struct shown){ NULL, "", KIND_THREAD, frame - nr_strings };
	name = profile_string_text(svg->profile, frame);
	return (struct shown){ *name ? name : NO_NAME, "", KIND_PROCESS, 0 };
}

static int add_sample(struct svg *svg, const struct profile_sample *sample, bool threads, uint32_t *ret_node)
{
	uint32_t node = call_nodes_add(&svg->nodes, ROOT, process_frame(svg, sample->comm));

	if (threads && node != PROFILE_NONE)
		node = call_nodes_add(&svg->nodes, node, process_frame(svg, profile_nr_strings(svg->profile)) + sample->tid);
	if (node == PROFILE_NONE)
		return -ENOMEM;
	return call_nodes_add_sample(&svg->nodes, node, svg->profile, sample, svg->frames.of_location, ret_node);
}

/* Adds up from the leaves to the root: parents have smaller numbers. */
static int add_up(struct svg *svg, const uint32_t *leaves)
{
	uint32_t shown = profile_shown_value(svg->profile);

	svg->total = calloc(svg->nodes.nr, sizeof(*svg->total));
	svg->before = calloc(svg->nodes.nr, sizeof(*svg->before));
	if (!svg->total || !svg->before)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_nr_samples(svg->profile); i++) {
		const struct profile_sample *sample = profile_sample_at(svg->profile, i);

		svg->total[leaves[i]] = number_sum(svg->total[leaves[i]], sample->values[svg->is_difference ? 1 : shown]);
		svg->before[leaves[i]] = number_sum(svg->before[leaves[i]], svg->is_difference ? sample->values[0] : 0);
	}
	for (uint32_t i = svg->nodes.nr; i-- > 1;) {
		svg->total[svg->nodes.all[i].parent] = number_sum(svg->total[svg->nodes.all[i].parent], svg->total[i]);
		svg->before[svg->nodes.all[i].parent] = number_sum(svg->before[svg->nodes.all[i].parent], svg->before[i]);
	}
	return 0;
}

static int add_samples(struct svg *svg, bool threads)
{
	uint32_t nr_samples = profile_nr_samples(svg->profile);
	CLEANUP(freep) uint32_t *leaves = calloc((size_t)nr_samples + 1, sizeof(*leaves));
	int err = 0;

	if (!leaves || call_nodes_add(&svg->nodes, PROFILE_NONE, PROFILE_NONE) != ROOT)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_samples && !err; i++)
		err = add_sample(svg, profile_sample_at(svg->profile, i), threads, &leaves[i]);
	return err ? err : add_up(svg, leaves);
}

/* Sort key of siblings: the name as shown, then source, thread and kind. */
struct place {
	uint32_t name, source, tid, kind;
};

static struct place place_of(const struct svg *svg, uint32_t node)
{
	uint32_t frame = svg->nodes.all[node].frame, nr_strings = profile_nr_strings(svg->profile);
	struct place place = { .source = svg->base_ranks[PROFILE_EMPTY_STRING] };

	if (frame < svg->frames.nr_entries) {
		const struct frame_entry *entry = &svg->frames.entries[frame];

		place.name = entry->name == PROFILE_EMPTY_STRING ? svg->unknown_rank : svg->name_ranks[entry->name];
		if (entry->function != PROFILE_NONE)
			place.source = svg->base_ranks[profile_function_at(svg->profile, entry->function)->file];
		place.kind = entry->kind;
	} else if (frame - svg->frames.nr_entries < nr_strings) {
		frame -= svg->frames.nr_entries;
		place.name = frame == PROFILE_EMPTY_STRING ? svg->no_name_rank : svg->name_ranks[frame];
		place.kind = KIND_PROCESS;
	} else {
		place.tid = frame - svg->frames.nr_entries - nr_strings;
		place.kind = KIND_THREAD;
	}
	return place;
}

static int order_nodes(const void *left, const void *right, void *arg)
{
	const struct svg *svg = arg;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	int by = order(svg->nodes.all[a].parent, svg->nodes.all[b].parent);
	struct place place_a, place_b;

	if (by)
		return by;
	place_a = place_of(svg, a);
	place_b = place_of(svg, b);
	by = order(place_a.name, place_b.name);
	if (!by)
		by = order(place_a.source, place_b.source);
	if (!by)
		by = order(place_a.tid, place_b.tid);
	return by ? by : order(place_a.kind, place_b.kind);
}

static int find_ranks(struct svg *svg)
{
	svg->name_ranks = text_ranks(svg->profile, false);
	svg->base_ranks = text_ranks(svg->profile, true);
	if (!svg->name_ranks || !svg->base_ranks)
		return -ENOMEM;
	svg->unknown_rank = text_rank_of(svg->profile, svg->name_ranks, NO_FUNCTION);
	svg->no_name_rank = text_rank_of(svg->profile, svg->name_ranks, NO_NAME);
	return 0;
}

static double share(const struct svg *svg, uint32_t node)
{
	return svg->total[ROOT] > 0 && svg->total[node] > 0 ? (double)svg->total[node] / (double)svg->total[ROOT] : 0;
}

static bool is_drawn(const struct svg *svg, uint32_t node)
{
	return share(svg, node) * (WIDTH - 2 * MARGIN) >= MIN_PIXELS;
}

/* Parents precede their children in `sorted` too, because it ascends by the parent's number. */
static int lay_out(struct svg *svg)
{
	uint32_t nr = svg->nodes.nr, parent = PROFILE_NONE;
	double x = 0;

	svg->sorted = calloc(nr, sizeof(*svg->sorted));
	svg->depth = calloc(nr, sizeof(*svg->depth));
	svg->x = calloc(nr, sizeof(*svg->x));
	if (!svg->sorted || !svg->depth || !svg->x)
		return -ENOMEM;
	for (uint32_t i = 1; i < nr; i++)
		svg->sorted[i - 1] = i;
	qsort_r(svg->sorted, nr - 1, sizeof(*svg->sorted), order_nodes, svg);
	for (uint32_t i = 0; i + 1 < nr; i++) {
		uint32_t node = svg->sorted[i];

		if (svg->nodes.all[node].parent != parent) {
			parent = svg->nodes.all[node].parent;
			x = svg->x[parent];
		}
		svg->x[node] = x;
		svg->depth[node] = svg->depth[parent] + 1;
		x += share(svg, node);
		if (is_drawn(svg, node) && svg->depth[node] > svg->max_depth)
			svg->max_depth = svg->depth[node];
	}
	return 0;
}

/* 0 to 1, the same for equal names. */
static double vary(const char *name, unsigned int bits)
{
	return (double)(hash_stable(name, strlen(name), 0) >> bits & 0xff) / 255;
}

/* Growth is red and shrinkage blue, as in FlameGraph. */
static void write_difference_colour(struct svg *svg, uint32_t node)
{
	int64_t after = svg->total[node], before = svg->before[node], most = after > before ? after : before;
	double change = most > 0 ? ((double)after - (double)before) / (double)most : 0;
	int pale = (int)(235 - 190 * (change < 0 ? -change : change));

	if (change > 0)
		buffer_printf(svg->buffer, "rgb(255,%d,%d)", pale, pale);
	else if (change < 0)
		buffer_printf(svg->buffer, "rgb(%d,%d,255)", pale, pale);
	else
		buffer_text(svg->buffer, "rgb(240,240,240)");
}

#define NUMBERS(...) { __VA_ARGS__ }

static void write_colour(struct svg *svg, uint32_t node, struct shown shown)
{
#define X(id, name, shown, otlp, files, firefox, svg, ...) [FRAME_##id] = NUMBERS svg,
	static const uint8_t colours[FRAME_KIND_COUNT][6] = { SONDE_RUNTIME_LIST(
	    X, X, SONDE_NO_RUNTIME) }; /* red, green, blue: each the base and how far it varies */
#undef X
	const uint8_t *of = frame_is_interpreted(shown.kind) ? colours[shown.kind] : NULL;
	double a = vary(shown.name ? shown.name : "", 0), b = vary(shown.name ? shown.name : "", 8);

	if (shown.kind == FRAME_MARK || shown.kind == FRAME_MISSED)
		buffer_text(svg->buffer, "url(#unknown)");
	else if (svg->is_difference)
		write_difference_colour(svg, node);
	else if (shown.kind == FRAME_NATIVE)
		buffer_printf(svg->buffer, "rgb(%d,%d,%d)", (int)(205 + 50 * a), (int)(60 + 140 * b), (int)(40 * a));
	else if (shown.kind == FRAME_KERNEL)
		buffer_printf(svg->buffer, "rgb(%d,%d,%d)", (int)(110 + 40 * a), (int)(170 + 50 * b), (int)(215 + 30 * a));
	else if (frame_is_interpreted(shown.kind))
		buffer_printf(svg->buffer, "rgb(%d,%d,%d)", (int)(of[0] + of[1] * a), (int)(of[2] + of[3] * b), (int)(of[4] + of[5] * a));
	else
		buffer_printf(svg->buffer, "rgb(%d,%d,%d)", (int)(205 + 25 * a), (int)(205 + 25 * a), (int)(200 + 20 * a));
}

static void write_name(struct svg *svg, struct shown shown, uint32_t max_columns)
{
	char thread[24];

	if (*shown.source) {
		svg->name.size = 0;
		buffer_printf(&svg->name, "%s (%s)", shown.name, shown.source);
		if (svg->name.err)
			svg->buffer->err = svg->name.err;
		else
			svg_text(svg->buffer, svg->name.data, max_columns);
		return;
	}
	snprintf(thread, sizeof(thread), "thread %" PRIu32, shown.tid);
	svg_text(svg->buffer, shown.name ? shown.name : thread, max_columns);
}

static void write_title(struct svg *svg, uint32_t node, struct shown shown)
{
	uint32_t nr_types;
	const struct profile_value_type *type =
	    &profile_value_types(svg->profile, &nr_types)[svg->is_difference ? 1 : profile_shown_value(svg->profile)];
	const char *unit = profile_string_text(svg->profile, type->unit);

	buffer_text(svg->buffer, "<title>");
	write_name(svg, shown, ALL_COLUMNS);
	buffer_text(svg->buffer, " (");
	svg_number(svg->buffer, svg->total[node]);
	buffer_text(svg->buffer, " ");
	svg_text(svg->buffer, strcmp(unit, "count") || svg->is_difference ? unit : profile_string_text(svg->profile, type->type),
		 HEAD_COLUMNS);
	buffer_printf(svg->buffer, ", %.2f%%", 100 * share(svg, node));
	if (svg->is_difference) {
		buffer_text(svg->buffer, "; before ");
		svg_number(svg->buffer, svg->before[node]);
	}
	buffer_text(svg->buffer, ")</title>");
}

static void write_frame(struct svg *svg, uint32_t node, uint32_t height)
{
	double x = MARGIN + svg->x[node] * (WIDTH - 2 * MARGIN), width = share(svg, node) * (WIDTH - 2 * MARGIN);
	uint32_t y = height - MARGIN - (svg->depth[node] + 1) * FRAME_HEIGHT;
	struct shown shown = shown_of(svg, node);

	buffer_text(svg->buffer, "<g>");
	write_title(svg, node, shown);
	buffer_printf(svg->buffer, "<rect x=\"%.1f\" y=\"%" PRIu32 "\" width=\"%.1f\" height=\"%d\" fill=\"", x, y, width,
		      FRAME_HEIGHT - 1);
	write_colour(svg, node, shown);
	buffer_text(svg->buffer, "\"/>");
	if (width >= TEXT_PIXELS) {
		buffer_printf(svg->buffer, "<text x=\"%.1f\" y=\"%.1f\">", x + 3, y + 11.5);
		write_name(svg, shown, (uint32_t)((width - 6) / COLUMN_PIXELS));
		buffer_text(svg->buffer, "</text>");
	}
	buffer_text(svg->buffer, "</g>\n");
	buffer_settle(svg->buffer);
}

/* Collects the lines of the account that a reader needs to judge the picture: what was sampled, what is missing. */
static int find_lines(struct svg *svg)
{
	static const char *const shown[] = { "warning: ", "event: ", "samples: ", "lost: " };
	CLEANUP(buffer_done) struct buffer all = BUFFER_INIT(svg->buffer->max);
	char *line, *end;

	account_text(profile_account_of(svg->profile), 0, &all);
	if (all.err)
		return all.err;
	for (line = all.data; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
			if (strncmp(line, shown[i], strlen(shown[i])))
				continue;
			buffer_printf(&svg->lines, "<text x=\"%d\" y=\"%" PRIu32 "\">", MARGIN,
				      TITLE_HEIGHT + svg->nr_lines++ * LINE_HEIGHT);
			svg_text(&svg->lines, line, HEAD_COLUMNS);
			buffer_text(&svg->lines, "</text>\n");
		}
	}
	return svg->lines.err;
}

static void write_head(struct svg *svg, uint32_t height)
{
	buffer_printf(
	    svg->buffer,
	    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%" PRIu32 "\" viewBox=\"0 0 %d %" PRIu32 "\">\n"
	    "<style>text { font: 12px Verdana, \"DejaVu Sans\", sans-serif; pointer-events: none } .title { font-size: 17px; text-anchor: "
	    "middle } "
	    "g:hover > rect { stroke: black; stroke-width: .6 }</style>\n"
	    "<defs><pattern id=\"unknown\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
	    "<rect width=\"6\" height=\"6\" fill=\"#ddd\"/><rect width=\"3\" height=\"6\" fill=\"#c4c4c4\"/></pattern></defs>\n"
	    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fdfcfa\"/>\n<text class=\"title\" x=\"%d\" y=\"20\">%s</text>\n",
	    WIDTH, height, WIDTH, height, WIDTH / 2,
	    svg->is_difference ? "Differential flame graph: red grew, blue shrank" : "Flame graph");
	buffer_append(svg->buffer, svg->lines.data, svg->lines.size);
}

static void write_frames(struct svg *svg, uint32_t height)
{
	uint32_t nr_narrow = 0;

	write_frame(svg, ROOT, height);
	for (uint32_t i = 0; i + 1 < svg->nodes.nr && !svg->buffer->err; i++) {
		if (is_drawn(svg, svg->sorted[i]))
			write_frame(svg, svg->sorted[i], height);
		else
			nr_narrow++;
	}
	if (nr_narrow)
		buffer_printf(svg->buffer,
			      "<text x=\"%d\" y=\"%" PRIu32 "\">%" PRIu32 " frames narrower than %.1f pixels are not drawn</text>\n",
			      MARGIN, TITLE_HEIGHT + svg->nr_lines * LINE_HEIGHT, nr_narrow, MIN_PIXELS);
}

static bool is_difference(const struct profile *profile)
{
	uint32_t nr_types;
	const struct profile_value_type *types = profile_value_types(profile, &nr_types);

	return nr_types == 2 && !strcmp(profile_string_text(profile, types[0].type), "before") &&
	       !strcmp(profile_string_text(profile, types[1].type), "after");
}

static void svg_done(struct svg *svg)
{
	frame_list_done(&svg->frames);
	call_nodes_done(&svg->nodes);
	buffer_done(&svg->name);
	buffer_done(&svg->lines);
	free(svg->name_ranks);
	free(svg->base_ranks);
	free(svg->sorted);
	free(svg->depth);
	free(svg->total);
	free(svg->before);
	free(svg->x);
}

int write_svg(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(svg_done) struct svg svg = {
		.buffer = buffer,
		.profile = profile,
		.is_difference = is_difference(profile),
		.name = BUFFER_INIT(buffer->max),
		.lines = BUFFER_INIT(buffer->max),
	};
	uint32_t height;
	int err = frame_list_find(profile, true, &svg.frames);

	if (!err)
		err = add_samples(&svg, options->threads);
	if (!err)
		err = find_ranks(&svg);
	if (!err)
		err = lay_out(&svg);
	if (!err)
		err = find_lines(&svg);
	if (err)
		return err;
	height = TITLE_HEIGHT + (svg.nr_lines + 1) * LINE_HEIGHT + (svg.max_depth + 1) * FRAME_HEIGHT + 2 * MARGIN;
	write_head(&svg, height);
	write_frames(&svg, height);
	buffer_text(buffer, "</svg>\n");
	return 0;
}
