// SPDX-License-Identifier: Apache-2.0
/* Reads the profile back that sonde's own page holds (page/view_json.c): a tree of calls below boxes for all, processes and threads. The
 * lines of nodes, the histograms, which are text there, and source are not read. */
#include <errno.h>
#include <string.h>

#include "importer/json_account.h"
#include "importer/call_tree.h"
#include "importer/json_column.h"
#include "importer/reading.h"
#include "viewers/page_labels.h"
#include "viewers/viewers.h"

#define FORMAT	     "sonde page"
#define PAGE_VERSION 1
#define NO_KIND	     FRAME_KIND_COUNT /* a box that is no frame */

/* X(object, column in the file) */
#define COLUMN_LIST(X) \
	X(frames, name) X(frames, path) X(frames, kind) X(frames, file) X(frames, line) X(nodes, up) X(nodes, frame) \
	X(threads, comm) X(threads, tgid) X(threads, tid) X(samples, node) X(samples, thread) X(samples, cpu) X(samples, after_us)

#define X(object, column) COLUMN_##object##_##column,
enum column_id { COLUMN_LIST(X) NR_COLUMNS };
#undef X

static const struct {
	const char *object, *column;
} column_places[] = {
#define X(object, column) { #object, #column },
	COLUMN_LIST(X)
#undef X
};

struct page {
	struct reading in;
	struct json_column columns[NR_COLUMNS], values[PROFILE_MAX_VALUES];
	struct json_column kinds, strings; /* enum frame_kind or NO_KIND; strings of the profile */
	struct page_labels labels;
	struct call_tree tree;
	struct profile_value_type types[PROFILE_MAX_VALUES];
	uint32_t nr_types, nr_values;
	uint64_t version, shown, untimed, origin_ns;
};

static void page_done(struct page *page)
{
	reading_done(&page->in);
	for (int i = 0; i < NR_COLUMNS; i++)
		json_column_done(&page->columns[i]);
	for (int i = 0; i < PROFILE_MAX_VALUES; i++)
		json_column_done(&page->values[i]);
	json_column_done(&page->kinds);
	json_column_done(&page->strings);
	page_labels_done(&page->labels);
	call_tree_done(&page->tree);
}

static int64_t cell(const struct page *page, enum column_id id, int64_t row)
{
	return json_column_at(&page->columns[id], row);
}

static int read_values(struct page *page)
{
	struct json_reader *r = &page->in.r;
	int err = 0;

	for (json_enter(r, '['); !err && json_next(r); page->nr_values++) {
		if (page->nr_values == PROFILE_MAX_VALUES) {
			json_fail(r, PROFILE_TOO_MANY_VALUES);
			break;
		}
		err = json_column_read(&page->values[page->nr_values], r, 0);
	}
	return err;
}

static int read_object(struct page *page, const char *object)
{
	struct reading *in = &page->in;
	int err = 0;

	for (json_enter(&in->r, '{'); !err && json_next_key(&in->r, &in->key);) {
		int id = 0;

		while (id < NR_COLUMNS && (strcmp(column_places[id].object, object) != 0 || !reading_is_key(in, column_places[id].column)))
			id++;
		if (id < NR_COLUMNS)
			err = json_column_read(&page->columns[id], &in->r, 0);
		else if (reading_is_key(in, "values"))
			err = read_values(page);
		else if (reading_is_key(in, "untimed"))
			page->untimed = json_read_u64(&in->r);
		else if (reading_is_key(in, "origin_ns"))
			page->origin_ns = json_read_u64(&in->r);
		else
			json_skip(&in->r);
	}
	return err;
}

static bool is_box(const char *kind)
{
	static const char *const boxes[] = { "all", "process", "comm", "thread" };

	for (size_t i = 0; i < ARRAY_SIZE(boxes); i++) {
		if (!strcmp(kind, boxes[i]))
			return true;
	}
	return false;
}

static int read_kinds(struct page *page)
{
	struct reading *in = &page->in;
	int err = 0;

	for (json_enter(&in->r, '['); !err && json_next(&in->r);) {
		enum frame_kind kind;

		json_read_text(&in->r, &in->text);
		if (reading_failed(in))
			break;
		kind = frame_kind_by_name(in->text.data);
		if (kind == FRAME_KIND_COUNT && !is_box(in->text.data))
			kind = FRAME_MARK; /* the page has kinds of marks */
		err = json_column_add(&page->kinds, kind);
	}
	return err;
}

static int read_strings(struct page *page)
{
	struct reading *in = &page->in;
	int err = 0;

	for (json_enter(&in->r, '['); !err && !reading_failed(in) && json_next(&in->r);)
		err = json_column_add(&page->strings, reading_string(in));
	return err;
}

static void read_types(struct page *page)
{
	struct reading *in = &page->in;

	for (json_enter(&in->r, '['); json_next(&in->r); page->nr_types++) {
		if (page->nr_types == PROFILE_MAX_VALUES) {
			json_fail(&in->r, PROFILE_TOO_MANY_VALUES);
			return;
		}
		for (uint32_t i = json_enter(&in->r, '[') ? 0 : 2; json_next(&in->r); i++) {
			if (i < 2)
				*(i ? &page->types[page->nr_types].unit : &page->types[page->nr_types].type) = reading_string(in);
			else
				json_skip(&in->r);
		}
	}
}

static int read_key(struct page *page)
{
	static const char *const objects[] = { "frames", "nodes", "threads", "samples" };
	struct reading *in = &page->in;

	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		if (reading_is_key(in, objects[i]))
			return read_object(page, objects[i]);
	}
	if (reading_is_key(in, "kinds"))
		return read_kinds(page);
	if (reading_is_key(in, "strings"))
		return read_strings(page);
	if (reading_is_key(in, "labels"))
		return page_labels_read(&page->labels, in);
	if (reading_is_key(in, "value_types"))
		read_types(page);
	else if (reading_is_key(in, "shown"))
		page->shown = json_read_u64(&in->r);
	else if (reading_is_key(in, "version"))
		page->version = json_read_u64(&in->r);
	else if (reading_is_key(in, "account"))
		json_account(&in->r, &in->key, &in->text, profile_account(in->importer->profile));
	else
		json_skip(&in->r);
	return 0;
}

static uint32_t string_of(const struct page *page, int64_t row)
{
	int64_t string = json_column_at(&page->strings, row);

	return string == NO_CELL ? PROFILE_EMPTY_STRING : (uint32_t)string;
}

static uint32_t number_of(int64_t value)
{
	return value > 0 && value <= INT32_MAX ? (uint32_t)value : 0;
}

/* The location of a frame; PROFILE_NONE: no memory, or (with *ret_is_box) it is no frame. */
static uint32_t location_of(struct page *page, int64_t frame, bool *ret_is_box)
{
	int64_t kind = json_column_at(&page->kinds, cell(page, COLUMN_frames_kind, frame));
	struct frame_text text = {
		.name = string_of(page, cell(page, COLUMN_frames_name, frame)),
		.file = string_of(page, cell(page, COLUMN_frames_file, frame)),
		.first_line = number_of(cell(page, COLUMN_frames_line, frame)),
		.kind = kind == NO_CELL ? FRAME_NATIVE : (enum frame_kind)kind,
	};

	*ret_is_box = kind == NO_KIND;
	if (text.kind == FRAME_NATIVE)
		text.path = string_of(page, cell(page, COLUMN_frames_path, frame));
	return *ret_is_box ? PROFILE_NONE : reading_location(page->in.importer, &text);
}

static int link_nodes(struct page *page)
{
	const struct json_column *up = &page->columns[COLUMN_nodes_up];
	int err = 0;

	for (int64_t i = 0; i < up->nr && !err; i++) {
		int64_t parent = up->cells[i] > 0 && up->cells[i] <= i ? i - up->cells[i] : PROFILE_NONE;
		bool is_box;
		uint32_t location = location_of(page, cell(page, COLUMN_nodes_frame, i), &is_box);

		err = location == PROFILE_NONE && !is_box ? -ENOMEM : call_tree_add(&page->tree, (uint32_t)parent, location);
	}
	return err;
}

static int add_sample(struct page *page, uint32_t row, uint64_t time_ns)
{
	struct profile_sample sample = import_blank();
	int64_t node = cell(page, COLUMN_samples_node, row), thread = cell(page, COLUMN_samples_thread, row);
	int64_t cpu = cell(page, COLUMN_samples_cpu, (int64_t)row - (int64_t)page->untimed);
	int err;

	if (node < 0 || node >= page->tree.nr)
		return import_bad(page->in.importer, FORMAT, page->in.r.pos, "a sample's node is not in the list");
	import_begin(page->in.importer);
	sample.comm = string_of(page, cell(page, COLUMN_threads_comm, thread));
	sample.tgid = number_of(cell(page, COLUMN_threads_tgid, thread));
	sample.tid = number_of(cell(page, COLUMN_threads_tid, thread));
	sample.cpu = number_of(cpu) ? number_of(cpu) - 1 : PROFILE_NONE;
	sample.time_ns = time_ns;
	for (uint32_t i = 0; i < page->nr_types; i++) {
		int64_t value = json_column_at(&page->values[i], row);

		sample.values[i] = value == NO_CELL ? 0 : value;
	}
	err = call_tree_stack(page->in.importer, &page->tree, (uint32_t)node, &sample);
	page_labels_add(&page->labels, page->in.importer, row, &sample); /* the call before forgets labels */
	return err ? err : import_end_sample(page->in.importer, &sample);
}

static int add_samples(struct page *page)
{
	uint64_t time_ns = page->origin_ns;
	int err = 0;

	if (page->untimed > INT32_MAX)
		return import_bad(page->in.importer, FORMAT, page->in.r.pos, "it has more samples without a time than samples");
	for (uint32_t i = 0; i < page->columns[COLUMN_samples_node].nr && !err; i++) {
		int64_t after_us = cell(page, COLUMN_samples_after_us, (int64_t)i - (int64_t)page->untimed);

		time_ns += after_us > 0 ? (uint64_t)after_us * 1000 : 0;
		err = add_sample(page, i, i < page->untimed ? 0 : time_ns);
	}
	return err;
}

int read_page(struct importer *importer)
{
	CLEANUP(page_done) struct page page = { .in = READING_OF(importer) };
	const char *data = memmem(importer->bytes, importer->size, PAGE_DATA_BEGINS, strlen(PAGE_DATA_BEGINS));
	int err = 0;

	if (!data)
		return import_bad(importer, FORMAT, importer->bytes, "it is HTML, but holds no profile of sonde");
	page.in.r = json_reader_of(data, importer->size - (size_t)(data - importer->bytes));
	for (json_enter(&page.in.r, '{'); !err && !reading_failed(&page.in) && json_next_key(&page.in.r, &page.in.key);)
		err = read_key(&page);
	if (!err && !page.in.r.bad && page.version != PAGE_VERSION)
		return import_bad(importer, FORMAT, data, "its version is another one than this sonde's");
	if (!err && !page.in.r.bad && (!page.nr_types || page.shown >= page.nr_types))
		json_fail(&page.in.r, "it does not say what its values are");
	if (!err)
		err = reading_verdict(&page.in, FORMAT);
	if (err)
		return err;
	profile_set_value_types(importer->profile, page.types, page.nr_types, (uint32_t)page.shown);
	err = link_nodes(&page);
	return err ? err : add_samples(&page);
}
