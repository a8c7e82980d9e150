// SPDX-License-Identifier: Apache-2.0
/* Tables of numbers are written as columns: they are shorter, and a page's parser reads them faster than many small objects. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/account_json.h"
#include "frames/mark_kind.h"
#include "page/code_json.h"
#include "page/labels_json.h"
#include "page/view.h"
#include "show/histogram_text.h"

struct writer {
	struct json *json;
	const struct profile *profile;
	const struct view *view;
	uint32_t *numbers; /* by string of the profile: its index in the view's list + 1; 0: not there */
	uint32_t nr_strings;
};

static void write_i64(struct json *json, int64_t value)
{
	if (value >= 0) /* faster */
		json_u64(json, (uint64_t)value);
	else
		json_i64(json, value);
}

static void open_column(struct writer *writer, const char *name)
{
	json_key(writer->json, name);
	json_open(writer->json, '[');
}

static const char *kind_name(uint32_t kind)
{
	static const char *const levels[] = { [TREE_ALL - FRAME_KIND_COUNT] = "all",
					      [TREE_PROCESS - FRAME_KIND_COUNT] = "process",
					      [TREE_THREAD - FRAME_KIND_COUNT] = "thread",
					      [TREE_COMM - FRAME_KIND_COUNT] = "comm" };

	if (kind >= TREE_KIND_COUNT)
		return mark_kind_name(kind - TREE_KIND_COUNT);
	return kind >= FRAME_KIND_COUNT ? levels[kind - FRAME_KIND_COUNT] : frame_kind_name(kind);
}

/* Marks that do not say that something is missing have kinds of their own, behind those of the tree. */
static uint32_t kind_of(const struct writer *writer, const struct tree_frame *frame)
{
	enum mark_kind kind = frame->kind == FRAME_MARK ? mark_kind_of(profile_string_text(writer->profile, frame->name)) : MARK_CUT;

	return kind == MARK_CUT ? frame->kind : TREE_KIND_COUNT + kind;
}

/* A kind's number is its index in this list. */
static void write_kinds(struct writer *writer)
{
	open_column(writer, "kinds");
	for (uint32_t kind = 0; kind < TREE_KIND_COUNT + MARK_KIND_COUNT; kind++)
		json_text(writer->json, kind_name(kind));
	json_close(writer->json, ']');
}

static void write_value_types(struct writer *writer)
{
	uint32_t nr_types;
	const struct profile_value_type *types = profile_sum_types(writer->profile, &nr_types);

	open_column(writer, "value_types");
	for (uint32_t i = 0; i < nr_types; i++) {
		json_open(writer->json, '[');
		json_text(writer->json, profile_string_text(writer->profile, types[i].type));
		json_text(writer->json, profile_string_text(writer->profile, types[i].unit));
		json_close(writer->json, ']');
	}
	json_close(writer->json, ']');
	json_key_u64(writer->json, "shown", profile_shown_value(writer->profile));
}

static void use_string(struct writer *writer, uint32_t string)
{
	if (writer->numbers[string])
		return;
	writer->numbers[string] = ++writer->nr_strings;
	json_text(writer->json, profile_string_text(writer->profile, string));
}

static void write_strings(struct writer *writer)
{
	open_column(writer, "strings");
	use_string(writer, PROFILE_EMPTY_STRING);
	for (uint32_t i = 0; i < writer->view->tree.nr_frames; i++) {
		const struct tree_frame *frame = &writer->view->tree.frames[i];

		if (frame->kind != TREE_THREAD)
			use_string(writer, frame->name);
		use_string(writer, frame->path);
		use_string(writer, writer->view->tree.sources[i].file);
	}
	for (uint32_t i = 0; i < writer->view->nr_threads; i++) {
		use_string(writer, writer->view->threads[i].comm);
		use_string(writer, writer->view->threads[i].process);
	}
	json_close(writer->json, ']');
}

#define COLUMN(writer, key, nr, value) \
	do { \
		open_column(writer, key); \
		for (uint32_t i = 0; i < (nr); i++) \
			json_u64((writer)->json, value); \
		json_close((writer)->json, ']'); \
	} while (0)

static void write_frames(struct writer *writer)
{
	const struct tree *tree = &writer->view->tree;

	json_key(writer->json, "frames");
	json_open(writer->json, '{');
	COLUMN(writer, "name", tree->nr_frames,
	       tree->frames[i].kind == TREE_THREAD ? tree->frames[i].name : writer->numbers[tree->frames[i].name] - 1);
	COLUMN(writer, "path", tree->nr_frames, writer->numbers[tree->frames[i].path] - 1);
	COLUMN(writer, "kind", tree->nr_frames, kind_of(writer, &tree->frames[i]));
	COLUMN(writer, "file", tree->nr_frames, writer->numbers[tree->sources[i].file] - 1);
	COLUMN(writer, "line", tree->nr_frames, tree->sources[i].line);
	json_close(writer->json, '}');
}

static void write_nodes(struct writer *writer)
{
	const struct tree *tree = &writer->view->tree;

	json_key(writer->json, "nodes");
	json_open(writer->json, '{');
	COLUMN(writer, "up", tree->nr_nodes, i - tree->nodes[i].parent);
	COLUMN(writer, "frame", tree->nr_nodes, tree->nodes[i].frame);
	open_column(writer, "lines"); /* few nodes have them: node, first, last */
	for (uint32_t i = 0; i < tree->nr_nodes; i++) {
		if (!tree->nodes[i].min_line)
			continue;
		json_u64(writer->json, i);
		json_u64(writer->json, tree->nodes[i].min_line);
		json_u64(writer->json, tree->nodes[i].max_line);
	}
	json_close(writer->json, ']');
	json_close(writer->json, '}');
}

static void write_threads(struct writer *writer)
{
	const struct view *view = writer->view;

	json_key(writer->json, "threads");
	json_open(writer->json, '{');
	COLUMN(writer, "comm", view->nr_threads, writer->numbers[view->threads[i].comm] - 1);
	COLUMN(writer, "process", view->nr_threads, writer->numbers[view->threads[i].process] - 1);
	COLUMN(writer, "tgid", view->nr_threads, view->threads[i].tgid);
	COLUMN(writer, "tid", view->nr_threads, view->threads[i].tid);
	json_close(writer->json, '}');
}

/* Microseconds since the previous sample; the origin is the first sample's time. Samples without a time come first and have no entry. */
static void write_times(struct writer *writer)
{
	const struct view_sample *samples = writer->view->samples;
	uint32_t nr_samples = writer->view->nr_samples, untimed = 0;
	uint64_t origin_ns;

	while (untimed < nr_samples && !samples[untimed].time_ns)
		untimed++;
	json_key_u64(writer->json, "untimed", untimed);
	if (untimed == nr_samples)
		return;
	origin_ns = samples[untimed].time_ns;
	json_key_u64(writer->json, "origin_ns", origin_ns);
	open_column(writer, "cpu"); /* + 1; 0: not known */
	for (uint32_t i = untimed; i < nr_samples; i++)
		json_u64(writer->json, samples[i].cpu == PROFILE_NONE ? 0 : (uint64_t)samples[i].cpu + 1);
	json_close(writer->json, ']');
	open_column(writer, "after_us");
	for (uint32_t i = untimed; i < nr_samples; i++) {
		uint64_t before_ns = i > untimed ? samples[i - 1].time_ns : origin_ns;

		json_u64(writer->json, (samples[i].time_ns - origin_ns) / 1000 - (before_ns - origin_ns) / 1000); /* errors do not add up */
	}
	json_close(writer->json, ']');
}

static void write_samples(struct writer *writer)
{
	const struct view *view = writer->view;
	uint32_t nr_types;

	(void)profile_sum_types(writer->profile, &nr_types);
	json_key(writer->json, "samples");
	json_open(writer->json, '{');
	COLUMN(writer, "node", view->nr_samples, view->samples[i].node);
	COLUMN(writer, "thread", view->nr_samples, view->samples[i].thread);
	open_column(writer, "values");
	for (uint32_t type = 0; type < nr_types; type++) {
		json_open(writer->json, '[');
		for (uint32_t i = 0; i < view->nr_samples; i++)
			write_i64(writer->json, view->samples[i].values[type]);
		json_close(writer->json, ']');
	}
	json_close(writer->json, ']');
	write_times(writer);
	json_close(writer->json, '}');
}

/* Writes the histograms that belong to no stack as lines of text. */
static int write_histograms(struct writer *writer)
{
	CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(writer->json->buffer->max);

	open_column(writer, "histograms");
	for (uint32_t i = 0; i < profile_nr_histograms(writer->profile); i++) {
		const struct profile_histogram *histogram = profile_histogram_at(writer->profile, i);

		if (histogram_has_stack(histogram))
			continue;
		text.size = 0;
		histogram_print_one(&text, writer->profile, histogram, "");
		if (text.err)
			return text.err;
		json_open(writer->json, '[');
		for (char *line = text.data, *end; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			json_text(writer->json, line);
		}
		json_close(writer->json, ']');
	}
	json_close(writer->json, ']');
	return 0;
}

static void writer_done(struct writer *writer)
{
	free(writer->numbers);
}

int view_write(const struct view *view, const struct profile *profile, const struct annotated_code *code, struct json *json)
{
	CLEANUP(writer_done) struct writer writer = { .json = json, .profile = profile, .view = view };
	int err;

	writer.numbers = calloc(profile_nr_strings(profile), sizeof(*writer.numbers));
	if (!writer.numbers)
		return -ENOMEM;
	json_open(json, '{');
	json_key_text(json, "format", "sonde-view");
	json_key_u64(json, "version", 1);
	json_key(json, "account");
	write_account(json, profile_account_of(profile));
	write_value_types(&writer);
	write_kinds(&writer);
	write_strings(&writer);
	write_frames(&writer);
	write_nodes(&writer);
	write_threads(&writer);
	write_samples(&writer);
	err = write_labels(json, view, profile);
	if (!err && profile_nr_histograms(profile))
		err = write_histograms(&writer);
	if (code)
		write_code(json, &view->tree, profile, code);
	json_close(json, '}');
	return err;
}
