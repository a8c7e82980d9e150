// SPDX-License-Identifier: Apache-2.0
/* A thread has tables of columns: samples refer to stacks, stacks to frames and to their callers' stacks, frames to functions, functions to
 * strings and resources, resources to libraries. In newer versions all tables but the samples are in `shared`. */
#include <errno.h>
#include <string.h>

#include "importer/call_tree.h"
#include "importer/json_column.h"
#include "importer/reading.h"
#include "viewers/viewers.h"

#define MS_DECIMALS 6 /* milliseconds as nanoseconds */

/* X(table, column in the file, decimals) */
#define COLUMN_LIST(X) \
	X(samples, stack, 0) X(samples, time, MS_DECIMALS) X(samples, timeDeltas, MS_DECIMALS) X(samples, weight, MS_DECIMALS) \
	X(stackTable, frame, 0) X(stackTable, prefix, 0) \
	X(frameTable, func, 0) X(frameTable, line, 0) X(frameTable, category, 0) \
	X(funcTable, name, 0) X(funcTable, resource, 0) X(funcTable, fileName, 0) X(funcTable, lineNumber, 0) \
	X(resourceTable, lib, 0)

#define X(table, column, decimals) COLUMN_##table##_##column,
enum column_id { COLUMN_LIST(X) NR_COLUMNS };
#undef X

static const struct {
	const char *table, *column;
	int nr_decimals;
} column_places[] = {
#define X(table, column, decimals) { #table, #column, decimals },
	COLUMN_LIST(X)
#undef X
};

struct firefox {
	struct reading in;
	struct json_column columns[NR_COLUMNS];
	struct json_column strings;  /* of the thread: strings of the profile */
	struct json_column categories, libs; /* kinds of frames; strings: paths */
	struct json_column locations; /* by frame */
	struct call_tree tree;
	struct json_reader meta, lib_list, threads, shared;
	struct profile_sample sample; /* of the thread: its name and ids */
	int64_t start_ns;
	bool is_time; /* the weights are times */
};

static void firefox_done(struct firefox *file)
{
	reading_done(&file->in);
	for (int i = 0; i < NR_COLUMNS; i++)
		json_column_done(&file->columns[i]);
	json_column_done(&file->strings);
	json_column_done(&file->categories);
	json_column_done(&file->libs);
	json_column_done(&file->locations);
	call_tree_done(&file->tree);
}

static int64_t cell(const struct firefox *file, enum column_id id, int64_t row)
{
	return json_column_at(&file->columns[id], row);
}

static int read_table(struct firefox *file, const char *table)
{
	struct reading *in = &file->in;
	int err = 0;

	for (json_enter(&in->r, '{'); !err && json_next_key(&in->r, &in->key);) {
		int id = 0;

		while (id < NR_COLUMNS && (strcmp(column_places[id].table, table) != 0 || !reading_is_key(in, column_places[id].column)))
			id++;
		if (id < NR_COLUMNS && json_peek(&in->r) == '[') {
			err = json_column_read(&file->columns[id], &in->r, column_places[id].nr_decimals);
		} else if (!strcmp(table, "samples") && reading_is_key(in, "weightType") && json_peek(&in->r) == '"') {
			json_read_text(&in->r, &in->text);
			file->is_time = !in->r.bad && !in->text.err && !strcmp(in->text.data, "tracing-ms");
		} else {
			json_skip(&in->r);
		}
	}
	return err;
}

static int read_strings(struct firefox *file)
{
	struct reading *in = &file->in;
	int err = 0;

	file->strings.nr = 0;
	for (json_enter(&in->r, '['); !err && !reading_failed(in) && json_next(&in->r);)
		err = json_column_add(&file->strings, reading_string(in));
	return err;
}

/* Reads what a thread and `shared` have in common. True: it was one of these tables, or its strings. */
static bool read_part(struct firefox *file, int *err)
{
	static const char *const tables[] = { "samples", "stackTable", "frameTable", "funcTable", "resourceTable" };
	struct reading *in = &file->in;

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (reading_is_key(in, tables[i]) && json_peek(&in->r) == '{') {
			*err = read_table(file, tables[i]);
			return true;
		}
	}
	if (!reading_is_key(in, "stringArray"))
		return false;
	*err = read_strings(file);
	return true;
}

static enum frame_kind kind_of_category(const char *name)
{
	static const struct {
		const char *name;
		enum frame_kind kind;
	} known[] = {
		{ "Kernel", FRAME_KERNEL },
#define X(id, name, shown, ...) { shown, FRAME_##id },
		SONDE_RUNTIME_LIST(X, X, SONDE_NO_RUNTIME)
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(name, known[i].name))
			return known[i].kind;
	}
	return FRAME_NATIVE;
}

/* The value of a key of the object that begins here is read as a text; "" if there is none. */
static void read_named(struct reading *in, const char *name, const char *otherwise, struct buffer *ret_text)
{
	ret_text->size = 0;
	buffer_text(ret_text, "");
	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if ((reading_is_key(in, name) || (reading_is_key(in, otherwise) && !ret_text->size)) && json_peek(&in->r) == '"')
			json_read_text(&in->r, ret_text);
		else
			json_skip(&in->r);
	}
}

static int read_categories(struct firefox *file)
{
	struct reading *in = &file->in;
	int err = 0;

	for (json_enter(&in->r, '['); !err && json_next(&in->r);) {
		read_named(in, "name", "name", &in->text);
		if (!reading_failed(in))
			err = json_column_add(&file->categories, kind_of_category(in->text.data));
	}
	return err;
}

static int read_meta(struct firefox *file)
{
	struct reading *in = &file->in;
	int err = 0;

	reading_go(in, file->meta);
	for (json_enter(&in->r, '{'); !err && json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "startTime") && json_peek(&in->r) == '0')
			file->start_ns = json_read_decimal(&in->r, MS_DECIMALS);
		else if (reading_is_key(in, "categories") && json_peek(&in->r) == '[')
			err = read_categories(file);
		else
			json_skip(&in->r);
	}
	return err ? err : reading_verdict(in, "Firefox profile");
}

static int read_libs(struct firefox *file)
{
	struct reading *in = &file->in;
	int err = 0;

	file->libs.nr = 0;
	for (json_enter(&in->r, '['); !err && json_next(&in->r);) {
		uint32_t path;

		read_named(in, "path", "name", &in->text);
		if (reading_failed(in))
			break;
		path = import_string(in->importer, in->text.data, in->text.size);
		err = path == PROFILE_NONE ? -ENOMEM : json_column_add(&file->libs, path);
	}
	return err;
}

static uint32_t string_at(const struct firefox *file, int64_t row)
{
	int64_t string = json_column_at(&file->strings, row);

	return string == NO_CELL ? PROFILE_EMPTY_STRING : (uint32_t)string;
}

static uint32_t line_of(int64_t cell)
{
	return cell > 0 && cell <= INT32_MAX ? (uint32_t)cell : 0;
}

static int add_frame(struct firefox *file, uint32_t row)
{
	int64_t func = cell(file, COLUMN_frameTable_func, row);
	int64_t kind = json_column_at(&file->categories, cell(file, COLUMN_frameTable_category, row));
	int64_t path = json_column_at(&file->libs, cell(file, COLUMN_resourceTable_lib, cell(file, COLUMN_funcTable_resource, func)));
	struct frame_text frame = {
		.name = string_at(file, cell(file, COLUMN_funcTable_name, func)),
		.file = string_at(file, cell(file, COLUMN_funcTable_fileName, func)),
		.path = path == NO_CELL ? PROFILE_EMPTY_STRING : (uint32_t)path,
		.first_line = line_of(cell(file, COLUMN_funcTable_lineNumber, func)),
		.line = line_of(cell(file, COLUMN_frameTable_line, row)),
		.kind = kind == NO_CELL ? FRAME_NATIVE : (enum frame_kind)kind,
	};
	uint32_t location = reading_location(file->in.importer, &frame);

	return location == PROFILE_NONE ? -ENOMEM : json_column_add(&file->locations, location);
}

/* Makes the tree of the tables that were read. */
static int link_tables(struct firefox *file)
{
	const struct json_column *stacks = &file->columns[COLUMN_stackTable_frame];
	int err = 0;

	file->locations.nr = 0;
	file->tree.nr = 0;
	for (uint32_t i = 0; i < file->columns[COLUMN_frameTable_func].nr && !err; i++)
		err = add_frame(file, i);
	for (uint32_t i = 0; i < stacks->nr && !err; i++) {
		int64_t location = json_column_at(&file->locations, stacks->cells[i]), caller = cell(file, COLUMN_stackTable_prefix, i);

		if (location == NO_CELL || (caller != NO_CELL && (caller < 0 || caller >= i)))
			return import_bad(file->in.importer, "Firefox profile", file->in.r.pos,
					  "a stack has no frame, or a caller that does not stand before it");
		err = call_tree_add(&file->tree, caller == NO_CELL ? PROFILE_NONE : (uint32_t)caller, (uint32_t)location);
	}
	return err;
}

static int add_sample(struct firefox *file, uint32_t row, int64_t time_ns)
{
	struct profile_sample sample = file->sample;
	int64_t stack = cell(file, COLUMN_samples_stack, row), weight = cell(file, COLUMN_samples_weight, row);
	int err;

	if (stack == NO_CELL) /* the thread did not run */
		return 0;
	if (stack < 0 || stack >= file->tree.nr)
		return import_bad(file->in.importer, "Firefox profile", file->in.r.pos, "a sample's stack is not in the list");
	import_begin(file->in.importer);
	err = call_tree_stack(file->in.importer, &file->tree, (uint32_t)stack, &sample);
	if (file->start_ns > 0 && time_ns > 0 && !__builtin_add_overflow(file->start_ns, time_ns, &time_ns))
		sample.time_ns = (uint64_t)time_ns;
	sample.values[0] = weight == NO_CELL ? 1 : file->is_time ? weight : weight / 1000000;
	return err ? err : import_end_sample(file->in.importer, &sample);
}

static int add_samples(struct firefox *file)
{
	int64_t time_ns = 0;
	int err = 0;

	for (uint32_t i = 0; i < file->columns[COLUMN_samples_stack].nr && !err; i++) {
		int64_t at = cell(file, COLUMN_samples_time, i), after = cell(file, COLUMN_samples_timeDeltas, i);

		if (at != NO_CELL)
			time_ns = at;
		else if (after != NO_CELL && __builtin_add_overflow(time_ns, after, &time_ns))
			time_ns = 0;
		err = add_sample(file, i, time_ns);
	}
	return err;
}

static void read_number(struct reading *in, uint32_t *ret_number) /* also as a text: "12", "12.1" */
{
	uint64_t number = 0;

	if (json_peek(&in->r) == '0') {
		*ret_number = reading_line(in);
	} else if (json_peek(&in->r) == '"') {
		json_read_text(&in->r, &in->text);
		for (const char *c = in->r.bad || in->text.err ? "" : in->text.data; *c >= '0' && *c <= '9' && number < INT32_MAX; c++)
			number = number * 10 + (uint64_t)(*c - '0');
		*ret_number = number <= INT32_MAX ? (uint32_t)number : 0;
	} else {
		json_skip(&in->r);
	}
}

/* With shared tables only the thread's samples are its own. */
static int read_thread(struct firefox *file)
{
	struct reading *in = &file->in;
	int err = 0;

	file->sample = import_blank();
	file->is_time = false;
	for (int id = 0; id < NR_COLUMNS; id++) {
		if (!file->shared.pos || !strcmp(column_places[id].table, "samples"))
			file->columns[id].nr = 0;
	}
	for (json_enter(&in->r, '{'); !err && json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "name"))
			file->sample.comm = reading_string(in);
		else if (reading_is_key(in, "pid"))
			read_number(in, &file->sample.tgid);
		else if (reading_is_key(in, "tid"))
			read_number(in, &file->sample.tid);
		else if (reading_is_key(in, "libs") && json_peek(&in->r) == '[')
			err = read_libs(file);
		else if (!read_part(file, &err))
			json_skip(&in->r);
	}
	if (!err)
		err = reading_verdict(in, "Firefox profile");
	if (!err && file->columns[COLUMN_stackTable_frame].nr)
		err = link_tables(file);
	return err ? err : add_samples(file);
}

static int read_shared(struct firefox *file)
{
	struct reading *in = &file->in;
	int err = 0;

	reading_go(in, file->shared);
	for (json_enter(&in->r, '{'); !err && json_next_key(&in->r, &in->key);) {
		if (!read_part(file, &err))
			json_skip(&in->r);
	}
	return err ? err : reading_verdict(in, "Firefox profile");
}

static int read_outermost(struct firefox *file)
{
	struct reading *in = &file->in;

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "meta"))
			file->meta = in->r;
		else if (reading_is_key(in, "libs"))
			file->lib_list = in->r;
		else if (reading_is_key(in, "threads"))
			file->threads = in->r;
		else if (reading_is_key(in, "shared"))
			file->shared = in->r;
		json_skip(&in->r);
	}
	json_end(&in->r);
	if (!in->r.bad && (!file->meta.pos || !file->threads.pos))
		json_fail(&in->r, "it has no meta, or no threads");
	return reading_verdict(in, "Firefox profile");
}

/* Weights are times if those of any thread are. */
static int set_type(struct importer *importer)
{
	static const struct value_text time = { "time", "nanoseconds" };

	if (!memmem(importer->bytes, importer->size, "\"tracing-ms\"", 12))
		return 0; /* a new profile counts samples */
	return reading_set_types(importer, &time, 1);
}

int read_firefox(struct importer *importer)
{
	CLEANUP(firefox_done) struct firefox file = { .in = READING_OF(importer) };
	int err = read_outermost(&file);

	if (!err)
		err = set_type(importer);
	if (!err)
		err = read_meta(&file);
	if (!err && file.lib_list.pos) {
		reading_go(&file.in, file.lib_list);
		err = read_libs(&file);
	}
	if (!err && file.shared.pos)
		err = read_shared(&file);
	if (err)
		return err;
	reading_go(&file.in, file.threads);
	for (json_enter(&file.in.r, '['); !err && !reading_failed(&file.in) && json_next(&file.in.r);)
		err = read_thread(&file);
	return err ? err : reading_verdict(&file.in, "Firefox profile");
}
