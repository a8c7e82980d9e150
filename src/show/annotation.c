// SPDX-License-Identifier: Apache-2.0
#include "show/annotation.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/interned.h"
#include "base/number.h"
#include "base/order.h"
#include "frames/frame_source.h"
#include "frames/functions.h"

#define LIST_BYTES_MAX ((size_t)4 << 30)

struct annotator {
	const struct profile *profile;
	bool *is_wanted;                          /* by function of the profile */
	struct interned places, addresses, lines; /* of the structs of annotation.h */
	int64_t all;
};

static void annotator_done(struct annotator *annotator)
{
	free(annotator->is_wanted);
	interned_done(&annotator->places);
	interned_done(&annotator->addresses);
	interned_done(&annotator->lines);
}

static uint32_t find_place(struct annotator *annotator, const struct profile_location *location)
{
	struct annotated_place place = { .name = profile_function_at(annotator->profile, location->function)->name,
					 .kind = location->kind,
					 .path = frame_path(annotator->profile, location),
					 .start_line = frame_start_line(annotator->profile, location) };

	if (location->mapping != PROFILE_NONE) {
		const struct profile_mapping *mapping = profile_mapping_at(annotator->profile, location->mapping);

		place.build_id = mapping->build_id;
		place.has_mapping = 1;
	}
	return interned_add(&annotator->places, &place);
}

/* The class of frame i of the stack. An instruction was interrupted if only functions inlined there are further in. */
static enum address_class class_of(const struct annotator *annotator, const struct whole_stack *stack, uint32_t i)
{
	uint32_t first = i < stack->nr_kernel ? 0 : stack->nr_kernel;

	while (i > first && profile_location_at(annotator->profile, whole_stack_at(stack, i - 1))->is_inlined)
		i--;
	if (i > first)
		return ADDRESS_CALL;
	return first ? ADDRESS_ENTRY : ADDRESS_LEAF;
}

static uint64_t file_off_of(const struct profile *profile, const struct profile_location *location)
{
	const struct profile_mapping *mapping = profile_mapping_at(profile, location->mapping);

	return location->pc - mapping->start_pc + mapping->file_off;
}

static void count(uint32_t *last_sample, int64_t *self, int64_t *total, uint32_t number, bool is_self, int64_t value)
{
	*self = number_sum(*self, is_self ? value : 0);
	*total = number_sum(*total, *last_sample == number + 1 ? 0 : value);
	*last_sample = number + 1;
}

static int count_frame(struct annotator *annotator, uint32_t number, const struct whole_stack *stack, uint32_t i, int64_t value)
{
	const struct profile_location *location = profile_location_at(annotator->profile, whole_stack_at(stack, i));
	uint32_t place_number = find_place(annotator, location), found;
	struct annotated_address address = { .place = place_number,
					     .elf_vaddr = location->elf_vaddr,
					     .class = class_of(annotator, stack, i) };
	struct annotated_line line = { .place = place_number,
				       .line = location->line,
				       .file = profile_function_at(annotator->profile, location->function)->file };
	struct annotated_place *place;
	struct annotated_address *at;
	struct annotated_line *on;

	if (place_number == INTERNED_NONE)
		return -ENOMEM;
	place = interned_at(&annotator->places, place_number);
	count(&place->last_sample, &place->self, &place->total, number, !i, value);
	if (location->mapping != PROFILE_NONE && (location->elf_vaddr || location->pc)) {
		if (!location->elf_vaddr) {
			address.is_file_off = 1;
			address.elf_vaddr = file_off_of(annotator->profile, location);
		}
		found = interned_add(&annotator->addresses, &address);
		if (found == INTERNED_NONE)
			return -ENOMEM;
		at = interned_at(&annotator->addresses, found);
		at->function_off = location->function_off;
		count(&at->last_sample, &at->self, &at->total, number, !i, value);
	}
	if (line.line && line.file != PROFILE_EMPTY_STRING) {
		found = interned_add(&annotator->lines, &line);
		if (found == INTERNED_NONE)
			return -ENOMEM;
		on = interned_at(&annotator->lines, found);
		count(&on->last_sample, &on->self, &on->total, number, !i, value);
	}
	return 0;
}

static int count_samples(struct annotator *annotator)
{
	const struct profile *profile = annotator->profile;

	for (uint32_t number = 0; number < profile_nr_samples(profile); number++) {
		const struct profile_sample *sample = profile_sample_at(profile, number);
		struct whole_stack stack = whole_stack_of(profile, sample);
		int64_t value = sample->values[profile_shown_value(profile)];

		annotator->all = number_sum(annotator->all, value);
		for (uint32_t i = 0; i < stack.nr; i++) {
			uint32_t function = profile_location_at(profile, whole_stack_at(&stack, i))->function;
			int err = annotator->is_wanted[function] ? count_frame(annotator, number, &stack, i, value) : 0;

			if (err)
				return err;
		}
	}
	return 0;
}

static bool is_called(const struct profile *profile, const struct profile_function *function, const char *name, bool part)
{
	const char *shown = profile_string_text(profile, function->name), *linked = profile_string_text(profile, function->system_name);

	return part ? strstr(shown, name) || strstr(linked, name) : !strcmp(shown, name) || !strcmp(linked, name);
}

static int find_wanted(struct annotator *annotator, const char *name, struct diag *diag)
{
	uint32_t nr = profile_nr_functions(annotator->profile);
	bool is_found = false;

	annotator->is_wanted = calloc((size_t)nr + 1, sizeof(*annotator->is_wanted));
	if (!annotator->is_wanted)
		return -ENOMEM;
	for (int part = 0; part < 2 && !is_found; part++) {
		for (uint32_t i = 0; i < nr; i++) {
			if (is_called(annotator->profile, profile_function_at(annotator->profile, i), name, part))
				is_found = annotator->is_wanted[i] = true;
		}
	}
	return is_found ? 0 : diag_errno(diag, ENOENT, "no function in it is called '%.200s', or anything with that in it", name);
}

/* --- sorting -------------------------------------------------------------------------------------------------------------------------- */

static int order_places(const void *a, const void *b, void *arg)
{
	const struct annotated_place *places = arg, *left = &places[*(const uint32_t *)a], *right = &places[*(const uint32_t *)b];

	if (left->total != right->total)
		return left->total < right->total ? 1 : -1;
	return order(*(const uint32_t *)a, *(const uint32_t *)b);
}

static int order_addresses(const void *a, const void *b)
{
	const struct annotated_address *left = a, *right = b;
	int by = order(left->place, right->place);

	if (!by)
		by = order(left->is_file_off, right->is_file_off);
	if (!by)
		by = order(left->elf_vaddr, right->elf_vaddr);
	return by ? by : order(left->class, right->class);
}

static int order_lines(const void *a, const void *b)
{
	const struct annotated_line *left = a, *right = b;
	int by = order(left->place, right->place);

	if (!by)
		by = order(left->file, right->file);
	return by ? by : order(left->line, right->line);
}

/* Sorts the places by total, largest first, and their addresses and lines with them. */
static int sort(struct annotator *annotator, struct annotation *annotation)
{
	struct annotated_place *places = (struct annotated_place *)annotator->places.entries;
	CLEANUP(freep) uint32_t *sorted = calloc((size_t)annotation->nr_places + 1, 2 * sizeof(*sorted));
	uint32_t *rank = sorted ? sorted + annotation->nr_places : NULL;

	annotation->places = calloc((size_t)annotation->nr_places + 1, sizeof(*places));
	if (!annotation->places || !sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < annotation->nr_places; i++)
		sorted[i] = i;
	qsort_r(sorted, annotation->nr_places, sizeof(*sorted), order_places, places);
	for (uint32_t i = 0; i < annotation->nr_places; i++) {
		annotation->places[i] = places[sorted[i]];
		rank[sorted[i]] = i;
	}
	for (uint32_t i = 0; i < annotation->nr_addresses; i++)
		annotation->addresses[i].place = rank[annotation->addresses[i].place];
	for (uint32_t i = 0; i < annotation->nr_lines; i++)
		annotation->lines[i].place = rank[annotation->lines[i].place];
	if (annotation->nr_addresses)
		qsort(annotation->addresses, annotation->nr_addresses, sizeof(*annotation->addresses), order_addresses);
	if (annotation->nr_lines)
		qsort(annotation->lines, annotation->nr_lines, sizeof(*annotation->lines), order_lines);
	return 0;
}

/* By row: can there be source or code of it? The kernel's code is in no file, and most kernels' lines are not known. */
static bool *rows_with_code(const struct profile *profile, const struct functions *functions)
{
	bool *has_code = calloc((size_t)functions->nr + 1, sizeof(*has_code));

	for (uint32_t i = 0; has_code && i < profile_nr_locations(profile); i++) {
		const struct profile_location *location = profile_location_at(profile, i);

		if (annotation_has_code(location->kind) && (location->kind != FRAME_KERNEL || location->line))
			has_code[functions->of_location[i]] = true;
	}
	return has_code;
}

/* The functions of the rows that took most by themselves. */
static int find_hottest(struct annotator *annotator)
{
	const struct profile *profile = annotator->profile;
	CLEANUP(functions_done) struct functions functions = { 0 };
	CLEANUP(freep) const struct function_row **sorted = NULL;
	CLEANUP(freep) bool *has_code = NULL;
	uint32_t nr = 0;
	int err = functions_tally(profile, profile_shown_value(profile), &functions);

	if (err)
		return err;
	sorted = functions_sorted(&functions, false);
	has_code = rows_with_code(profile, &functions);
	annotator->is_wanted = calloc((size_t)profile_nr_functions(profile) + 1, sizeof(*annotator->is_wanted));
	if (!sorted || !has_code || !annotator->is_wanted)
		return -ENOMEM;
	for (uint32_t i = 0; i < functions.nr; i++) {
		bool *is_hot = &has_code[sorted[i] - functions.rows];

		*is_hot = *is_hot && sorted[i]->self > 0 && nr < ANNOTATED_FUNCTIONS_MAX;
		nr += *is_hot;
	}
	for (uint32_t i = 0; i < profile_nr_locations(profile); i++) {
		if (has_code[functions.of_location[i]])
			annotator->is_wanted[profile_location_at(profile, i)->function] = true;
	}
	return 0;
}

/* `function` NULL: the hottest. */
static int make(const struct profile *profile, const char *function, struct diag *diag, struct annotation *ret_annotation)
{
	CLEANUP(annotator_done)
	struct annotator annotator = {
		.profile = profile,
		.places = INTERNED_INIT(struct annotated_place, offsetof(struct annotated_place, last_sample), LIST_BYTES_MAX),
		.addresses = INTERNED_INIT(struct annotated_address, offsetof(struct annotated_address, last_sample), LIST_BYTES_MAX),
		.lines = INTERNED_INIT(struct annotated_line, offsetof(struct annotated_line, last_sample), LIST_BYTES_MAX)
	};
	CLEANUP(annotation_done) struct annotation annotation = { .profile = profile };
	int err = profile_shown_fold(profile) == VALUE_SUM
		      ? 0
		      : diag_errno(diag, EINVAL, "the value is not a sum, so lines have no shares of it (--value names another)");

	if (!err)
		err = function ? find_wanted(&annotator, function, diag) : find_hottest(&annotator);
	if (!err)
		err = count_samples(&annotator);
	if (err)
		return err;
	annotation.all = annotator.all;
	annotation.nr_places = annotator.places.nr;
	annotation.nr_addresses = annotator.addresses.nr;
	annotation.nr_lines = annotator.lines.nr;
	annotation.addresses = (void *)MOVE(annotator.addresses.entries);
	annotation.lines = (void *)MOVE(annotator.lines.entries);
	err = sort(&annotator, &annotation);
	if (err)
		return err;
	*ret_annotation = annotation;
	annotation = (struct annotation){ 0 };
	return 0;
}

int annotation_make(const struct profile *profile, const char *function, struct diag *diag, struct annotation *ret_annotation)
{
	return make(profile, function, diag, ret_annotation);
}

int annotation_make_hottest(const struct profile *profile, struct diag *diag, struct annotation *ret_annotation)
{
	return make(profile, NULL, diag, ret_annotation);
}

void annotation_done(struct annotation *annotation)
{
	free(annotation->places);
	free(annotation->addresses);
	free(annotation->lines);
	*annotation = (struct annotation){ 0 };
}

/* The instruction that contains the byte, or PROFILE_NONE. */
static uint32_t instruction_at(const struct shown_instruction *instructions, uint32_t nr, uint64_t elf_vaddr)
{
	uint32_t low = 0, high = nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (instructions[middle].elf_vaddr <= elf_vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && elf_vaddr - instructions[low - 1].elf_vaddr < instructions[low - 1].nr_bytes ? low - 1 : PROFILE_NONE;
}

static bool is_system_call(const struct shown_instruction *instruction)
{
	return !strncmp(instruction->text, "syscall", 7) || !strncmp(instruction->text, "svc", 3) || !strncmp(instruction->text, "int ", 4);
}

uint32_t annotation_give(const struct annotated_address *addresses, uint32_t nr, struct shown_instruction *instructions,
			 uint32_t nr_instructions)
{
	uint32_t nr_left = 0;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t at = instruction_at(instructions, nr_instructions, addresses[i].elf_vaddr);
		uint32_t before = instruction_at(instructions, nr_instructions, addresses[i].elf_vaddr - 1);

		if (addresses[i].class == ADDRESS_CALL ||
		    (addresses[i].class == ADDRESS_ENTRY && before != PROFILE_NONE && is_system_call(&instructions[before])))
			at = before;
		if (at == PROFILE_NONE) {
			nr_left++;
			continue;
		}
		instructions[at].self = number_sum(instructions[at].self, addresses[i].self);
		instructions[at].total = number_sum(instructions[at].total, addresses[i].total);
	}
	return nr_left;
}
