// SPDX-License-Identifier: Apache-2.0
/* Reads sonde's own JSON (docs/formats.md), versions 1 and 2. The lists may stand in any order. So the reader first finds where each list
 * starts, then reads each list after the lists that it refers to. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "codec/json_read.h"
#include "import/readers.h"
#include "importer/json_account.h"
#include "importer/json_label.h"

#define JSON_VERSION 2
#define KEY_BYTES    ((size_t)1 << 20)

enum section {
	SECTION_MAPPINGS,
	SECTION_FUNCTIONS,
	SECTION_FRAMES,
	SECTION_STACKS,
	SECTION_VALUE_TYPES,
	SECTION_SAMPLES,
	SECTION_ACCOUNT,
	SECTION_SHOWN,
	SECTION_HISTOGRAMS,
	SECTION_COUNT
};

struct number_list { /* numbers in the profile, by index in the file's list */
	uint32_t *numbers;
	uint32_t nr, max;
};

struct json_import {
	struct importer *importer;
	struct json_reader r;
	struct buffer key, text;
	const char *sections[SECTION_COUNT]; /* NULL: missing */
	uint64_t version;
	struct number_list mappings, functions, frames, stacks;
	struct profile_value_type types[PROFILE_MAX_VALUES];
	uint32_t nr_types;
};

static void json_import_done(struct json_import *in)
{
	buffer_done(&in->key);
	buffer_done(&in->text);
	free(in->mappings.numbers);
	free(in->functions.numbers);
	free(in->frames.numbers);
	free(in->stacks.numbers);
}

static int add_number(struct number_list *list, uint32_t number)
{
	if (number == PROFILE_NONE)
		return -ENOMEM;
	if (!array_grow(&list->numbers, list->nr, &list->max, sizeof(*list->numbers), 256, UINT32_MAX / 8))
		return -ENOMEM;
	list->numbers[list->nr++] = number;
	return 0;
}

/* Reads an index into a list; PROFILE_NONE for null. */
static uint32_t read_place(struct json_import *in, const struct number_list *list, bool may_be_null)
{
	uint64_t place;

	if (may_be_null && json_take_null(&in->r))
		return PROFILE_NONE;
	place = json_read_u64(&in->r);
	if (place >= list->nr) {
		json_fail(&in->r, "it names a place that is not in the list");
		return PROFILE_NONE;
	}
	return list->numbers[place];
}

static uint32_t read_string(struct json_import *in)
{
	uint32_t string;

	json_read_text(&in->r, &in->text);
	if (in->r.bad || in->text.err)
		return PROFILE_EMPTY_STRING;
	in->text.data[import_text_size(in->importer, in->text.data, in->text.size)] = '\0';
	string = profile_string(in->importer->profile, in->text.data);
	if (string == PROFILE_NONE)
		in->text.err = -ENOMEM;
	return string;
}

static uint32_t read_u32(struct json_import *in)
{
	uint64_t value = json_read_u64(&in->r);

	if (value > INT32_MAX)
		json_fail(&in->r, "a number is too large");
	return (uint32_t)value;
}

static bool is_key(const struct json_import *in, const char *key)
{
	return !strcmp(in->key.data, key);
}

static int read_mapping(struct json_import *in)
{
	struct profile_mapping mapping = { 0 };

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (is_key(in, "path"))
			mapping.path = read_string(in);
		else if (is_key(in, "build_id"))
			mapping.build_id = read_string(in);
		else if (is_key(in, "start"))
			mapping.start_pc = json_read_u64(&in->r);
		else if (is_key(in, "end"))
			mapping.end_pc = json_read_u64(&in->r);
		else if (is_key(in, "file_offset"))
			mapping.file_off = json_read_u64(&in->r);
		else
			json_skip(&in->r);
	}
	return in->r.bad || in->text.err ? 0 : add_number(&in->mappings, profile_mapping(in->importer->profile, &mapping));
}

static int read_function(struct json_import *in)
{
	struct profile_function function = { 0 };

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (is_key(in, "name"))
			function.name = read_string(in);
		else if (is_key(in, "system_name"))
			function.system_name = read_string(in);
		else if (is_key(in, "file"))
			function.file = read_string(in);
		else if (is_key(in, "line"))
			function.line = read_u32(in);
		else
			json_skip(&in->r);
	}
	return in->r.bad || in->text.err ? 0 : add_number(&in->functions, profile_function(in->importer->profile, &function));
}

/* Reads a word and returns its number. If it is none of the nr_words words, fails and returns 0. */
static uint32_t read_word(struct json_import *in, const char *(*word_of)(uint32_t number), uint32_t nr_words, const char *complaint)
{
	json_read_text(&in->r, &in->text);
	for (uint32_t i = 0; !in->r.bad && !in->text.err && i < nr_words; i++) {
		if (!strcmp(in->text.data, word_of(i)))
			return i;
	}
	json_fail(&in->r, complaint);
	return 0;
}

static const char *kind_word(uint32_t kind)
{
	return frame_kind_name((enum frame_kind)kind);
}

static const char *value_fold_word(uint32_t fold)
{
	return value_fold_name((enum value_fold)fold);
}

static const char *scale_word(uint32_t scale)
{
	return histogram_scale_name((enum histogram_scale)scale);
}

static int read_frame(struct json_import *in)
{
	struct profile_location location = { .mapping = PROFILE_NONE, .function = PROFILE_NONE };

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (is_key(in, "kind"))
			location.kind = read_word(in, kind_word, FRAME_KIND_COUNT, "there is no such kind of frame");
		else if (is_key(in, "function"))
			location.function = read_place(in, &in->functions, false);
		else if (is_key(in, "mapping"))
			location.mapping = read_place(in, &in->mappings, true);
		else if (is_key(in, "pc"))
			location.pc = json_read_u64(&in->r);
		else if (is_key(in, "address"))
			location.elf_vaddr = json_read_u64(&in->r);
		else if (is_key(in, "function_offset"))
			location.function_off = json_read_u64(&in->r);
		else if (is_key(in, "line"))
			location.line = read_u32(in);
		else if (is_key(in, "inlined"))
			location.is_inlined = json_read_bool(&in->r);
		else if (is_key(in, "nameless"))
			location.is_nameless = json_read_bool(&in->r);
		else
			json_skip(&in->r);
	}
	if (location.function == PROFILE_NONE)
		json_fail(&in->r, "a frame has no function");
	return in->r.bad || in->text.err ? 0 : add_number(&in->frames, profile_location(in->importer->profile, &location));
}

static int read_stack(struct json_import *in)
{
	int err = 0;

	import_begin(in->importer);
	for (json_enter(&in->r, '['); !err && json_next(&in->r);) {
		uint32_t location = read_place(in, &in->frames, false);

		if (!in->r.bad)
			err = import_push(in->importer, location);
	}
	if (err || in->r.bad)
		return err;
	err = import_close(in->importer);
	return err ? err : add_number(&in->stacks, profile_stack(in->importer->profile, in->importer->frames, in->importer->nr_frames));
}

static int read_value_type(struct json_import *in)
{
	struct profile_value_type type = { 0 };

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (is_key(in, "type"))
			type.type = read_string(in);
		else if (is_key(in, "unit"))
			type.unit = read_string(in);
		else if (is_key(in, "fold"))
			type.fold = read_word(in, value_fold_word, VALUE_FOLD_COUNT, "values fold by sum, min or max");
		else
			json_skip(&in->r);
	}
	if (in->nr_types == PROFILE_MAX_VALUES)
		json_fail(&in->r, PROFILE_TOO_MANY_VALUES);
	else if (type.fold == VALUE_SUM && in->nr_types && in->types[in->nr_types - 1].fold != VALUE_SUM)
		json_fail(&in->r, "kinds of values that are sums stand before those that are not");
	else
		in->types[in->nr_types++] = type;
	return 0;
}

static void read_labels(struct json_import *in, struct profile_sample *sample)
{
	struct profile_label label;

	for (json_enter(&in->r, '['); json_next(&in->r);) {
		if (json_label(in->importer, &in->r, &in->text, &label))
			import_label(in->importer, sample, &label);
	}
}

static void read_values(struct json_import *in, struct profile_sample *sample)
{
	uint32_t nr = 0;

	for (json_enter(&in->r, '['); json_next(&in->r); nr++) {
		if (nr == PROFILE_MAX_VALUES) {
			json_fail(&in->r, "a sample has more values than there are kinds");
			return;
		}
		sample->values[nr] = json_read_i64(&in->r);
	}
	for (; in->nr_types && nr > in->nr_types; nr--)
		sample->values[nr - 1] = 0;
}

static int read_sample(struct json_import *in)
{
	struct profile_sample sample = import_blank();

	import_begin(in->importer);
	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (is_key(in, "comm"))
			sample.comm = read_string(in);
		else if (is_key(in, "pid"))
			sample.tgid = read_u32(in);
		else if (is_key(in, "tid"))
			sample.tid = read_u32(in);
		else if (is_key(in, "cpu"))
			sample.cpu = json_take_null(&in->r) ? PROFILE_NONE : read_u32(in);
		else if (is_key(in, "user_stack"))
			sample.user_stack = read_place(in, &in->stacks, true);
		else if (is_key(in, "kernel_stack"))
			sample.kernel_stack = read_place(in, &in->stacks, true);
		else if (is_key(in, "time_unix_ns"))
			sample.time_ns = json_read_u64(&in->r);
		else if (is_key(in, "values"))
			read_values(in, &sample);
		else if (is_key(in, "count")) /* version 1 */
			sample.values[0] = json_read_i64(&in->r);
		else if (is_key(in, "labels"))
			read_labels(in, &sample);
		else
			json_skip(&in->r);
	}
	if (in->r.bad || in->text.err)
		return 0;
	sample.labels = profile_labels(in->importer->profile, in->importer->labels, in->importer->nr_labels);
	return sample.labels == PROFILE_NONE ? -ENOMEM : profile_add(in->importer->profile, &sample);
}

/* Reads one range of the scale and its count. */
static void read_slot(struct json_import *in, struct histogram *histogram)
{
	uint64_t low = 0, high = 0, count = 0, want_low, want_high;
	uint32_t slot;

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (is_key(in, "low"))
			low = json_read_u64(&in->r);
		else if (is_key(in, "high"))
			high = json_take_null(&in->r) ? UINT64_MAX : json_read_u64(&in->r);
		else if (is_key(in, "count"))
			count = json_read_u64(&in->r);
		else
			json_skip(&in->r);
	}
	slot = histogram_slot((enum histogram_scale)histogram->scale, low);
	histogram_bounds((enum histogram_scale)histogram->scale, slot, &want_low, &want_high);
	if (low != want_low || high != want_high || histogram->slots[slot])
		json_fail(&in->r, "a range is none of the histogram's, or stands there twice");
	else
		histogram->slots[slot] = count;
}

/* The ranges depend on the scale, which may follow them, so they are read last. */
static int read_histogram(struct json_import *in)
{
	struct profile_histogram entry = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE };
	struct json_reader behind, slots = { 0 };

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (is_key(in, "name"))
			entry.name = read_string(in);
		else if (is_key(in, "key"))
			entry.key = read_string(in);
		else if (is_key(in, "unit"))
			entry.unit = read_string(in);
		else if (is_key(in, "scale"))
			entry.histogram.scale =
			    read_word(in, scale_word, HISTOGRAM_SCALE_COUNT, "the scale of a histogram is log2 or linear");
		else if (is_key(in, "sum"))
			entry.histogram.sum = json_read_u64(&in->r);
		else if (is_key(in, "comm"))
			entry.comm = read_string(in);
		else if (is_key(in, "pid"))
			entry.tgid = read_u32(in);
		else if (is_key(in, "tid"))
			entry.tid = read_u32(in);
		else if (is_key(in, "user_stack"))
			entry.user_stack = read_place(in, &in->stacks, true);
		else if (is_key(in, "kernel_stack"))
			entry.kernel_stack = read_place(in, &in->stacks, true);
		else if (is_key(in, "slots") && !slots.pos) {
			slots = in->r;
			json_skip(&in->r);
		} else {
			json_skip(&in->r);
		}
	}
	behind = in->r;
	if (!in->r.bad && slots.pos) {
		in->r = slots;
		for (json_enter(&in->r, '['); json_next(&in->r);)
			read_slot(in, &entry.histogram);
		if (!in->r.bad)
			in->r = behind;
	}
	if (in->r.bad || in->text.err || in->key.err)
		return 0;
	if (!histogram_has_stack(&entry))
		entry.comm = entry.tgid = entry.tid = 0;
	return profile_histogram(in->importer->profile, &entry) == PROFILE_NONE ? -ENOMEM : 0;
}

/* -EBADMSG with the position if the text is not JSON, or not sonde's. */
static int verdict(const struct json_import *in)
{
	int err = in->text.err ? in->text.err : in->key.err;

	if (err == -EFBIG)
		return diag_errno(in->importer->diag, EFBIG, "a text in it is longer than %zu bytes", KEY_BYTES);
	return !err && in->r.bad ? import_bad(in->importer, "JSON", in->r.pos, in->r.bad) : err;
}

/* Reads each element of the list in this section. */
static int read_section(struct json_import *in, enum section section, int (*read)(struct json_import *in))
{
	int err = 0;

	if (!in->sections[section])
		return 0;
	in->r.pos = in->sections[section];
	for (json_enter(&in->r, '['); !err && !in->text.err && !in->key.err && json_next(&in->r);)
		err = read(in);
	return err ? err : verdict(in);
}

static int find_sections(struct json_import *in)
{
	static const char *const keys[] = { "mappings", "functions", "frames",	    "stacks",	 "value_types",
					    "samples",	"account",   "shown_value", "histograms" };

	for (json_enter(&in->r, '{'); !in->key.err && json_next_key(&in->r, &in->key);) {
		for (int i = 0; i < SECTION_COUNT; i++) {
			if (is_key(in, keys[i]))
				in->sections[i] = in->r.pos;
		}
		if (is_key(in, "version"))
			in->version = json_read_u64(&in->r);
		else
			json_skip(&in->r);
	}
	json_end(&in->r);
	if (!in->r.bad && (!in->version || in->version > JSON_VERSION))
		return diag_errno(in->importer->diag, EBADMSG, "its JSON is of version %llu, this sonde reads up to %d",
				  (unsigned long long)in->version, JSON_VERSION);
	return verdict(in);
}

static int settle_types(struct json_import *in)
{
	uint64_t shown = 0;

	if (in->sections[SECTION_SHOWN]) {
		in->r.pos = in->sections[SECTION_SHOWN];
		shown = json_read_u64(&in->r);
	}
	if (in->nr_types && shown >= in->nr_types)
		json_fail(&in->r, "shown_value is no place in value_types");
	if (in->nr_types && !in->r.bad)
		profile_set_value_types(in->importer->profile, in->types, in->nr_types, (uint32_t)shown);
	return verdict(in);
}

static int read_account(struct json_import *in)
{
	if (in->sections[SECTION_ACCOUNT]) {
		in->r.pos = in->sections[SECTION_ACCOUNT];
		json_account(&in->r, &in->key, &in->text, profile_account(in->importer->profile));
	}
	return verdict(in);
}

int read_json(struct importer *importer)
{
	CLEANUP(json_import_done) struct json_import in = {
		.importer = importer,
		.r = json_reader_of(importer->bytes, importer->size),
		.key = BUFFER_INIT(KEY_BYTES),
		.text = BUFFER_INIT(KEY_BYTES),
	};
	int err = find_sections(&in);

	if (!err)
		err = read_section(&in, SECTION_MAPPINGS, read_mapping);
	if (!err)
		err = read_section(&in, SECTION_FUNCTIONS, read_function);
	if (!err)
		err = read_section(&in, SECTION_FRAMES, read_frame);
	if (!err)
		err = read_section(&in, SECTION_STACKS, read_stack);
	if (!err)
		err = read_section(&in, SECTION_VALUE_TYPES, read_value_type);
	if (!err)
		err = settle_types(&in);
	if (!err)
		err = read_section(&in, SECTION_SAMPLES, read_sample);
	if (!err)
		err = read_section(&in, SECTION_HISTOGRAMS, read_histogram);
	return err ? err : read_account(&in);
}
