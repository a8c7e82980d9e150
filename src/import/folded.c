// SPDX-License-Identifier: Apache-2.0
/* Reads one line per stack, root first, and a number: sonde's, stackcollapse's, py-spy's, async-profiler's. The file does not say what the
 * first frame is. It is taken for the thread's name if every first frame of the file could be one; else it is an ordinary frame. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "import/readers.h"
#include "importer/reading.h"

#define COMM_BYTES 15 /* the kernel keeps no more of a thread's name */

struct line {
	const char *pos, *end; /* the frames */
	int64_t value;
};

static bool next_line(const char **pos, const char *end, struct line *ret_line)
{
	const char *newline;

	if (*pos == end)
		return false;
	newline = memchr(*pos, '\n', (size_t)(end - *pos));
	*ret_line = (struct line){ .pos = *pos, .end = newline ? newline : end };
	*pos = newline ? newline + 1 : end;
	while (ret_line->end > ret_line->pos && strchr(" \t\r", ret_line->end[-1]))
		ret_line->end--;
	return true;
}

/* Takes the number off the end of the line: 1, 2.5, -3. False: there is none. */
static bool take_number(struct importer *importer, struct line *line)
{
	const char *at = line->end, *digit;
	uint64_t value = 0;
	bool over = false, negative;

	while (at > line->pos && at[-1] != ' ' && at[-1] != '\t')
		at--;
	if (at == line->pos || at == line->end)
		return false;
	digit = at + (*at == '-');
	negative = *at == '-';
	if (digit == line->end || *digit < '0' || *digit > '9')
		return false;
	for (; digit < line->end && *digit >= '0' && *digit <= '9'; digit++) {
		over |= __builtin_mul_overflow(value, 10, &value);
		over |= __builtin_add_overflow(value, (uint64_t)(*digit - '0'), &value);
	}
	if (digit < line->end && *digit == '.') {
		for (digit++; digit < line->end && *digit >= '0' && *digit <= '9'; digit++)
			;
		import_count(importer, IMPORT_LOSS_PARTS, 1);
	}
	if (digit < line->end || over || value > INT64_MAX)
		return false;
	line->value = negative ? -(int64_t)value : (int64_t)value;
	line->end = at - 1;
	return true;
}

/* The length up to the next ';' or the end. */
static size_t frame_size(const char *pos, const char *end)
{
	const char *semicolon = memchr(pos, ';', (size_t)(end - pos));

	return (size_t)((semicolon ? semicolon : end) - pos);
}

/* Takes "-12/34" off the end of "name-12/34": shortens *size to the name and returns the two ids. */
static bool take_ids(const char *text, size_t *size, uint32_t *ret_tgid, uint32_t *ret_tid)
{
	uint32_t ids[2];
	size_t at = *size;

	for (int i = 1; i >= 0; i--) {
		if (!import_id_before(text, &at, &ids[i]) || !at || text[--at] != (i ? '/' : '-'))
			return false;
	}
	*size = at;
	*ret_tgid = ids[0];
	*ret_tid = ids[1];
	return true;
}

static bool begins(const char *text, size_t size, const char *with)
{
	return size >= strlen(with) && !memcmp(text, with, strlen(with));
}

/* False for frames that programs start with and for text that no thread name has. */
static bool could_be_comm(const char *text, size_t size)
{
	static const char *const frames[] = {
		"_start", "main", "all", "root", "clone", "clone3", "__clone3", "start_thread", "__libc_start_main", "<module>", "[unknown]"
	};
	uint32_t tgid, tid;

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		if (size == strlen(frames[i]) && begins(text, size, frames[i]))
			return false;
	}
	if (begins(text, size, "main.") || begins(text, size, "runtime.") || memchr(text, '(', size) || memmem(text, size, "::", 2))
		return false;
	take_ids(text, &size, &tgid, &tid);
	return size <= COMM_BYTES;
}

static bool begins_with_comm(struct importer *importer)
{
	const char *pos = importer->bytes, *end = pos + importer->size;
	uint64_t parts = importer->losses[IMPORT_LOSS_PARTS];
	struct line line;
	bool could = true;

	while (could && next_line(&pos, end, &line)) {
		if (line.pos < line.end && *line.pos != '#' && take_number(importer, &line))
			could = could_be_comm(line.pos, frame_size(line.pos, line.end));
	}
	importer->losses[IMPORT_LOSS_PARTS] = parts;
	return could;
}

/* Takes "[tid 12]", which --threads writes after the name. */
static bool take_tid(struct line *line, struct profile_sample *sample)
{
	size_t size = frame_size(line->pos, line->end);
	uint64_t tid = 0;

	if (size < 7 || size > 16 || !begins(line->pos, size, "[tid ") || line->pos[size - 1] != ']')
		return false;
	for (const char *at = line->pos + 5; at < line->pos + size - 1; at++) {
		if (*at < '0' || *at > '9')
			return false;
		tid = tid * 10 + (uint64_t)(*at - '0');
	}
	if (tid > INT32_MAX)
		return false;
	sample->tid = (uint32_t)tid;
	line->pos += size + (line->pos + size < line->end);
	return true;
}

static int take_comm(struct importer *importer, struct line *line, struct profile_sample *sample)
{
	size_t whole = frame_size(line->pos, line->end), size = whole;

	take_ids(line->pos, &size, &sample->tgid, &sample->tid);
	sample->comm = import_string(importer, line->pos, size);
	if (sample->comm == PROFILE_NONE)
		return -ENOMEM;
	line->pos += whole + (line->pos + whole < line->end);
	take_tid(line, sample);
	return 0;
}

/* Takes the file and the line off the end of "name (file.py:12)", as py-spy writes them, or "name (file.py)". */
static uint32_t push_name(struct importer *importer, const char *text, size_t size, enum frame_kind kind)
{
	const char *open = size && text[size - 1] == ')' ? memrchr(text, '(', size) : NULL, *colon, *end = text + size - 1;
	struct frame_text frame = { .kind = kind };

	if (kind != FRAME_NATIVE || !open || open < text + 2 || open[-1] != ' ')
		return import_named(importer, text, size, kind);
	colon = memrchr(open, ':', (size_t)(end - open));
	for (const char *digit = colon ? colon + 1 : end; digit < end; digit++) {
		if (*digit < '0' || *digit > '9' || frame.line > INT32_MAX / 20)
			return import_named(importer, text, size, kind);
		frame.line = frame.line * 10 + (uint32_t)(*digit - '0');
	}
	if (colon && (colon + 1 == end || colon == open + 1))
		return import_named(importer, text, size, kind);
	end = colon ? colon : end;
	if (!colon && import_kind_of_file(open + 1, (size_t)(end - open - 1)) == FRAME_NATIVE)
		return import_named(importer, text, size, kind);
	frame.name = import_string(importer, text, (size_t)(open - 1 - text));
	frame.file = import_string(importer, open + 1, (size_t)(end - open - 1));
	return frame.name == PROFILE_NONE || frame.file == PROFILE_NONE ? PROFILE_NONE : reading_location(importer, &frame);
}

/* Takes "_[k]" off the end and returns its letter: k, the kernel's; others say how code was compiled (j, i, 0, 1); 0: there is none. */
static char take_suffix(const char *text, size_t *size)
{
	char letter = *size > 4 ? text[*size - 2] : 0;

	if (!letter || memcmp(text + *size - 4, "_[", 2) != 0 || text[*size - 1] != ']' || !strchr("kji01", letter))
		return 0;
	*size -= 4;
	return letter;
}

/* Frames after a lone "-" or "--" are the kernel's, and so are frames that end in "_[k]". */
static int push_frames(struct importer *importer, const struct line *line)
{
	bool kernel = false;

	for (const char *pos = line->pos; pos < line->end;) {
		size_t size = frame_size(pos, line->end), name = size;
		enum frame_kind kind = import_kind_of(pos, size);
		int err = 0;

		if (pos > line->pos && begins(pos, size, "-") && size <= 2 && pos[size - 1] == '-') {
			kernel = true;
		} else {
			char suffix = take_suffix(pos, &name);

			if (suffix == 'k' || (kernel && kind == FRAME_NATIVE))
				kind = FRAME_KERNEL;
			err = import_push(importer, push_name(importer, pos, name, kind));
		}
		if (err)
			return err;
		pos += size + 1;
	}
	return import_reverse(importer);
}

static int read_line(struct importer *importer, struct line *line, bool with_comm)
{
	struct profile_sample sample = import_blank();
	int err = 0;

	if (line->pos == line->end || *line->pos == '#')
		return 0;
	if (!take_number(importer, line)) {
		import_count(importer, IMPORT_LOSS_LINES, 1);
		return 0;
	}
	import_begin(importer);
	if (with_comm)
		err = take_comm(importer, line, &sample);
	if (!err)
		err = push_frames(importer, line);
	sample.values[0] = line->value;
	return err ? err : import_end(importer, &sample);
}

int read_folded(struct importer *importer)
{
	const char *pos = importer->bytes, *end = pos + importer->size;
	bool with_comm = begins_with_comm(importer);
	struct line line;
	int err = 0;

	while (!err && next_line(&pos, end, &line))
		err = read_line(importer, &line, with_comm);
	if (!err && !profile_nr_samples(importer->profile) && importer->losses[IMPORT_LOSS_LINES])
		return import_bad(importer, "folded stacks", importer->bytes, "no line is a stack with a number");
	return err;
}
