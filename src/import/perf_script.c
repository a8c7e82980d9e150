// SPDX-License-Identifier: Apache-2.0
/* Reads the output of `perf script`. For each sample: a line "comm pid/tid [cpu] time: period event:", its frames, leaf first, each on an
 * indented line "address function+0x12 (file)", and an empty line. -F may leave out any part. */
#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "import/readers.h"

#define BOOT_AT_MOST_S	   315360000 /* ten years: smaller times count from boot */

struct span {
	const char *pos, *end;
};

struct header {
	struct span comm, event, rest;
	uint64_t tgid, tid, time_ns, period;
	uint32_t cpu;
	bool has_period;
};

/* A frame is kept until the next line has been read, which may be its source line. */
struct frame {
	uint64_t pc, off;
	struct span name, dso, file;
	uint32_t line;
	bool is_inlined;
};

struct script {
	struct importer *importer;
	struct profile_sample sample;
	struct frame frame;
	bool in_sample, has_frame, has_periods, from_boot;
	/* The sample's only frame is in its first line: the next line is the next sample, even if it is indented. */
	bool is_flat;
	uint32_t event;     /* string: the first event's; other events become labels */
	uint32_t event_key; /* string */
};

static struct span trim(struct span text)
{
	while (text.pos < text.end && (*text.pos == ' ' || *text.pos == '\t'))
		text.pos++;
	while (text.end > text.pos && (text.end[-1] == ' ' || text.end[-1] == '\t' || text.end[-1] == '\r'))
		text.end--;
	return text;
}

static size_t size_of(struct span text)
{
	return (size_t)(text.end - text.pos);
}

static bool is(struct span text, const char *what)
{
	return size_of(text) == strlen(what) && !memcmp(text.pos, what, size_of(text));
}

/* Takes the next word off the text; empty at the end. */
static struct span take_word(struct span *text)
{
	struct span word;

	*text = trim(*text);
	word = (struct span){ .pos = text->pos, .end = text->pos };
	while (word.end < text->end && *word.end != ' ' && *word.end != '\t')
		word.end++;
	text->pos = word.end;
	return word;
}

/* Reads decimal digits at *pos, up to `max`; moves past them. */
static bool take_digits(const char **pos, const char *end, uint64_t max, uint64_t *ret_value)
{
	const char *at = *pos;
	uint64_t value = 0;

	for (; at < end && *at >= '0' && *at <= '9'; at++) {
		if (value > max / 10)
			return false;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	if (at == *pos || value > max)
		return false;
	*pos = at;
	*ret_value = value;
	return true;
}

/* "12" or "12/34"; "-1": no process. */
static bool take_ids(struct span word, struct header *header)
{
	const char *pos = word.pos;

	if (is(word, "-1"))
		return true;
	if (!take_digits(&pos, word.end, INT32_MAX, &header->tgid))
		return false;
	header->tid = header->tgid;
	if (pos == word.end)
		return true;
	return *pos++ == '/' && take_digits(&pos, word.end, INT32_MAX, &header->tid) && pos == word.end;
}

static bool take_cpu(struct span word, struct header *header)
{
	const char *pos = word.pos + 1;
	uint64_t cpu;

	if (size_of(word) < 3 || *word.pos != '[' || word.end[-1] != ']' || !take_digits(&pos, word.end, INT32_MAX, &cpu) ||
	    pos != word.end - 1)
		return false;
	header->cpu = (uint32_t)cpu;
	return true;
}

/* "123.456789:" */
static bool take_time(struct span word, struct header *header)
{
	const char *pos = word.pos, *point;
	uint64_t seconds, part;

	if (!take_digits(&pos, word.end, UINT32_MAX, &seconds) || pos == word.end || *pos++ != '.')
		return false;
	point = pos;
	if (!take_digits(&pos, word.end, 999999999, &part) || pos + 1 != word.end || *pos != ':')
		return false;
	for (ptrdiff_t digits = pos - point; digits < 9; digits++)
		part *= 10;
	header->time_ns = seconds * 1000000000 + part;
	return true;
}

/* Reads what follows the ids: "[cpu] time: period event: ...". Each part may be missing. */
static bool take_rest(struct span text, struct header *header)
{
	struct span word = take_word(&text);
	const char *pos;

	if (take_cpu(word, header))
		word = take_word(&text);
	if (take_time(word, header))
		word = take_word(&text);
	pos = word.pos;
	if (take_digits(&pos, word.end, INT64_MAX, &header->period) && pos == word.end) {
		header->has_period = true;
		word = take_word(&text);
	}
	if (size_of(word) > 1 && word.end[-1] == ':') {
		header->event = (struct span){ .pos = word.pos, .end = word.end - 1 };
		header->rest = trim(text);
		return true;
	}
	return !size_of(word) && (header->cpu != PROFILE_NONE || header->time_ns || !header->has_period);
}

/* Thread names may contain blanks: the ids are the first word of that form after which the rest of the line parses. */
static bool read_header(struct span line, struct header *ret_header)
{
	struct span text = line;
	uint32_t nr_tried = 0;

	take_word(&text);
	while (size_of(trim(text)) && nr_tried++ < 16) {
		struct header header = { .comm = { line.pos, text.pos }, .cpu = PROFILE_NONE };
		struct span word = take_word(&text);

		header.comm = trim(header.comm);
		if (take_ids(word, &header) && take_rest(text, &header)) {
			*ret_header = header;
			return true;
		}
	}
	return false;
}

/* Takes "(file)" off the end, including any brackets in the file's name. */
static struct span take_dso(struct span *text)
{
	struct span dso = { .pos = text->end, .end = text->end };
	int depth = 0;

	if (!size_of(*text) || text->end[-1] != ')')
		return dso;
	for (const char *at = text->end; at-- > text->pos;) {
		depth += *at == ')' ? 1 : *at == '(' ? -1 : 0;
		if (!depth) {
			if (at > text->pos && at[-1] != ' ')
				return dso;
			dso = (struct span){ .pos = at + 1, .end = text->end - 1 };
			*text = trim((struct span){ .pos = text->pos, .end = at });
			return dso;
		}
	}
	return dso;
}

/* Takes "+0x12" off the end of a name. */
static uint64_t take_offset(struct span *name)
{
	const char *at = name->end, *pos;
	uint64_t off = 0;

	while (at > name->pos && at[-1] != '+')
		at--;
	pos = at + 2;
	if (at <= name->pos + 1 || name->end - at < 3 || memcmp(at, "0x", 2) != 0 || number_hex(&pos, name->end, &off) || pos != name->end)
		return 0;
	name->end = at - 1;
	return off;
}

/* "address function+0x12 (file)"; -F may leave out any part. */
static void read_frame(struct span line, struct frame *ret_frame)
{
	struct span text = trim(line);
	const char *pos = text.pos;

	*ret_frame = (struct frame){ 0 };
	if (number_hex(&pos, text.end, &ret_frame->pc) || (pos < text.end && *pos != ' '))
		ret_frame->pc = 0;
	else
		text.pos = pos;
	text = trim(text);
	ret_frame->dso = take_dso(&text);
	ret_frame->is_inlined = is(ret_frame->dso, "inlined");
	ret_frame->off = take_offset(&text);
	ret_frame->name = text;
}

/* "  file.c:12", which -F srcline puts below a frame. */
static bool take_source(struct span line, struct frame *frame)
{
	struct span text = trim(line);
	const char *colon = memrchr(text.pos, ':', size_of(text)), *pos = colon ? colon + 1 : NULL;
	uint64_t number;

	if (!colon || memchr(text.pos, ' ', size_of(text)) || !take_digits(&pos, text.end, INT32_MAX, &number) || pos != text.end)
		return false;
	frame->file = (struct span){ .pos = text.pos, .end = colon };
	frame->line = (uint32_t)number;
	return true;
}

static enum frame_kind kind_of(const struct frame *frame)
{
	struct span dso = frame->dso;
	bool is_kernel =
	    size_of(dso) > 7 && (!memcmp(dso.pos, "[kernel", 7) || (size_of(dso) > 13 && !memcmp(dso.pos, "[guest.kernel", 13)));

	if (size_of(dso) > 3 && memmem(dso.end - (size_of(dso) > 7 ? 7 : 3), size_of(dso) > 7 ? 7 : 3, ".ko", 3))
		is_kernel = true;
	if (is_kernel || (frame->pc >= PROFILE_KERNEL_KADDR && !is(dso, "[vsyscall]")))
		return FRAME_KERNEL;
	if (!frame->pc && size_of(frame->name) && import_kind_of_file(dso.pos, size_of(dso)) != FRAME_NATIVE)
		return import_kind_of_file(dso.pos, size_of(dso));
	return frame->pc ? FRAME_NATIVE : import_kind_of(frame->name.pos, size_of(frame->name));
}

/* The function's name, or the file's if it is not known. */
static uint32_t frame_name(struct importer *importer, const struct frame *frame)
{
	const char *slash = size_of(frame->dso) ? memrchr(frame->dso.pos, '/', size_of(frame->dso)) : NULL,
		   *base = slash ? slash + 1 : frame->dso.pos;
	char name[256];

	if (size_of(frame->name) && !is(frame->name, "[unknown]"))
		return import_string(importer, frame->name.pos, size_of(frame->name));
	if (!size_of(frame->dso) || *base == '[' || base == frame->dso.end)
		return import_string(importer, is(frame->dso, "[kernel.kallsyms]") ? "[kernel]" : "[unknown]",
				     is(frame->dso, "[kernel.kallsyms]") ? 8 : 9);
	snprintf(name, sizeof(name), "[%.*s]", (int)(frame->dso.end - base < 250 ? frame->dso.end - base : 250), base);
	return import_string(importer, name, strlen(name));
}

static int make_location(struct importer *importer, const struct frame *frame, uint32_t *ret_location)
{
	struct profile_location location = {
		.pc = frame->pc, .function_off = frame->off, .mapping = PROFILE_NONE, .kind = kind_of(frame), .line = frame->line
	};
	struct profile_mapping mapping = { 0 };
	struct profile_function function = { 0 };

	function.name = function.system_name = frame_name(importer, frame);
	if (frame->file.pos)
		function.file = import_string(importer, frame->file.pos, size_of(frame->file));
	else if (frame_is_interpreted(location.kind))
		function.file = import_string(importer, frame->dso.pos, size_of(frame->dso));
	location.function =
	    function.name == PROFILE_NONE || function.file == PROFILE_NONE ? PROFILE_NONE : profile_function(importer->profile, &function);
	if (location.function == PROFILE_NONE)
		return -ENOMEM;
	if (location.kind == FRAME_NATIVE && size_of(frame->dso) && *frame->dso.pos != '[' && !is(frame->dso, "inlined")) {
		mapping.path = import_string(importer, frame->dso.pos, size_of(frame->dso));
		location.mapping = mapping.path == PROFILE_NONE ? PROFILE_NONE : profile_mapping(importer->profile, &mapping);
		if (location.mapping == PROFILE_NONE)
			return -ENOMEM;
	}
	location.is_inlined = frame->is_inlined;
	*ret_location = profile_location(importer->profile, &location);
	return *ret_location == PROFILE_NONE ? -ENOMEM : 0;
}

static int push_frame(struct script *script)
{
	uint32_t location = PROFILE_NONE;
	int err;

	if (!script->has_frame)
		return 0;
	script->has_frame = false;
	err = make_location(script->importer, &script->frame, &location);
	return err ? err : import_push(script->importer, location);
}

/* An inlined function has the same address as the next frame; otherwise the mark is dropped. */
static int next_frame(struct script *script, struct span line)
{
	struct frame frame;
	int err;

	if (script->has_frame && take_source(line, &script->frame))
		return 0;
	read_frame(line, &frame);
	if (script->has_frame && script->frame.is_inlined && script->frame.pc != frame.pc)
		script->frame.is_inlined = false;
	err = push_frame(script);
	script->frame = frame;
	script->has_frame = true;
	return err;
}

static int end_sample(struct script *script)
{
	int err;

	if (!script->in_sample)
		return 0;
	script->in_sample = false;
	script->frame.is_inlined = false;
	err = push_frame(script);
	return err ? err : import_end(script->importer, &script->sample);
}

static int take_event(struct script *script, const struct header *header)
{
	struct importer *importer = script->importer;
	struct profile_label label = { .key = script->event_key };

	if (!header->event.pos)
		return 0;
	label.text = import_string(importer, header->event.pos, size_of(header->event));
	if (label.text == PROFILE_NONE)
		return -ENOMEM;
	if (script->event == PROFILE_NONE)
		script->event = label.text;
	if (script->event != label.text)
		import_label(importer, &script->sample, &label);
	return 0;
}

/* perf writes ":12" for a thread whose name it does not know. */
static bool is_nameless(const struct header *header)
{
	const char *pos = header->comm.pos + 1;
	uint64_t tid;

	return size_of(header->comm) > 1 && *header->comm.pos == ':' && take_digits(&pos, header->comm.end, INT32_MAX, &tid) &&
	       pos == header->comm.end && tid == header->tid;
}

static int begin_sample(struct script *script, const struct header *header)
{
	const char *pos = header->rest.pos;
	uint64_t pc;
	int err;

	script->sample = import_blank();
	script->in_sample = true;
	import_begin(script->importer);
	script->sample.comm =
	    is_nameless(header) ? PROFILE_EMPTY_STRING : import_string(script->importer, header->comm.pos, size_of(header->comm));
	if (script->sample.comm == PROFILE_NONE)
		return -ENOMEM;
	script->sample.tgid = (uint32_t)header->tgid;
	script->sample.tid = (uint32_t)header->tid;
	script->sample.cpu = header->cpu;
	script->sample.time_ns = header->time_ns;
	script->from_boot |= header->time_ns && header->time_ns / 1000000000 < BOOT_AT_MOST_S;
	script->sample.values[0] = 1;
	script->sample.values[1] = header->has_period ? (int64_t)header->period : 0;
	script->has_periods |= header->has_period;
	err = take_event(script, header);
	/* without a call chain the only frame is in the same line */
	script->is_flat = size_of(header->rest) && !number_hex(&pos, header->rest.end, &pc) && pos < header->rest.end && *pos == ' ';
	if (!err && script->is_flat)
		err = next_frame(script, header->rest);
	return err;
}

static int read_line(struct script *script, struct span line)
{
	struct header header;
	int err;

	if (!size_of(trim(line)))
		return end_sample(script);
	if (*line.pos == '#' && !script->in_sample)
		return 0;
	if ((*line.pos == ' ' || *line.pos == '\t') && script->in_sample && (!script->is_flat || !read_header(trim(line), &header)))
		return next_frame(script, line);
	err = end_sample(script);
	if (err)
		return err;
	if (!read_header(trim(line), &header)) {
		import_count(script->importer, IMPORT_LOSS_LINES, 1);
		return 0;
	}
	return begin_sample(script, &header);
}

/* Sets the kinds of values once the whole file is read. */
static int settle(struct script *script)
{
	struct profile *profile = script->importer->profile;
	struct account *account = profile_account(profile);
	const char *event = script->event == PROFILE_NONE ? "" : profile_string_text(profile, script->event);
	bool clock = !strncmp(event, "cpu-clock", 9) || !strncmp(event, "task-clock", 10);
	struct profile_value_type types[2] = { 0 };

	snprintf(account->event, sizeof(account->event), "%s", event);
	snprintf(account->event_unit, sizeof(account->event_unit), "%s", clock ? "nanoseconds" : "count");
	types[0].type = profile_string(profile, "samples");
	types[0].unit = profile_string(profile, "count");
	types[1].type = profile_string(profile, *event ? event : "period");
	types[1].unit = profile_string(profile, clock ? "nanoseconds" : "count");
	if (types[0].type == PROFILE_NONE || types[0].unit == PROFILE_NONE || types[1].type == PROFILE_NONE ||
	    types[1].unit == PROFILE_NONE)
		return -ENOMEM;
	profile_set_value_types(profile, types, script->has_periods ? 2 : 1, 0);
	if (script->from_boot)
		import_count(script->importer, IMPORT_LOSS_BOOT, profile_nr_samples(profile));
	return 0;
}

int read_perf_script(struct importer *importer)
{
	struct script script = { .importer = importer, .event = PROFILE_NONE, .event_key = profile_string(importer->profile, "event") };
	const char *pos = importer->bytes, *end = pos + importer->size;
	int err = script.event_key == PROFILE_NONE ? -ENOMEM : 0;

	while (!err && pos < end) {
		const char *newline = memchr(pos, '\n', (size_t)(end - pos));

		err = read_line(&script, (struct span){ .pos = pos, .end = newline ? newline : end });
		pos = newline ? newline + 1 : end;
	}
	if (!err)
		err = end_sample(&script);
	if (!err && !profile_nr_samples(importer->profile) && importer->losses[IMPORT_LOSS_LINES])
		return import_bad(importer, "perf script", importer->bytes, "no line begins a sample");
	return err ? err : settle(&script);
}
