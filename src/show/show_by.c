// SPDX-License-Identifier: Apache-2.0
/* Tables by what a sample belongs to, once (command, process, thread, CPU, state, span, trace) or more often (label), or by frames: a file
 * or language has it as self by its innermost frame, and as total by any frame. A command is all processes with one name. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/interned.h"
#include "base/number.h"
#include "frames/language.h"
#include "frames/process_names.h"
#include "model/span_label.h"
#include "show/show_table.h"
#include "show/show_text.h"

#define TABLE_LINES 40
#define ROWS_BYTES_MAX ((size_t)4 << 30)

struct group {
	/* name, tgid, tid; cpu; path, state or trace (string); name, tgid, span, trace; of a label see label_group; 0: `language` is it */
	uint32_t key[4];
	const char *language; /* the last part of the key */
	uint32_t last_sample; /* last sample counted into total, plus one */
	uint32_t hottest;     /* row of the functions, or PROFILE_NONE */
	uint32_t nr_processes, tgid; /* of a command or trace: the first one's tgid */
	int64_t self, total, hottest_self;
};
#define GROUP_KEY_BYTES offsetof(struct group, last_sample)

struct grouping {
	const struct profile *profile;
	const struct functions *functions;
	uint32_t *process_names; /* by sample, for commands and processes */
	struct u64_map processes; /* (group, tgid) of commands and traces: seen */
	enum show_by by;
	uint32_t fold;         /* of the shown value */
	struct interned groups; /* of struct group */
	uint32_t *of_location; /* by location: its group plus one, for files and languages */
	struct u64_map pair_index; /* (group, row): index in pairs */
	struct buffer pairs;   /* int64_t each: the row's self value in the group */
};

#define X(id, word, heading) word,
static const char *const words[] = { SHOW_BY_LIST(X) };
#undef X
#define X(id, word, heading) heading,
static const char *const headings[] = { SHOW_BY_LIST(X) };
#undef X
#define X(id, word, heading) " " word
static const char all_words[] = SHOW_BY_LIST(X);
#undef X

int show_by_name(const char *word, struct diag *diag, enum show_by *ret_by)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(words[i], word)) {
			*ret_by = (enum show_by)i;
			return 0;
		}
	}
	return diag_errno(diag, EINVAL, "there is no table by '%.40s'; there are:%s", word, all_words);
}

static bool is_by_frame(const struct grouping *grouping)
{
	return grouping->by == SHOW_BY_FILE || grouping->by == SHOW_BY_LANGUAGE;
}

static struct group *group_at(const struct grouping *grouping, uint32_t i)
{
	return interned_at(&grouping->groups, i);
}

static void set_span(const struct grouping *grouping, const struct profile_sample *sample, uint32_t number, struct group *group)
{
	struct span_ids ids = span_ids_of(grouping->profile, sample->labels);

	if (grouping->by == SHOW_BY_TRACE) {
		group->language = ids.trace == PROFILE_NONE ? "[no trace]" : NULL;
		group->key[0] = group->language ? 0 : ids.trace;
		return;
	}
	group->language = ids.span == PROFILE_NONE ? "[no span]" : NULL;
	if (!group->language)
		memcpy(group->key, (uint32_t[]){ grouping->process_names[number], sample->tgid, ids.span, ids.trace }, sizeof(group->key));
}

static uint32_t group_of_sample(struct grouping *grouping, uint32_t number, const struct whole_stack *stack)
{
	const struct profile_sample *sample = profile_sample_at(grouping->profile, number);
	struct group group = { .hottest = PROFILE_NONE };

	switch (grouping->by) {
	case SHOW_BY_CPU:
		group.key[0] = sample->cpu;
		break;
	case SHOW_BY_STATE:
		group.key[0] = functions_state(grouping->functions, stack);
		if (group.key[0] == PROFILE_NONE)
			group.language = "[no state]";
		break;
	case SHOW_BY_THREAD:
		group.key[0] = sample->comm;
		group.key[1] = sample->tgid;
		group.key[2] = sample->tid;
		break;
	case SHOW_BY_SPAN:
	case SHOW_BY_TRACE:
		set_span(grouping, sample, number, &group);
		break;
	default:
		group.key[0] = grouping->process_names[number];
		group.key[1] = grouping->by == SHOW_BY_PROCESS ? sample->tgid : 0;
		break;
	}
	return interned_add(&grouping->groups, &group);
}

/* Counts the processes of a command or trace. */
static int count_process(struct grouping *grouping, uint32_t group_number, uint32_t tgid)
{
	uint64_t key = (uint64_t)group_number << 32 | tgid;
	struct group *group = group_at(grouping, group_number);

	if (u64_map_find(&grouping->processes, key))
		return 0;
	if (!group->nr_processes++)
		group->tgid = tgid;
	return u64_map_add(&grouping->processes, key, 0);
}

/* Its key is the label's key and text, or number and unit. */
static uint32_t label_group(struct grouping *grouping, const struct profile_label *label)
{
	struct group group = { .hottest = PROFILE_NONE };

	group.key[0] = label->key;
	group.key[1] = label->is_number ? (uint32_t)label->number : label->text;
	group.key[2] = label->is_number ? (uint32_t)((uint64_t)label->number >> 32) : 0;
	group.key[3] = label->is_number ? label->unit + 1 : 0;
	return interned_add(&grouping->groups, &group);
}

static uint32_t group_of_location(struct grouping *grouping, uint32_t location)
{
	const struct function_row *row = &grouping->functions->rows[grouping->functions->of_location[location]];
	struct group group = { .key[0] = row->path, .hottest = PROFILE_NONE };
	uint32_t number;

	if (grouping->of_location[location])
		return grouping->of_location[location] - 1;
	if (grouping->by == SHOW_BY_LANGUAGE) {
		group.key[0] = 0;
		group.language = language_of(grouping->profile, location);
	} else if (row->path == PROFILE_EMPTY_STRING) {
		group.language = row->kind == FRAME_KERNEL					? "[kernel]"
				 : row->kind == FRAME_NATIVE || frame_is_interpreted(row->kind) ? "[no file]"
												: "[not known]";
	}
	number = interned_add(&grouping->groups, &group);
	grouping->of_location[location] = number == PROFILE_NONE ? 0 : number + 1;
	return number;
}

/* Tallies each function's self value in its group. Shortest times have no hottest function. */
static int count_hottest(struct grouping *grouping, uint32_t group_number, uint32_t row, int64_t value)
{
	struct group *group = group_at(grouping, group_number);
	uint64_t key = (uint64_t)group_number << 32 | row;
	uint32_t *found = u64_map_find(&grouping->pair_index, key), number = (uint32_t)(grouping->pairs.size / sizeof(value));
	int64_t *sum;

	if (grouping->fold == VALUE_MIN)
		return 0;
	if (!found) {
		int64_t zero = 0;

		buffer_append(&grouping->pairs, &zero, sizeof(zero));
		if (grouping->pairs.err || u64_map_add(&grouping->pair_index, key, number))
			return -ENOMEM;
	}
	sum = (int64_t *)grouping->pairs.data + (found ? *found : number);
	*sum = value_fold(grouping->fold, *sum, value);
	if (group->hottest == PROFILE_NONE || *sum > group->hottest_self) {
		group->hottest = row;
		group->hottest_self = *sum;
	}
	return 0;
}

static int count_frames(struct grouping *grouping, uint32_t sample_number, const struct whole_stack *stack, int64_t value)
{
	uint32_t code;

	if (!stack->nr) { /* belongs to no file or language, but is counted */
		uint32_t number = interned_add(&grouping->groups, &(struct group){ .language = "[no stack]", .hottest = PROFILE_NONE });

		if (number == PROFILE_NONE)
			return -ENOMEM;
		group_at(grouping, number)->self = value_fold(grouping->fold, group_at(grouping, number)->self, value);
		group_at(grouping, number)->total = value_fold(grouping->fold, group_at(grouping, number)->total, value);
	}
	code = stack->nr ? functions_code_at(grouping->functions, stack) : 0;
	for (uint32_t i = code; i < stack->nr; i++) {
		uint32_t location = whole_stack_at(stack, i), number = group_of_location(grouping, location);
		uint32_t row = grouping->functions->of_location[location];
		struct group *group;

		if (number == PROFILE_NONE || (i == code && count_hottest(grouping, number, row, value)))
			return -ENOMEM;
		group = group_at(grouping, number);
		group->self = value_fold(grouping->fold, group->self, i > code ? 0 : value);
		group->total = value_fold(grouping->fold, group->total, group->last_sample == sample_number + 1 ? 0 : value);
		group->last_sample = sample_number + 1;
	}
	return 0;
}

static int count_in(struct grouping *grouping, uint32_t number, const struct whole_stack *stack, int64_t value)
{
	uint32_t code;

	if (number == PROFILE_NONE)
		return -ENOMEM;
	group_at(grouping, number)->self = value_fold(grouping->fold, group_at(grouping, number)->self, value);
	if (!stack->nr)
		return 0;
	code = functions_code_at(grouping->functions, stack);
	return count_hottest(grouping, number, grouping->functions->of_location[whole_stack_at(stack, code)], value);
}

/* A sample counts in each of its labels. */
static int count_labels(struct grouping *grouping, const struct profile_sample *sample, const struct whole_stack *stack,
			int64_t value)
{
	uint32_t nr_labels;
	const struct profile_label *labels = profile_labels_at(grouping->profile, sample->labels, &nr_labels);
	int err = 0;

	if (!nr_labels) {
		struct group none = { .language = "[no label]", .hottest = PROFILE_NONE };

		return count_in(grouping, interned_add(&grouping->groups, &none), stack, value);
	}
	for (uint32_t i = 0; i < nr_labels && !err; i++)
		err = count_in(grouping, label_group(grouping, &labels[i]), stack, value);
	return err;
}

static int count_sample(struct grouping *grouping, uint32_t number)
{
	const struct profile_sample *sample = profile_sample_at(grouping->profile, number);
	struct whole_stack stack = whole_stack_of(grouping->profile, sample);
	int64_t value = sample->values[profile_shown_value(grouping->profile)];
	uint32_t group;
	int err;

	if (is_by_frame(grouping))
		return count_frames(grouping, number, &stack, value);
	if (grouping->by == SHOW_BY_LABEL)
		return count_labels(grouping, sample, &stack, value);
	group = group_of_sample(grouping, number, &stack);
	err = count_in(grouping, group, &stack, value);
	if (err || !value || (grouping->by != SHOW_BY_COMM && grouping->by != SHOW_BY_TRACE))
		return err;
	return count_process(grouping, group, sample->tgid);
}

static int by_self(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	if (left->self != right->self)
		return left->self < right->self ? 1 : -1;
	if (left->total != right->total)
		return left->total < right->total ? 1 : -1;
	return memcmp(left->key, right->key, sizeof(left->key));
}

/* The name of a command, process or thread, with its ids. */
static void write_owner(const struct grouping *grouping, const struct group *group, struct buffer *buffer)
{
	const char *name = profile_string_text(grouping->profile, group->key[0]);

	show_name(buffer, *name ? name : "[no name]");
	if (group->nr_processes > 1)
		buffer_printf(buffer, " (%" PRIu32 " processes)", group->nr_processes);
	else if (group->tgid)
		buffer_printf(buffer, " %" PRIu32, group->tgid);
	if (group->key[1])
		buffer_printf(buffer, " %" PRIu32, group->key[1]);
	if (group->key[2])
		buffer_printf(buffer, "/%" PRIu32, group->key[2]);
}

static void write_label(const struct grouping *grouping, const struct group *group, struct buffer *buffer)
{
	const struct profile *profile = grouping->profile;

	show_name(buffer, profile_string_text(profile, group->key[0]));
	buffer_text(buffer, "=");
	if (!group->key[3]) {
		show_name(buffer, profile_string_text(profile, group->key[1]));
		return;
	}
	buffer_printf(buffer, "%" PRId64 " ", (int64_t)((uint64_t)group->key[2] << 32 | group->key[1]));
	show_name(buffer, profile_string_text(profile, group->key[3] - 1));
}

/* The span first, so that its column is even. */
static void write_span(const struct grouping *grouping, const struct group *group, struct buffer *buffer)
{
	const char *name = profile_string_text(grouping->profile, group->key[0]);

	show_name(buffer, profile_string_text(grouping->profile, group->key[2]));
	buffer_text(buffer, " ");
	show_name(buffer, group->key[3] == PROFILE_NONE ? "[no trace]" : profile_string_text(grouping->profile, group->key[3]));
	buffer_text(buffer, "  ");
	show_name(buffer, *name ? name : "[no name]");
	if (group->key[1])
		buffer_printf(buffer, " %" PRIu32, group->key[1]);
}

static void write_name(const struct grouping *grouping, const struct group *group, struct buffer *buffer)
{
	if (group->language)
		show_name(buffer, group->language);
	else if (grouping->by == SHOW_BY_CPU && group->key[0] == PROFILE_NONE)
		buffer_text(buffer, "not known");
	else if (grouping->by == SHOW_BY_CPU)
		buffer_printf(buffer, "%" PRIu32, group->key[0]);
	else if (grouping->by == SHOW_BY_FILE || grouping->by == SHOW_BY_STATE)
		show_name(buffer, profile_string_text(grouping->profile, group->key[0]));
	else if (grouping->by == SHOW_BY_LABEL)
		write_label(grouping, group, buffer);
	else if (grouping->by == SHOW_BY_SPAN)
		write_span(grouping, group, buffer);
	else
		write_owner(grouping, group, buffer);
}

static void write_group(const struct grouping *grouping, const struct group *group, const struct show_options *options,
			struct buffer *buffer)
{
	size_t from = buffer->size;

	show_parts(buffer, grouping->profile, options, group->self, is_by_frame(grouping) ? &group->total : NULL, grouping->functions->all);
	write_name(grouping, group, buffer);
	if (group->hottest != PROFILE_NONE && group->self) {
		buffer_text(buffer, "  (");
		if (grouping->fold == VALUE_SUM)
			buffer_printf(buffer, "%.0f %% ", 100.0 * (double)group->hottest_self / (double)group->self);
		show_name(buffer, function_row_name(grouping->profile, &grouping->functions->rows[group->hottest]));
		buffer_text(buffer, ")");
	}
	show_line_end(buffer, options, from);
}

static int by_group_total(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	return left->total != right->total ? (left->total < right->total ? 1 : -1) : by_self(a, b);
}

static void write_groups(struct grouping *grouping, uint32_t max_lines, const struct show_options *options, struct buffer *buffer)
{
	uint32_t nr = grouping->groups.nr, i;
	char rest_heading[64];
	int64_t rest = 0;

	if (nr)
		qsort(grouping->groups.entries, nr, sizeof(struct group), options->sort_total ? by_group_total : by_self);
	while (nr && !group_at(grouping, nr - 1)->self && !group_at(grouping, nr - 1)->total) /* left out by --focus */
		nr--;
	snprintf(rest_heading, sizeof(rest_heading), "%s%s", headings[grouping->by],
		 grouping->fold == VALUE_MIN ? "" : "  (hottest function)");
	if (is_by_frame(grouping))
		show_parts_heading(buffer, grouping->profile, options, "SELF", "TOTAL", "SELF", rest_heading);
	else
		show_parts_heading(buffer, grouping->profile, options, grouping->fold == VALUE_SUM ? "SHARE" : "VALUE", NULL, "VALUE",
				   rest_heading);
	for (i = 0; i < nr && i < max_lines; i++)
		write_group(grouping, group_at(grouping, i), options, buffer);
	for (uint32_t k = i; k < nr; k++)
		rest = number_sum(rest, group_at(grouping, k)->self);
	if (i < nr && grouping->fold != VALUE_SUM)
		buffer_printf(buffer, "%" PRIu32 " more\n", nr - i);
	else if (i < nr && grouping->functions->all)
		buffer_printf(buffer, "%8.2f %%  %" PRIu32 " more\n", 100.0 * (double)rest / (double)grouping->functions->all, nr - i);
}

static void grouping_done(struct grouping *grouping)
{
	interned_done(&grouping->groups);
	buffer_done(&grouping->pairs);
	u64_map_done(&grouping->pair_index);
	u64_map_done(&grouping->processes);
	free(grouping->process_names);
	free(grouping->of_location);
}

int show_groups(const struct profile *profile, enum show_by by, const struct functions *functions, uint32_t max_lines,
		const struct show_options *options, struct buffer *buffer)
{
	CLEANUP(grouping_done)
	struct grouping grouping = { .profile = profile,
				     .functions = functions,
				     .by = by,
				     .fold = profile_shown_fold(profile),
				     .groups = INTERNED_INIT(struct group, GROUP_KEY_BYTES, ROWS_BYTES_MAX),
				     .pairs = BUFFER_INIT(ROWS_BYTES_MAX) };
	bool has_names = by == SHOW_BY_COMM || by == SHOW_BY_PROCESS || by == SHOW_BY_SPAN;
	int err = 0;

	grouping.of_location = calloc((size_t)profile_nr_locations(profile) + 1, sizeof(*grouping.of_location));
	if (has_names)
		grouping.process_names = process_names(profile);
	if (!grouping.of_location || (has_names && !grouping.process_names))
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < profile_nr_samples(profile); i++)
		err = count_sample(&grouping, i);
	if (!err)
		write_groups(&grouping, max_lines, options, buffer);
	return err;
}

int show_table(const struct profile *profile, enum show_by by, const struct show_options *options, struct buffer *buffer)
{
	CLEANUP(functions_done) struct functions functions = { 0 };
	int err = functions_tally(profile, profile_shown_value(profile), &functions);

	if (err)
		return err;
	show_title(buffer, profile, options, functions.all);
	return show_groups(profile, by, &functions, options->max_lines ? options->max_lines : TABLE_LINES, options, buffer);
}
