// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_stacks.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "base/utf8.h"
#include "codec/json_read.h"

#define MAX_NAMES_BYTES ((size_t)64 << 20)
#define MAX_STACKS	1000000
#define FIRST_STACKS	256
#define MAX_NAME_BYTES	1024 /* sent of a name */
#define MAX_TEXT_BYTES	((size_t)1 << 20)

void sky_stacks_done(struct sky_stacks *stacks)
{
	buffer_done(&stacks->names);
	u64_map_done(&stacks->index);
	free(stacks->all);
	*stacks = (struct sky_stacks){ 0 };
}

/* --- a line --------------------------------------------------------------------------------------------------------------------------- */

struct line {
	struct buffer key, text, name, file; /* room */
	int64_t count, duration_ns;
	bool is_sample;
	bool has_count, has_duration;        /* a value of this unit was read: the first one counts */
	uint32_t nr_frames, nr_kernel;       /* kernel: up to the last frame of the kernel */
};

#define LINE_INIT \
	((struct line){ .key = BUFFER_INIT(MAX_TEXT_BYTES), .text = BUFFER_INIT(MAX_TEXT_BYTES), \
			.name = BUFFER_INIT(MAX_TEXT_BYTES), .file = BUFFER_INIT(MAX_TEXT_BYTES) })

static void line_done(struct line *line)
{
	buffer_done(&line->key);
	buffer_done(&line->text);
	buffer_done(&line->name);
	buffer_done(&line->file);
}

static void read_value(struct json_reader *r, struct line *line)
{
	int64_t value = 0;
	bool is_count = false, is_time = false, is_sum = true;

	if (!json_enter(r, '{'))
		return;
	while (json_next_key(r, &line->key)) {
		if (!strcmp(line->key.data, "unit")) {
			json_read_text(r, &line->text);
			is_count = line->text.data && !strcmp(line->text.data, "count");
			is_time = line->text.data && !strcmp(line->text.data, "nanoseconds");
		} else if (!strcmp(line->key.data, "value")) {
			value = json_read_i64(r);
		} else {
			is_sum = is_sum && strcmp(line->key.data, "fold") != 0;
			json_skip(r);
		}
	}
	if (is_count && is_sum && !line->has_count) {
		line->count = value;
		line->has_count = true;
	} else if (is_time && is_sum && !line->has_duration) {
		line->duration_ns = value;
		line->has_duration = true;
	}
}

/* Cuts at the end of a code point. */
static size_t cut_at(const char *text, size_t size)
{
	const char *pos = text, *end = text + size;
	size_t fits = 0;

	if (size <= MAX_NAME_BYTES)
		return size;
	while ((size_t)(pos - text) <= MAX_NAME_BYTES) {
		fits = (size_t)(pos - text);
		utf8_next(&pos, end);
	}
	return fits;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* A frame of an interpreter is "main (app.py)", as in folded stacks. */
static void add_name(struct sky_stacks *stacks, const struct line *line, bool is_interpreted)
{
	const char *name = line->name.data ?: "", *file = line->file.data ?: "";

	buffer_append(&stacks->names, name, cut_at(name, strlen(name)));
	if (is_interpreted && *file) {
		file = base_name(file);
		buffer_text(&stacks->names, " (");
		buffer_append(&stacks->names, file, cut_at(file, strlen(file)));
		buffer_text(&stacks->names, ")");
	}
	buffer_append(&stacks->names, "", 1);
}

static void read_frame(struct json_reader *r, struct sky_stacks *stacks, struct line *line)
{
	bool is_kernel = false, is_interpreted = true;

	line->file.size = line->name.size = 0;
	if (line->file.data)
		*line->file.data = '\0';
	if (!json_enter(r, '{'))
		return;
	while (json_next_key(r, &line->key)) {
		if (!strcmp(line->key.data, "name")) {
			json_read_text(r, &line->name);
		} else if (!strcmp(line->key.data, "file")) {
			json_read_text(r, &line->file);
		} else if (!strcmp(line->key.data, "kind")) {
			json_read_text(r, &line->text);
			is_kernel = line->text.data && !strcmp(line->text.data, "kernel");
			is_interpreted = line->text.data && !is_kernel && strcmp(line->text.data, "native") != 0;
		} else {
			json_skip(r);
		}
	}
	add_name(stacks, line, is_interpreted);
	line->nr_frames++;
	if (is_kernel || (line->name.data && !strcmp(line->name.data, "[Missed Kernel Stack]")))
		line->nr_kernel = line->nr_frames;
}

static void read_stack(struct json_reader *r, struct sky_stacks *stacks, struct line *line)
{
	if (!json_enter(r, '['))
		return;
	while (json_next(r))
		read_frame(r, stacks, line);
}

static bool is_same(const struct sky_stacks *stacks, const struct sky_stack *a, const struct sky_stack *b)
{
	return a->bytes == b->bytes && a->nr_kernel == b->nr_kernel && a->nr_user == b->nr_user &&
	       !memcmp(stacks->names.data + a->first, stacks->names.data + b->first, a->bytes);
}

/* The names were appended behind the last stack's. */
static int add_stack(struct sky_stacks *stacks, const struct sky_stack *stack)
{
	uint64_t hash = hash_bytes(stacks->names.data + stack->first, stack->bytes, stack->nr_kernel);
	uint32_t cursor = 0;

	for (uint32_t *at; (at = u64_map_each(&stacks->index, hash, &cursor));) {
		struct sky_stack *old = &stacks->all[*at];

		if (!is_same(stacks, old, stack))
			continue;
		old->count = number_sum(old->count, stack->count);
		old->duration_ns = number_sum(old->duration_ns, stack->duration_ns);
		stacks->names.size = stack->first;
		return 0;
	}
	if (!array_grow(&stacks->all, stacks->nr, &stacks->max, sizeof(*stacks->all), FIRST_STACKS, MAX_STACKS) ||
	    u64_map_add(&stacks->index, hash, stacks->nr))
		return -ENOMEM;
	stacks->all[stacks->nr++] = *stack;
	return 0;
}

/* Reads what follows a key of the object. */
static void read_key(struct json_reader *r, struct sky_stacks *stacks, struct line *line)
{
	if (!strcmp(line->key.data, "record")) {
		json_read_text(r, &line->text);
		line->is_sample = line->text.data && !strcmp(line->text.data, "sample");
	} else if (line->is_sample && !strcmp(line->key.data, "values") && json_enter(r, '[')) {
		while (json_next(r))
			read_value(r, line);
	} else if (line->is_sample && !strcmp(line->key.data, "stack")) {
		read_stack(r, stacks, line);
	} else {
		json_skip(r);
	}
}

static void line_begin(struct line *line)
{
	line->count = line->duration_ns = 0;
	line->is_sample = line->has_count = line->has_duration = false;
	line->nr_frames = line->nr_kernel = 0;
}

static int read_line(struct sky_stacks *stacks, struct line *line, const char *text, size_t size, const char **ret_bad)
{
	struct json_reader r = json_reader_of(text, size);
	struct sky_stack stack = { .first = stacks->names.size };

	line_begin(line);
	if (json_enter(&r, '{')) {
		while (json_next_key(&r, &line->key))
			read_key(&r, stacks, line);
	}
	*ret_bad = r.bad;
	if (r.bad || stacks->names.err)
		return r.bad ? -EBADMSG : stacks->names.err;
	if (!line->is_sample || line->count <= 0)
		return 0;
	if (!line->nr_frames) {
		stacks->nr_without += (uint64_t)line->count;
		return 0;
	}
	stack.bytes = stacks->names.size - stack.first;
	stack.nr_kernel = line->nr_kernel;
	stack.nr_user = line->nr_frames - line->nr_kernel;
	stack.count = line->count;
	stack.duration_ns = line->duration_ns;
	return add_stack(stacks, &stack);
}

int sky_stacks_read(struct sky_stacks *stacks, const void *lines, size_t size, struct diag *diag)
{
	CLEANUP(line_done) struct line line = LINE_INIT;
	const char *pos = lines, *end = pos + size, *bad = NULL;
	int err = 0;

	*stacks = (struct sky_stacks){ .names = BUFFER_INIT(MAX_NAMES_BYTES) };
	while (!err && pos < end) {
		const char *newline = memchr(pos, '\n', (size_t)(end - pos)) ?: end;

		err = read_line(stacks, &line, pos, (size_t)(newline - pos), &bad);
		pos = newline < end ? newline + 1 : end;
	}
	return bad ? diag_errno(diag, EBADMSG, "the window cannot be read: %s", bad) : err;
}

/* --- records -------------------------------------------------------------------------------------------------------------------------- */

int sky_stacks_records(const struct sky_stacks *stacks, int (*take)(void *arg, const struct sky_record *record), void *arg)
{
	uint32_t id = 0;

	for (uint32_t i = 0; i < stacks->nr; i++) {
		const struct sky_stack *stack = &stacks->all[i];
		const char *names = stacks->names.data + stack->first;
		int64_t left = stack->count, ns_left = stack->duration_ns;
		struct sky_record record = { .kernel = { .names = names, .nr = stack->nr_kernel }, .user = { .nr = stack->nr_user } };

		for (uint32_t n = 0; n < stack->nr_kernel; n++)
			names += strlen(names) + 1;
		record.user.names = names;
		for (int32_t most = INT32_MAX; left; most--) {
			int err;

			record.kernel.id = record.user.id = ++id;
			record.count = left < most ? (int32_t)left : most;
			record.duration_ns = left < most ? ns_left : (int64_t)((double)ns_left * record.count / (double)left);
			left -= record.count;
			ns_left -= record.duration_ns;
			err = take(arg, &record);
			if (err)
				return err;
		}
	}
	return 0;
}
