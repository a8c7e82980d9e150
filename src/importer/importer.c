// SPDX-License-Identifier: Apache-2.0
#include "importer/importer.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "base/utf8.h"
#include "model/wait_kind.h"

size_t import_text_size(struct importer *importer, const char *text, size_t size)
{
	if (size <= IMPORT_TEXT_BYTES)
		return size;
	import_count(importer, IMPORT_LOSS_TEXTS, 1);
	size = IMPORT_TEXT_BYTES;
	for (int i = 1; i < UTF8_MAX_BYTES && ((uint8_t)text[size] & 0xc0) == 0x80; i++) /* do not split a character */
		size--;
	return size;
}

uint32_t import_string(struct importer *importer, const void *text, size_t size)
{
	char *nul;

	size = import_text_size(importer, text, size);
	importer->text.size = 0;
	buffer_append(&importer->text, text, size);
	if (importer->text.err)
		return PROFILE_NONE;
	while ((nul = memchr(importer->text.data, 0, size)))
		*nul = '?';
	return size ? profile_string(importer->profile, importer->text.data) : PROFILE_EMPTY_STRING;
}

/* Does the name match this mark, a printf format with at most one %s? */
static bool is_mark(const char *name, size_t size, const char *mark)
{
	const char *hole = strstr(mark, "%s");
	size_t before = hole ? (size_t)(hole - mark) : strlen(mark), after = hole ? strlen(hole + 2) : 0;

	if (!*mark || size < before + after || memcmp(name, mark, before) != 0)
		return false;
	return hole ? !memcmp(name + size - after, hole + 2, after) : size == before;
}

static bool is_text(const char *name, size_t size, const char *text)
{
	return size == strlen(text) && !memcmp(name, text, size);
}

enum frame_kind import_kind_of(const char *name, size_t size)
{
	if (!size || *name != '[')
		return FRAME_NATIVE;
	if (is_text(name, size, PROFILE_MISSED_USER) || is_text(name, size, PROFILE_MISSED_KERNEL))
		return FRAME_MISSED;
	if (is_text(name, size, PROFILE_CUT) || is_text(name, size, PROFILE_NO_NATIVES))
		return FRAME_MARK;
	for (int i = 0; i < SONDE_STOP_COUNT; i++) {
		if (is_mark(name, size, stop_mark((enum sonde_stop)i)))
			return FRAME_MARK;
	}
	for (int i = 0; i < SONDE_RUNTIME_STOP_COUNT; i++) {
		if (is_mark(name, size, runtime_stop_mark((enum sonde_runtime_stop)i)))
			return FRAME_MARK;
	}
	if (size > 2 && name[size - 1] == ']' && wait_kind_by_name(name + 1, size - 2) != WAIT_KIND_COUNT)
		return FRAME_MARK;
	return FRAME_NATIVE;
}

/* Does the file match the pattern: "*END", "BEGIN*" or the whole name? */
static bool is_like(const char *file, size_t size, const char *pattern, size_t length)
{
	if (*pattern == '*')
		return size >= length && !memcmp(file + size - (length - 1), pattern + 1, length - 1);
	if (pattern[length - 1] == '*')
		return size >= length && !memcmp(file, pattern, length - 1);
	return size == length && !memcmp(file, pattern, length);
}

enum frame_kind import_kind_of_file(const char *file, size_t size)
{
	static const struct {
		const char *files; /* separated by spaces */
		enum frame_kind kind;
	} languages[] = {
#define X(id, name, shown, otlp, files, ...) { files, FRAME_##id },
		SONDE_RUNTIME_LIST(X, X, SONDE_NO_RUNTIME)
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(languages); i++) {
		for (const char *at = languages[i].files; *at; at += *at == ' ') {
			const char *end = strchrnul(at, ' ');

			if (is_like(file, size, at, (size_t)(end - at)))
				return languages[i].kind;
			at = end;
		}
	}
	return FRAME_NATIVE;
}

static bool is_named(const struct profile *profile, uint32_t location, const char *name, size_t size, enum frame_kind kind)
{
	const struct profile_location *at = profile_location_at(profile, location);
	const char *text = profile_string_text(profile, profile_function_at(profile, at->function)->name);

	return at->kind == kind && is_text(name, size, text);
}

uint32_t import_named(struct importer *importer, const char *name, size_t size, enum frame_kind kind)
{
	uint32_t cursor = 0, *found, location, nr_before = profile_nr_locations(importer->profile);
	struct profile_function function = { 0 };
	uint64_t hash;

	size = import_text_size(importer, name, size);
	hash = hash_bytes(name, size, kind);
	while ((found = u64_map_each(&importer->names, hash, &cursor))) {
		if (is_named(importer->profile, *found, name, size, kind))
			return *found;
	}
	function.name = function.system_name = import_string(importer, name, size);
	if (function.name == PROFILE_NONE)
		return PROFILE_NONE;
	location = profile_function(importer->profile, &function);
	if (location == PROFILE_NONE)
		return PROFILE_NONE;
	location =
	    profile_location(importer->profile, &(struct profile_location){ .mapping = PROFILE_NONE, .function = location, .kind = kind });
	if (location < nr_before) /* a NUL in the name was replaced: it would be added again each time */
		return location;
	return location == PROFILE_NONE || u64_map_add(&importer->names, hash, location) ? PROFILE_NONE : location;
}

bool import_is_kernel_path(const char *path)
{
	size_t size = strlen(path);

	if (!strncmp(path, "[kernel", 7) || !strncmp(path, "[guest.kernel", 13))
		return true;
	return (size > 3 && !strcmp(path + size - 3, ".ko")) || (size > 7 && strstr(path + size - 7, ".ko."));
}

static uint32_t make_nameless(struct importer *importer, uint32_t path_string, bool is_kernel)
{
	const char *path = profile_string_text(importer->profile, path_string), *slash = strrchr(path, '/');
	struct profile_function function = { 0 };
	char name[256];

	path = slash ? slash + 1 : path;
	if (is_kernel)
		snprintf(name, sizeof(name), "[kernel]");
	else if (*path == '[')
		snprintf(name, sizeof(name), "%s", path);
	else
		snprintf(name, sizeof(name), "[%s]", *path ? path : "unknown");
	function.name = function.system_name = import_string(importer, name, strlen(name));
	return function.name == PROFILE_NONE ? PROFILE_NONE : profile_function(importer->profile, &function);
}

/* Cached, because many locations share one path. */
uint32_t import_nameless(struct importer *importer, uint32_t path_string, bool is_kernel)
{
	uint64_t key = (uint64_t)path_string << 1 | is_kernel;
	const uint32_t *known = u64_map_find(&importer->nameless, key);
	uint32_t function = known ? *known : make_nameless(importer, path_string, is_kernel);

	if (!known && function != PROFILE_NONE && u64_map_add(&importer->nameless, key, function))
		return PROFILE_NONE;
	return function;
}

void import_kind_by_name(const struct importer *importer, struct profile_location *location)
{
	const char *name = profile_string_text(importer->profile, profile_function_at(importer->profile, location->function)->name);

	if (!location->pc && location->kind == FRAME_NATIVE)
		location->kind = import_kind_of(name, strlen(name));
}

bool import_id_before(const char *text, size_t *at, uint32_t *ret_id)
{
	size_t end = *at;
	uint64_t id = 0, unit = 1;

	for (; *at && text[*at - 1] >= '0' && text[*at - 1] <= '9' && end - *at < 10; (*at)--, unit *= 10)
		id += unit * (uint64_t)(text[*at - 1] - '0');
	*ret_id = (uint32_t)id;
	return *at < end && id <= INT32_MAX;
}

void import_begin(struct importer *importer)
{
	importer->nr_frames = 0;
	importer->nr_left_out = 0;
	importer->nr_labels = 0;
}

/* If a stack is too deep, the second half of the room becomes a ring: both ends of the stack are kept. */
int import_push(struct importer *importer, uint32_t location)
{
	const uint32_t half = IMPORT_MAX_FRAMES / 2;
	uint32_t at = importer->nr_frames;

	if (location == PROFILE_NONE)
		return -ENOMEM;
	if (!importer->budget--) {
		importer->budget = 0;
		return diag_errno(importer->diag, EFBIG, "its stacks have more frames than a file of this size can hold");
	}
	if (at == IMPORT_MAX_FRAMES) {
		importer->frames[half + importer->nr_left_out++ % half] = location;
		return 0;
	}
	if (!array_grow(&importer->frames, at, &importer->max_frames, sizeof(*importer->frames), 256, IMPORT_MAX_FRAMES))
		return -ENOMEM;
	importer->frames[importer->nr_frames++] = location;
	return 0;
}

static void reverse(uint32_t *from, uint32_t nr)
{
	for (uint32_t i = 0; i < nr / 2; i++) {
		uint32_t kept = from[i];

		from[i] = from[nr - 1 - i];
		from[nr - 1 - i] = kept;
	}
}

/* Rotates the ring in the second half into order and puts the mark before it. */
int import_close(struct importer *importer)
{
	const uint32_t half = IMPORT_MAX_FRAMES / 2;
	uint32_t turn = importer->nr_left_out % half, *second, mark;

	if (!importer->nr_left_out)
		return 0;
	second = importer->frames + half;
	reverse(second, turn);
	reverse(second + turn, half - turn);
	reverse(second, half);
	mark = import_named(importer, PROFILE_CUT, strlen(PROFILE_CUT), FRAME_MARK);
	if (mark == PROFILE_NONE)
		return -ENOMEM;
	*second = mark;
	import_count(importer, IMPORT_LOSS_FRAMES, 1);
	importer->nr_left_out = 0;
	return 0;
}

int import_reverse(struct importer *importer)
{
	int err = import_close(importer);

	reverse(importer->frames, importer->nr_frames);
	return err;
}

static bool is_kernel_side(const struct profile *profile, uint32_t location)
{
	const struct profile_location *at = profile_location_at(profile, location);

	if (at->kind == FRAME_MISSED)
		return !strcmp(profile_string_text(profile, profile_function_at(profile, at->function)->name), PROFILE_MISSED_KERNEL);
	return at->kind == FRAME_KERNEL;
}

/* Number of kernel frames at the leaf end. Marks before them, for what a thread waited for, are included. */
static uint32_t count_kernel_side(const struct importer *importer)
{
	uint32_t nr_marks = 0, nr;

	while (nr_marks < importer->nr_frames && profile_location_at(importer->profile, importer->frames[nr_marks])->kind == FRAME_MARK)
		nr_marks++;
	for (nr = nr_marks; nr < importer->nr_frames && is_kernel_side(importer->profile, importer->frames[nr]); nr++)
		;
	return nr > nr_marks ? nr : 0;
}

struct profile_sample import_blank(void)
{
	return (struct profile_sample){
		.user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE, .cpu = PROFILE_NONE, .comm = PROFILE_EMPTY_STRING
	};
}

int import_end_stack(struct importer *importer, struct profile_sample *sample)
{
	struct profile *profile = importer->profile;
	uint32_t nr_kernel;
	int err = import_close(importer);

	if (err)
		return err;
	nr_kernel = count_kernel_side(importer);
	if (nr_kernel) {
		sample->kernel_stack = profile_stack(profile, importer->frames, nr_kernel);
		if (sample->kernel_stack == PROFILE_NONE)
			return -ENOMEM;
	}
	if (importer->nr_frames > nr_kernel) {
		sample->user_stack = profile_stack(profile, importer->frames + nr_kernel, importer->nr_frames - nr_kernel);
		if (sample->user_stack == PROFILE_NONE)
			return -ENOMEM;
	}
	return 0;
}

int import_end_sample(struct importer *importer, struct profile_sample *sample)
{
	sample->labels = profile_labels(importer->profile, importer->labels, importer->nr_labels);
	return sample->labels == PROFILE_NONE ? -ENOMEM : profile_add(importer->profile, sample);
}

int import_end(struct importer *importer, struct profile_sample *sample)
{
	int err = import_end_stack(importer, sample);

	return err ? err : import_end_sample(importer, sample);
}

enum field { FIELD_NONE, FIELD_COMM, FIELD_TGID, FIELD_TID, FIELD_CPU, FIELD_TIME };

/* Names that sonde, OpenTelemetry's semantic conventions, Parca, Go's labels and libdatadog use for the same field. */
static enum field field_of(const char *key)
{
	static const struct {
		const char *key;
		enum field field;
	} known[] = {
		{ "comm", FIELD_COMM }, { "thread.name", FIELD_COMM }, { "thread_name", FIELD_COMM }, { "thread name", FIELD_COMM },
		{ "pid", FIELD_TGID }, { "process.pid", FIELD_TGID }, { "process_id", FIELD_TGID },
		{ "tid", FIELD_TID }, { "thread.id", FIELD_TID }, { "thread_id", FIELD_TID }, { "thread id", FIELD_TID },
		{ "cpu", FIELD_CPU }, { "cpu.logical_number", FIELD_CPU },
		{ "end_timestamp_ns", FIELD_TIME },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(key, known[i].key))
			return known[i].field;
	}
	return FIELD_NONE;
}

/* The same for a string of the profile, cached. */
static enum field field_of_key(struct importer *importer, uint32_t key)
{
	uint32_t at = key % IMPORT_NR_KNOWN_KEYS;

	if (importer->fields[at].key != key) {
		importer->fields[at].key = key;
		importer->fields[at].field = field_of(profile_string_text(importer->profile, key));
	}
	return (enum field)importer->fields[at].field;
}

/* The label's number, even if it was written as text. */
static bool number_of(const struct profile *profile, const struct profile_label *label, uint64_t max, uint64_t *ret_number)
{
	if (!label->is_number)
		return !number_u64(profile_string_text(profile, label->text), max, ret_number);
	if (label->number < 0 || (uint64_t)label->number > max)
		return false;
	*ret_number = (uint64_t)label->number;
	return true;
}

/* True: the label was stored as a field of the sample that was still empty. */
static bool fill_field(struct importer *importer, struct profile_sample *sample, const struct profile_label *label)
{
	const struct profile *profile = importer->profile;
	uint64_t number = 0;

	switch (field_of_key(importer, label->key)) {
	case FIELD_COMM:
		if (label->is_number || sample->comm != PROFILE_EMPTY_STRING)
			return false;
		sample->comm = label->text;
		return true;
	case FIELD_TGID:
		if (sample->tgid || !number_of(profile, label, INT32_MAX, &number))
			return false;
		sample->tgid = (uint32_t)number;
		return true;
	case FIELD_TID:
		if (sample->tid || !number_of(profile, label, INT32_MAX, &number))
			return false;
		sample->tid = (uint32_t)number;
		return true;
	case FIELD_CPU:
		if (sample->cpu != PROFILE_NONE || !number_of(profile, label, INT32_MAX, &number))
			return false;
		sample->cpu = (uint32_t)number;
		return true;
	case FIELD_TIME:
		if (sample->time_ns || !number_of(profile, label, INT64_MAX, &number))
			return false;
		sample->time_ns = number;
		return true;
	case FIELD_NONE:
		break;
	}
	return false;
}

void import_label(struct importer *importer, struct profile_sample *sample, const struct profile_label *label)
{
	if (fill_field(importer, sample, label))
		return;
	if (importer->nr_labels == IMPORT_MAX_LABELS)
		import_count(importer, IMPORT_LOSS_LABELS, 1);
	else
		importer->labels[importer->nr_labels++] = *label;
}

int import_bad(struct importer *importer, const char *format, const void *at, const char *why)
{
	size_t place = (size_t)((const char *)at - importer->bytes);

	return diag_errno(importer->diag, EBADMSG, "bad %s at byte %zu of %zu: %s", format, place, importer->size, why);
}
