// SPDX-License-Identifier: Apache-2.0
#include "frames/functions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/interned.h"
#include "frames/frame_source.h"
#include "frames/mark_kind.h"

#define KEY_BYTES (4 * sizeof(uint32_t)) /* name, path, kind, start_line */

struct whole_stack whole_stack_of(const struct profile *profile, const struct profile_sample *sample)
{
	struct whole_stack stack = { .nr = 0 };
	uint32_t nr_user = 0;

	if (sample->kernel_stack != PROFILE_NONE)
		stack.kernel = profile_stack_at(profile, sample->kernel_stack, &stack.nr_kernel);
	if (sample->user_stack != PROFILE_NONE)
		stack.user = profile_stack_at(profile, sample->user_stack, &nr_user);
	stack.nr = stack.nr_kernel + nr_user;
	return stack;
}

static int find_rows(const struct profile *profile, struct functions *functions)
{
	CLEANUP(interned_done) struct interned rows = INTERNED_INIT(struct function_row, KEY_BYTES, UINT64_MAX);
	uint32_t nr_locations = profile_nr_locations(profile);

	functions->of_location = calloc((size_t)nr_locations + 1, sizeof(*functions->of_location));
	if (!functions->of_location)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_locations; i++) {
		const struct profile_location *location = profile_location_at(profile, i);
		struct function_row row = { .name = profile_function_at(profile, location->function)->name,
					    .path = frame_path(profile, location),
					    .kind = location->kind,
					    .start_line = frame_start_line(profile, location) };
		const char *name = profile_string_text(profile, row.name);

		row.is_code = row.kind != FRAME_MARK || mark_kind_of(name) == MARK_CUT;
		functions->of_location[i] = interned_add(&rows, &row);
		if (functions->of_location[i] == INTERNED_NONE)
			return -ENOMEM;
		if (row.kind == FRAME_MARK && !strcmp(name, PROFILE_WAKER))
			functions->waker = functions->of_location[i];
	}
	functions->nr = rows.nr;
	functions->rows = (void *)MOVE(rows.entries);
	return 0;
}

uint32_t functions_code_at(const struct functions *functions, const struct whole_stack *stack)
{
	uint32_t code = 0;

	for (uint32_t i = 0; functions->waker != PROFILE_NONE && i < stack->nr; i++) {
		if (functions->of_location[whole_stack_at(stack, i)] == functions->waker)
			code = i + 1;
	}
	while (code < stack->nr && !functions->rows[functions->of_location[whole_stack_at(stack, code)]].is_code)
		code++;
	return code < stack->nr ? code : 0;
}

static void count_sample(const struct profile *profile, uint32_t number, uint32_t value_type, uint32_t fold, struct functions *functions)
{
	const struct profile_sample *sample = profile_sample_at(profile, number);
	struct whole_stack stack = whole_stack_of(profile, sample);
	int64_t value = sample->values[value_type];
	uint32_t code;

	functions->all = value_fold(fold, functions->all, value);
	code = stack.nr ? functions_code_at(functions, &stack) : 0;
	for (uint32_t i = code; i < stack.nr; i++) {
		struct function_row *row = &functions->rows[functions->of_location[whole_stack_at(&stack, i)]];

		row->self = value_fold(fold, row->self, i > code ? 0 : value);
		row->total = value_fold(fold, row->total, row->last_sample == number + 1 ? 0 : value);
		row->last_sample = number + 1;
	}
}

int functions_tally(const struct profile *profile, uint32_t value, struct functions *ret_functions)
{
	CLEANUP(functions_done) struct functions functions = { .waker = PROFILE_NONE };
	uint32_t nr_types, fold = profile_value_types(profile, &nr_types)[value].fold;
	int err = find_rows(profile, &functions);

	if (err)
		return err;
	for (uint32_t i = 0; i < profile_nr_samples(profile); i++)
		count_sample(profile, i, value, fold, &functions);
	*ret_functions = functions;
	functions = (struct functions){ 0 };
	return 0;
}

void functions_done(struct functions *functions)
{
	free(functions->rows);
	free(functions->of_location);
	*functions = (struct functions){ 0 };
}

static int compare(int64_t left, int64_t right)
{
	return left == right ? 0 : left < right ? 1 : -1;
}

static int by_self(const void *a, const void *b)
{
	const struct function_row *left = *(const struct function_row *const *)a, *right = *(const struct function_row *const *)b;
	int order = compare(left->self, right->self);

	if (!order)
		order = compare(left->total, right->total);
	return order ? order : left < right ? -1 : left > right;
}

static int by_total(const void *a, const void *b)
{
	const struct function_row *left = *(const struct function_row *const *)a, *right = *(const struct function_row *const *)b;
	int order = compare(left->total, right->total);

	return order ? order : by_self(a, b);
}

const struct function_row **functions_sorted(const struct functions *functions, bool total_first)
{
	const struct function_row **sorted = calloc((size_t)functions->nr + 1, sizeof(*sorted));

	for (uint32_t i = 0; sorted && i < functions->nr; i++)
		sorted[i] = &functions->rows[i];
	if (sorted)
		qsort(sorted, functions->nr, sizeof(*sorted), total_first ? by_total : by_self);
	return sorted;
}

const char *function_row_name(const struct profile *profile, const struct function_row *row)
{
	const char *name = profile_string_text(profile, row->name);

	return *name ? name : "[unknown]";
}

const char *function_row_place(const struct profile *profile, const struct function_row *row, char room[FUNCTION_PLACE_BYTES])
{
	const char *base = path_base(profile_string_text(profile, row->path));

	if (row->kind == FRAME_KERNEL)
		return "kernel";
	if (!row->start_line || !*base)
		return base;
	snprintf(room, FUNCTION_PLACE_BYTES, "%.256s:%" PRIu32, base, row->start_line);
	return room;
}

uint32_t functions_state(const struct functions *functions, const struct whole_stack *stack)
{
	uint32_t code = stack->nr ? functions_code_at(functions, stack) : 0, row;

	if (!stack->nr)
		return PROFILE_NONE;
	row = functions->of_location[whole_stack_at(stack, code ? code - 1 : 0)];
	return functions->rows[row].is_code || row == functions->waker ? PROFILE_NONE : functions->rows[row].name;
}
