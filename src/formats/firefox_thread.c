// SPDX-License-Identifier: Apache-2.0
/* Writes a thread as columns of numbers. First everything it uses is numbered, from stacks to locations, functions, libraries and
 * strings. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/firefox.h"

#define RESOURCE_LIBRARY 1
#define NO_ADDRESS	 (-1)
#define NO_NAME		 "[no name]"

static int renumber_init(struct renumber *numbers, uint32_t nr_entries)
{
	numbers->number = calloc((size_t)nr_entries + 1, sizeof(*numbers->number));
	numbers->used = calloc((size_t)nr_entries + 1, sizeof(*numbers->used));
	return numbers->number && numbers->used ? 0 : -ENOMEM;
}

static void renumber_clear(struct renumber *numbers)
{
	while (numbers->nr > 0)
		numbers->number[numbers->used[--numbers->nr]] = 0;
}

static void renumber_done(struct renumber *numbers)
{
	free(numbers->number);
	free(numbers->used);
}

static uint32_t renumber(struct renumber *numbers, uint32_t entry)
{
	if (!numbers->number[entry]) {
		numbers->used[numbers->nr] = entry;
		numbers->number[entry] = ++numbers->nr;
	}
	return numbers->number[entry] - 1;
}

int firefox_thread_prepare(struct firefox *firefox)
{
	const struct profile *profile = firefox->profile;
	int err = renumber_init(&firefox->strings, profile_nr_strings(profile));

	if (!err)
		err = renumber_init(&firefox->chains, inlines_nr_chains(&firefox->inlines));
	if (!err)
		err = renumber_init(&firefox->functions, firefox->frames.nr_entries);
	if (!err)
		err = renumber_init(&firefox->symbols, firefox->frames.nr_entries);
	if (!err)
		err = renumber_init(&firefox->libs, profile_nr_mappings(profile));
	firefox->leaf = calloc((size_t)profile_nr_samples(profile) + 1, sizeof(*firefox->leaf));
	firefox->symbol_location = calloc((size_t)firefox->frames.nr_entries + 1, sizeof(*firefox->symbol_location));
	firefox->function_lib = calloc((size_t)firefox->frames.nr_entries + 1, sizeof(*firefox->function_lib));
	return err || !firefox->leaf || !firefox->symbol_location || !firefox->function_lib ? -ENOMEM : 0;
}

void firefox_thread_done(struct firefox *firefox)
{
	renumber_done(&firefox->strings);
	renumber_done(&firefox->chains);
	renumber_done(&firefox->functions);
	renumber_done(&firefox->symbols);
	renumber_done(&firefox->libs);
	call_nodes_done(&firefox->stacks);
	free(firefox->leaf);
	free(firefox->symbol_location);
	free(firefox->function_lib);
}

static uint32_t lib_of(const struct firefox *firefox, uint32_t location)
{
	uint32_t mapping = profile_location_at(firefox->profile, location)->mapping;

	return mapping == PROFILE_NONE ? PROFILE_NONE : firefox->lib_of[mapping];
}

/* The location whose function has a symbol of its own (an inlined function is inside another's), or PROFILE_NONE. */
static uint32_t symbol_of(const struct firefox *firefox, uint32_t chain)
{
	uint32_t location = inlines_location(&firefox->inlines, chain), outer, symbol;

	while ((outer = inlines_outer(&firefox->inlines, chain)) != PROFILE_NONE)
		chain = outer;
	symbol = inlines_location(&firefox->inlines, chain);
	if (profile_location_at(firefox->profile, symbol)->is_inlined || lib_of(firefox, location) == PROFILE_NONE ||
	    lib_of(firefox, location) != lib_of(firefox, symbol))
		return PROFILE_NONE;
	return symbol;
}

/* Numbers the first location of the chain and everything it refers to. */
static void use_chain(struct firefox *firefox, uint32_t chain)
{
	uint32_t location = inlines_location(&firefox->inlines, chain), symbol = symbol_of(firefox, chain);
	uint32_t entry = firefox->frames.of_location[location], lib = lib_of(firefox, location);

	if (firefox->chains.number[chain])
		return;
	renumber(&firefox->chains, chain);
	if (!firefox->functions.number[entry]) {
		const struct frame_entry *frame = &firefox->frames.entries[entry];

		renumber(&firefox->functions, entry);
		firefox->function_lib[entry] = lib; /* one path may be several libraries: the first is used */
		renumber(&firefox->strings, frame->name);
		renumber(&firefox->strings, profile_function_at(firefox->profile, frame->function)->file);
	}
	if (lib == PROFILE_NONE)
		return;
	renumber(&firefox->libs, lib);
	renumber(&firefox->strings, profile_mapping_at(firefox->profile, firefox->lib_mapping[lib])->path);
	if (symbol == PROFILE_NONE)
		return;
	entry = firefox->frames.of_location[symbol];
	if (firefox->symbols.number[entry])
		return;
	firefox->symbol_location[renumber(&firefox->symbols, entry)] = symbol;
	renumber(&firefox->strings, firefox->frames.entries[entry].name);
}

/* A thread's tables. Each is a set of columns, and each column a list of cells. */
typedef void (*write_cell)(struct firefox *firefox, uint32_t row);
struct column {
	const char *key;
	write_cell cell;
};

static void write_columns(struct firefox *firefox, const struct column *columns, size_t nr_columns, uint32_t nr_rows)
{
	struct json *json = &firefox->json;

	for (size_t i = 0; i < nr_columns; i++) {
		json_key(json, columns[i].key);
		json_open(json, '[');
		for (uint32_t row = 0; columns[i].cell && row < nr_rows; row++)
			columns[i].cell(firefox, row);
		json_close(json, ']');
	}
	json_key_u64(json, "length", nr_rows);
}

static void write_table(struct firefox *firefox, const char *name, const struct column *columns, size_t nr_columns, uint32_t nr_rows)
{
	json_line(&firefox->json);
	json_key(&firefox->json, name);
	json_open(&firefox->json, '{');
	write_columns(firefox, columns, nr_columns, nr_rows);
	json_close(&firefox->json, '}');
}

static void cell_null(struct firefox *firefox, uint32_t row)
{
	json_null(&firefox->json);
}

static void cell_zero(struct firefox *firefox, uint32_t row)
{
	json_u64(&firefox->json, 0);
}

static void cell_false(struct firefox *firefox, uint32_t row)
{
	json_bool(&firefox->json, false);
}

static void number_or_null(struct firefox *firefox, uint32_t number)
{
	if (number)
		json_u64(&firefox->json, number);
	else
		json_null(&firefox->json);
}

static void string_number(struct firefox *firefox, uint32_t string)
{
	json_u64(&firefox->json, firefox->strings.number[string] - 1);
}

static const struct profile_location *frame_location(const struct firefox *firefox, uint32_t row)
{
	return profile_location_at(firefox->profile, inlines_location(&firefox->inlines, firefox->chains.used[row]));
}

static uint32_t category(uint32_t kind)
{
#define X(id, ...) [FRAME_##id] = FIREFOX_##id,
	static const enum firefox_category categories[] = { [FRAME_NATIVE] = FIREFOX_USER,
							    [FRAME_KERNEL] = FIREFOX_KERNEL,
							    [FRAME_MISSED] = FIREFOX_OTHER,
							    [FRAME_MARK] = FIREFOX_OTHER,
							    SONDE_RUNTIME_LIST(X, X, SONDE_NO_RUNTIME) };
#undef X

	return categories[kind];
}

static void frame_address(struct firefox *firefox, uint32_t row)
{
	const struct profile_location *location = frame_location(firefox, row);

	json_fixed(&firefox->json,
		   location->mapping == PROFILE_NONE || location->elf_vaddr > JSON_MAX_NUMBER ? NO_ADDRESS : (int64_t)location->elf_vaddr,
		   0);
}

static void frame_depth(struct firefox *firefox, uint32_t row)
{
	uint32_t depth = 0;

	for (uint32_t chain = firefox->chains.used[row]; (chain = inlines_outer(&firefox->inlines, chain)) != PROFILE_NONE;)
		depth++;
	json_u64(&firefox->json, depth);
}

static void frame_category(struct firefox *firefox, uint32_t row)
{
	json_u64(&firefox->json, category(frame_location(firefox, row)->kind));
}

static void frame_function(struct firefox *firefox, uint32_t row)
{
	json_u64(&firefox->json,
		 firefox->functions.number[firefox->frames.of_location[inlines_location(&firefox->inlines, firefox->chains.used[row])]] -
		     1);
}

static void frame_symbol(struct firefox *firefox, uint32_t row)
{
	uint32_t symbol = symbol_of(firefox, firefox->chains.used[row]);

	if (symbol == PROFILE_NONE)
		json_null(&firefox->json);
	else
		json_u64(&firefox->json, firefox->symbols.number[firefox->frames.of_location[symbol]] - 1);
}

static void frame_line(struct firefox *firefox, uint32_t row)
{
	number_or_null(firefox, frame_location(firefox, row)->line);
}

static void write_frame_table(struct firefox *firefox)
{
	static const struct column columns[] = {
		{ "address", frame_address },	{ "inlineDepth", frame_depth },	 { "category", frame_category },
		{ "subcategory", cell_zero },	{ "func", frame_function },	 { "nativeSymbol", frame_symbol },
		{ "innerWindowID", cell_zero }, { "implementation", cell_null }, { "line", frame_line },
		{ "column", cell_null },
	};

	write_table(firefox, "frameTable", columns, ARRAY_SIZE(columns), firefox->chains.nr);
}

static const struct frame_entry *function_entry(const struct firefox *firefox, uint32_t row)
{
	return &firefox->frames.entries[firefox->functions.used[row]];
}

static void function_name(struct firefox *firefox, uint32_t row)
{
	string_number(firefox, function_entry(firefox, row)->name);
}

static void function_resource(struct firefox *firefox, uint32_t row)
{
	uint32_t lib = firefox->function_lib[firefox->functions.used[row]];

	json_fixed(&firefox->json, lib == PROFILE_NONE ? -1 : (int64_t)firefox->libs.number[lib] - 1, 0);
}

static void function_file(struct firefox *firefox, uint32_t row)
{
	uint32_t file = profile_function_at(firefox->profile, function_entry(firefox, row)->function)->file;

	if (file == PROFILE_EMPTY_STRING)
		json_null(&firefox->json);
	else
		string_number(firefox, file);
}

static void function_line(struct firefox *firefox, uint32_t row)
{
	number_or_null(firefox, profile_function_at(firefox->profile, function_entry(firefox, row)->function)->line);
}

static void write_function_table(struct firefox *firefox)
{
	static const struct column columns[] = {
		{ "name", function_name },	   { "isJS", cell_false },	  { "relevantForJS", cell_false },
		{ "resource", function_resource }, { "fileName", function_file }, { "lineNumber", function_line },
		{ "columnNumber", cell_null },
	};

	write_table(firefox, "funcTable", columns, ARRAY_SIZE(columns), firefox->functions.nr);
}

static void resource_lib(struct firefox *firefox, uint32_t row)
{
	json_u64(&firefox->json, firefox->libs.used[row]);
}

static void resource_name(struct firefox *firefox, uint32_t row)
{
	string_number(firefox, profile_mapping_at(firefox->profile, firefox->lib_mapping[firefox->libs.used[row]])->path);
}

static void resource_type(struct firefox *firefox, uint32_t row)
{
	json_u64(&firefox->json, RESOURCE_LIBRARY);
}

static void symbol_lib(struct firefox *firefox, uint32_t row)
{
	json_u64(&firefox->json, lib_of(firefox, firefox->symbol_location[row]));
}

static void symbol_address(struct firefox *firefox, uint32_t row)
{
	const struct profile_location *location = profile_location_at(firefox->profile, firefox->symbol_location[row]);
	uint64_t address = location->elf_vaddr - location->function_off;

	json_fixed(&firefox->json, address > JSON_MAX_NUMBER ? 0 : (int64_t)address, 0);
}

static void symbol_name(struct firefox *firefox, uint32_t row)
{
	string_number(firefox, firefox->frames.entries[firefox->symbols.used[row]].name);
}

static void stack_frame(struct firefox *firefox, uint32_t row)
{
	json_u64(&firefox->json, firefox->chains.number[firefox->stacks.all[row].frame] - 1);
}

static void stack_prefix(struct firefox *firefox, uint32_t row)
{
	uint32_t parent = firefox->stacks.all[row].parent;

	if (parent == PROFILE_NONE)
		json_null(&firefox->json);
	else
		json_u64(&firefox->json, parent);
}

static void stack_category(struct firefox *firefox, uint32_t row)
{
	uint32_t location = inlines_location(&firefox->inlines, firefox->stacks.all[row].frame);

	json_u64(&firefox->json, category(profile_location_at(firefox->profile, location)->kind));
}

static void write_tables(struct firefox *firefox)
{
	static const struct column resources[] = {
		{ "lib", resource_lib }, { "name", resource_name }, { "host", cell_null }, { "type", resource_type }
	};
	static const struct column symbols[] = {
		{ "libIndex", symbol_lib }, { "address", symbol_address }, { "name", symbol_name }, { "functionSize", cell_null },
	};
	static const struct column stacks[] = {
		{ "frame", stack_frame }, { "prefix", stack_prefix }, { "category", stack_category }, { "subcategory", cell_zero },
	};
	static const struct column markers[] = {
		{ "data", NULL }, { "name", NULL }, { "startTime", NULL }, { "endTime", NULL }, { "phase", NULL }, { "category", NULL },
	};

	write_frame_table(firefox);
	write_function_table(firefox);
	write_table(firefox, "resourceTable", resources, ARRAY_SIZE(resources), firefox->libs.nr);
	write_table(firefox, "nativeSymbols", symbols, ARRAY_SIZE(symbols), firefox->symbols.nr);
	write_table(firefox, "stackTable", stacks, ARRAY_SIZE(stacks), firefox->stacks.nr);
	write_table(firefox, "markers", markers, ARRAY_SIZE(markers), 0);
}

static const struct profile_sample *sample_at(const struct firefox *firefox, uint32_t row)
{
	return profile_sample_at(firefox->profile, firefox->tracks.samples[firefox->track->first + row]);
}

static void sample_stack(struct firefox *firefox, uint32_t row)
{
	if (firefox->leaf[row] == PROFILE_NONE)
		json_null(&firefox->json);
	else
		json_u64(&firefox->json, firefox->leaf[row]);
}

static void sample_time(struct firefox *firefox, uint32_t row)
{
	json_fixed(&firefox->json, firefox->track->is_timed ? (int64_t)(sample_at(firefox, row)->time_ns - firefox->first_ns) : 0, 6);
}

static void sample_weight(struct firefox *firefox, uint32_t row)
{
	int64_t value = sample_at(firefox, row)->values[profile_shown_value(firefox->profile)];

	json_fixed(&firefox->json, tick_value(value, firefox->scale.factor), firefox->scale.is_time ? 6 : 0);
}

static void write_samples(struct firefox *firefox)
{
	static const struct column columns[] = { { "stack", sample_stack }, { "time", sample_time }, { "weight", sample_weight } };
	const char *type = firefox->scale.is_time ? "tracing-ms" : strcmp(firefox->scale.unit, "bytes") ? "samples" : "bytes";

	json_line(&firefox->json);
	json_key(&firefox->json, "samples");
	json_open(&firefox->json, '{');
	write_columns(firefox, columns, ARRAY_SIZE(columns), firefox->track->nr);
	json_key_text(&firefox->json, "weightType", type);
	json_close(&firefox->json, '}');
}

/* String 0 is only for missing names; other unknown fields are null. */
static void write_strings(struct firefox *firefox)
{
	json_line(&firefox->json);
	json_key(&firefox->json, "stringArray");
	json_open(&firefox->json, '[');
	for (uint32_t i = 0; i < firefox->strings.nr; i++)
		json_text(&firefox->json,
			  firefox->strings.used[i] ? profile_string_text(firefox->profile, firefox->strings.used[i]) : "[unknown]");
	json_close(&firefox->json, ']');
}

/* The name of the process's first thread, if it was seen. */
static const char *process_name(const struct firefox *firefox, const struct track *track)
{
	const struct track *first = track;

	while (first > firefox->tracks.all && first[-1].tgid == track->tgid)
		first--;
	return profile_string_text(firefox->profile, track->tgid && first->tid == first->tgid ? first->comm : track->comm);
}

static void write_head(struct firefox *firefox, const struct track *track)
{
	const char *comm = profile_string_text(firefox->profile, track->comm), *process = process_name(firefox, track);
	struct json *json = &firefox->json;
	char pid[16];

	snprintf(pid, sizeof(pid), "%" PRIu32, track->tgid);
	json_key_text(json, "processType", "default");
	json_key_text(json, "processName", *process ? process : NO_NAME);
	json_key_u64(json, "processStartupTime", 0);
	json_key(json, "processShutdownTime");
	json_null(json);
	json_key_u64(json, "registerTime", 0);
	json_key(json, "unregisterTime");
	json_null(json);
	json_key(json, "pausedRanges");
	json_open(json, '[');
	json_close(json, ']');
	json_key_text(json, "name", *comm ? comm : NO_NAME);
	json_key(json, "isMainThread");
	json_bool(json, track->tgid == track->tid);
	json_key_text(json, "pid", pid);
	json_key_u64(json, "tid", track->tid);
}

static int add_stack(struct firefox *firefox, uint32_t stack, uint32_t *node)
{
	uint32_t nr;
	const uint32_t *chains = inlines_of_stack(&firefox->inlines, firefox->profile, stack, &nr);

	return call_nodes_add_stack(&firefox->stacks, chains, nr, NULL, node);
}

static int add_sample(struct firefox *firefox, const struct profile_sample *sample, uint32_t *ret_leaf)
{
	uint32_t node = PROFILE_NONE;
	int err = add_stack(firefox, sample->user_stack, &node);

	if (!err)
		err = add_stack(firefox, sample->kernel_stack, &node);
	*ret_leaf = node;
	return err;
}

/* Builds the track's stack tree and numbers everything it refers to. */
static int use_samples(struct firefox *firefox)
{
	int err = 0;

	renumber_clear(&firefox->strings);
	renumber_clear(&firefox->chains);
	renumber_clear(&firefox->functions);
	renumber_clear(&firefox->symbols);
	renumber_clear(&firefox->libs);
	call_nodes_done(&firefox->stacks);
	for (uint32_t i = 0; i < firefox->track->nr && !err; i++)
		err = add_sample(firefox, sample_at(firefox, i), &firefox->leaf[i]);
	for (uint32_t i = 0; i < firefox->stacks.nr && !err; i++)
		use_chain(firefox, firefox->stacks.all[i].frame);
	return err;
}

int firefox_write_thread(struct firefox *firefox, const struct track *track)
{
	int err;

	firefox->track = track;
	err = use_samples(firefox);
	if (err)
		return err;
	json_line(&firefox->json);
	json_open(&firefox->json, '{');
	write_head(firefox, track);
	write_samples(firefox);
	write_tables(firefox);
	write_strings(firefox);
	json_close(&firefox->json, '}');
	return 0;
}
