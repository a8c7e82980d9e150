// SPDX-License-Identifier: Apache-2.0
/* A file has a profile for each thread, and for each kind of value: sonde names them "name (12/34): kind". Samples are lists of frames,
 * root first, with a weight; events open and close frames, and the time between two events belongs to the stack between them. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "importer/reading.h"
#include "viewers/viewers.h"

struct kind { /* of value */
	struct value_text text;
	int nr_decimals; /* what a weight is multiplied by, to be in this unit */
};

struct speedscope {
	struct reading in;
	uint32_t *frames; /* locations, by the file's numbers */
	uint32_t nr_frames, max_frames;
	struct json_reader shared, profiles;
	struct value_text kinds[PROFILE_MAX_VALUES];
	uint32_t nr_kinds;
	uint32_t *open; /* frames that are open, root first */
	uint32_t nr_open, max_open;
};

struct thread { /* one of its profiles */
	struct json_reader samples, weights, events; /* pos NULL: none */
	struct profile_sample sample;
	uint32_t type;     /* of the value */
	int nr_decimals;
};

static void speedscope_done(struct speedscope *file)
{
	reading_done(&file->in);
	free(file->frames);
	free(file->open);
}

static int read_frame(struct speedscope *file)
{
	struct reading *in = &file->in;
	struct frame_text frame = { 0 };
	uint32_t location;

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "name"))
			frame.name = reading_string(in);
		else if (reading_is_key(in, "file"))
			frame.file = reading_string(in);
		else if (reading_is_key(in, "line"))
			frame.line = reading_line(in);
		else
			json_skip(&in->r);
	}
	if (reading_failed(in))
		return 0;
	location = reading_location(in->importer, &frame);
	if (location == PROFILE_NONE ||
	    !array_grow(&file->frames, file->nr_frames, &file->max_frames, sizeof(*file->frames), 256, UINT32_MAX / 8))
		return -ENOMEM;
	file->frames[file->nr_frames++] = location;
	return 0;
}

static int read_shared(struct speedscope *file)
{
	struct reading *in = &file->in;
	int err = 0;

	reading_go(in, file->shared);
	for (json_enter(&in->r, '{'); !err && json_next_key(&in->r, &in->key);) {
		if (!reading_is_key(in, "frames")) {
			json_skip(&in->r);
			continue;
		}
		for (json_enter(&in->r, '['); !err && !reading_failed(in) && json_next(&in->r);)
			err = read_frame(file);
	}
	return err ? err : reading_verdict(in, "speedscope");
}

static struct kind kind_of(const char *unit)
{
	static const struct {
		const char *unit;
		struct kind kind;
	} known[] = {
		{ "nanoseconds", { { "time", "nanoseconds" }, 0 } }, { "microseconds", { { "time", "nanoseconds" }, 3 } },
		{ "milliseconds", { { "time", "nanoseconds" }, 6 } }, { "seconds", { { "time", "nanoseconds" }, 9 } },
		{ "bytes", { { "bytes", "bytes" }, 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(unit, known[i].unit))
			return known[i].kind;
	}
	return (struct kind){ { "samples", "count" }, 0 };
}

/* The number of the kind of value; PROFILE_MAX_VALUES: there are too many. */
static uint32_t number_kind(struct speedscope *file, const struct kind *kind)
{
	uint32_t i = 0;

	while (i < file->nr_kinds && strcmp(file->kinds[i].type, kind->text.type) != 0)
		i++;
	if (i == file->nr_kinds && i < PROFILE_MAX_VALUES)
		file->kinds[file->nr_kinds++] = kind->text;
	return i;
}

/* The units of all profiles come first, since samples need the kinds of values. */
static int read_kinds(struct speedscope *file)
{
	struct reading *in = &file->in;

	reading_go(in, file->profiles);
	for (json_enter(&in->r, '['); json_next(&in->r);) {
		struct kind kind = kind_of("");

		for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
			if (reading_is_key(in, "unit")) {
				json_read_text(&in->r, &in->text);
				kind = in->r.bad || in->text.err ? kind : kind_of(in->text.data);
			} else {
				json_skip(&in->r);
			}
		}
		number_kind(file, &kind);
	}
	return reading_verdict(in, "speedscope");
}

static int push(struct speedscope *file, uint64_t frame)
{
	if (frame < file->nr_frames)
		return import_push(file->in.importer, file->frames[frame]);
	json_fail(&file->in.r, "it names a frame that is not in the list");
	return 0;
}

/* Ends a sample whose frames were pushed, root first. */
static int end_sample(struct speedscope *file, const struct thread *thread, int64_t value)
{
	struct profile_sample sample = thread->sample;
	int err = import_reverse(file->in.importer);

	if (thread->type < PROFILE_MAX_VALUES)
		sample.values[thread->type] = value;
	return err ? err : import_end(file->in.importer, &sample);
}

/* Samples and weights are read in step. A sample without a weight counts once. */
static int read_samples(struct speedscope *file, const struct thread *thread)
{
	struct reading *in = &file->in;
	struct json_reader weights = thread->weights;
	bool more = weights.pos && json_enter(&weights, '[');
	int err = 0;

	reading_go(in, thread->samples);
	for (json_enter(&in->r, '['); !err && json_next(&in->r);) {
		bool is_empty = true;
		int64_t value;

		more = more && json_next(&weights);
		value = more ? json_read_decimal(&weights, thread->nr_decimals) : !weights.pos;
		import_begin(in->importer);
		for (json_enter(&in->r, '['); !err && json_next(&in->r); is_empty = false)
			err = push(file, json_read_u64(&in->r));
		if (!err && !in->r.bad && !is_empty) /* an empty stack is time between samples */
			err = end_sample(file, thread, value);
	}
	if (weights.bad && !in->r.bad)
		in->r = weights;
	return err;
}

struct event {
	char type;
	uint64_t frame;
	int64_t at;
};

static struct event read_event(struct speedscope *file, int nr_decimals)
{
	struct reading *in = &file->in;
	struct event event = { 0 };

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "type")) {
			json_read_text(&in->r, &in->text);
			event.type = in->r.bad || in->text.err ? 0 : *in->text.data;
		} else if (reading_is_key(in, "frame")) {
			event.frame = json_read_u64(&in->r);
		} else if (reading_is_key(in, "at")) {
			event.at = json_read_decimal(&in->r, nr_decimals);
		} else {
			json_skip(&in->r);
		}
	}
	return event;
}

static int add_span(struct speedscope *file, const struct thread *thread, int64_t from, int64_t to)
{
	int64_t value;
	int err = 0;

	if (!file->nr_open || to <= from || __builtin_sub_overflow(to, from, &value))
		return 0;
	import_begin(file->in.importer);
	for (uint32_t i = 0; i < file->nr_open && !err; i++)
		err = push(file, file->open[i]);
	return err ? err : end_sample(file, thread, value);
}

static int apply(struct speedscope *file, const struct event *event)
{
	if (event->frame >= file->nr_frames) {
		json_fail(&file->in.r, "it names a frame that is not in the list");
	} else if (event->type == 'O') {
		if (file->nr_open == IMPORT_MAX_FRAMES)
			return diag_errno(file->in.importer->diag, EFBIG, "more than %d frames are open at once", IMPORT_MAX_FRAMES);
		if (!array_grow(&file->open, file->nr_open, &file->max_open, sizeof(*file->open), 64, IMPORT_MAX_FRAMES))
			return -ENOMEM;
		file->open[file->nr_open++] = (uint32_t)event->frame;
	} else if (event->type != 'C' || !file->nr_open || file->open[file->nr_open - 1] != event->frame) {
		json_fail(&file->in.r, "an event closes a frame that is not the innermost one");
	} else {
		file->nr_open--;
	}
	return 0;
}

static int read_events(struct speedscope *file, const struct thread *thread)
{
	struct reading *in = &file->in;
	int64_t before = 0;
	int err = 0;

	file->nr_open = 0;
	reading_go(in, thread->events);
	for (json_enter(&in->r, '['); !err && !reading_failed(in) && json_next(&in->r);) {
		struct event event = read_event(file, thread->nr_decimals);

		if (reading_failed(in))
			break;
		err = add_span(file, thread, before, event.at);
		if (!err)
			err = apply(file, &event);
		before = event.at;
	}
	return err;
}

/* sonde's profiles of a kind of value end in ": kind". */
static size_t thread_size(const char *name, size_t size)
{
	const char *end = memmem(name, size, "): ", 3);

	return end ? (size_t)(end - name) + 1 : size;
}

static int read_head(struct speedscope *file, struct thread *thread)
{
	struct reading *in = &file->in;
	struct kind kind = kind_of("");
	int err = 0;

	for (json_enter(&in->r, '{'); !err && json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "name") || reading_is_key(in, "unit")) {
			json_read_text(&in->r, &in->text);
			if (reading_failed(in))
				break;
			if (*in->key.data == 'n')
				err = reading_thread(in->importer, in->text.data, thread_size(in->text.data, in->text.size),
						     &thread->sample);
			else
				kind = kind_of(in->text.data);
			continue;
		}
		if (reading_is_key(in, "samples"))
			thread->samples = in->r;
		else if (reading_is_key(in, "weights"))
			thread->weights = in->r;
		else if (reading_is_key(in, "events"))
			thread->events = in->r;
		json_skip(&in->r);
	}
	thread->type = number_kind(file, &kind);
	thread->nr_decimals = kind.nr_decimals;
	return err;
}

static int read_thread(struct speedscope *file)
{
	struct thread thread = { .sample = import_blank() };
	struct json_reader behind;
	int err = read_head(file, &thread);

	behind = file->in.r;
	if (!err && !reading_failed(&file->in) && thread.samples.pos)
		err = read_samples(file, &thread);
	if (!err && !reading_failed(&file->in) && thread.events.pos)
		err = read_events(file, &thread);
	if (!file->in.r.bad)
		file->in.r = behind;
	return err;
}

static int read_outermost(struct speedscope *file)
{
	struct reading *in = &file->in;

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "shared"))
			file->shared = in->r;
		else if (reading_is_key(in, "profiles"))
			file->profiles = in->r;
		json_skip(&in->r);
	}
	json_end(&in->r);
	if (!in->r.bad && (!file->shared.pos || !file->profiles.pos))
		json_fail(&in->r, "it has no shared frames, or no profiles");
	return reading_verdict(in, "speedscope");
}

int read_speedscope(struct importer *importer)
{
	CLEANUP(speedscope_done) struct speedscope file = { .in = READING_OF(importer) };
	int err = read_outermost(&file);

	if (!err)
		err = read_shared(&file);
	if (!err)
		err = read_kinds(&file);
	if (!err && file.nr_kinds)
		err = reading_set_types(importer, file.kinds, file.nr_kinds);
	if (err)
		return err;
	reading_go(&file.in, file.profiles);
	for (json_enter(&file.in.r, '['); !err && !reading_failed(&file.in) && json_next(&file.in.r);)
		err = read_thread(&file);
	return err ? err : reading_verdict(&file.in, "speedscope");
}
