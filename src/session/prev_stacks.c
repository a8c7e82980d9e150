// SPDX-License-Identifier: Apache-2.0
#include "session/prev_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/clock.h"
#include "export/frame_text.h"
#include "session/engine.h"
#include "session/namer.h"
#include "session/stack_maker.h"

#define MAX_FILES 64 /* new ones that are looked at in one reading: the others wait for the next */
#define WAITS_BYTES_MAX ((size_t)64 << 20)

#define CACHE_BYTES ((size_t)8 << 20)

/* The names of what one reading has brought. */
struct named_stacks {
	const struct stack_store *store;
	struct place_files *files;
	struct profile *profile;   /* only for its names and stacks: there are no samples */
	struct namer *namer;
	struct stack_maker *maker;
};

struct prev_stacks {
	struct account account;
	struct engine engine;
	struct naming naming;
	struct named_stacks named; /* of the reading that is under way */
	struct buffer waits;       /* struct sonde_slow_record each: of the reading that is under way */
};

static int set_up(struct prev_stacks *stacks, struct diag *diag)
{
	const struct sampler_options sampling = { .config = { .user_stacks = 1, .kernel_stacks = 1 }, .stack_storage = SONDE_DEFAULT_STACK_STORAGE, .cpu = -1, .no_ticks = true };
	int err = engine_init(&stacks->engine, &(struct engine_options){ .sampling = &sampling, .account = &stacks->account, .unwind_bytes = SONDE_DEFAULT_UNWIND_BYTES, .renews_bodies = true },
			      diag);

	stacks->naming = (struct naming){ .parser = stacks->engine.parser, .proxy = stacks->engine.proxy, .cache = name_cache_new(CACHE_BYTES), .kernel = kernel_names_new() };
	return err ? err : stacks->naming.cache && stacks->naming.kernel ? 0 : -ENOMEM;
}

int prev_stacks_new(struct diag *diag, struct prev_stacks **ret_stacks)
{
	struct prev_stacks *stacks = calloc(1, sizeof(*stacks));
	int err;

	if (!stacks)
		return -ENOMEM;
	stacks->waits = BUFFER_INIT(WAITS_BYTES_MAX);
	err = set_up(stacks, diag);
	if (err)
		prev_stacks_free(stacks);
	else
		*ret_stacks = stacks;
	return err;
}

/* What could not be read is told with all the rest. */
static void take_notes(struct account *to, const struct account *from)
{
	for (uint32_t i = 0; i < from->nr_notes; i++)
		account_note(to, "%s", from->notes[i]);
}

static void forget_names(struct prev_stacks *stacks)
{
	struct named_stacks *named = &stacks->named;

	if (named->profile)
		take_notes(&stacks->account, profile_account_of(named->profile));
	stack_maker_free(named->maker);
	namer_free(named->namer);
	profile_free(named->profile);
	place_files_free(named->files);
	if (named->store)
		engine_forget_window(&stacks->engine, named->store);
	*named = (struct named_stacks){ 0 };
}

void prev_stacks_free(struct prev_stacks *stacks)
{
	if (!stacks)
		return;
	forget_names(stacks);
	engine_done(&stacks->engine);
	name_cache_free(stacks->naming.cache);
	kernel_names_free(stacks->naming.kernel);
	buffer_done(&stacks->waits);
	free(stacks);
}

struct sampler *prev_stacks_sampler(const struct prev_stacks *stacks)
{
	return stacks->engine.sampler;
}

int prev_stacks_start(struct prev_stacks *stacks, struct diag *diag)
{
	return tracker_scan(stacks->engine.tracker, diag);
}

void prev_stacks_fds(const struct prev_stacks *stacks, int fds[PREV_STACKS_FDS])
{
	fds[0] = sampler_wake_fd(stacks->engine.sampler);
	fds[1] = tracker_fd(stacks->engine.tracker);
}

static int take_record(void *arg, const void *record)
{
	struct prev_stacks *stacks = arg;

	if (*(const uint32_t *)record != SONDE_RECORD_SLOW)
		return stack_book_record(stacks->engine.book, record);
	buffer_append(&stacks->waits, record, sizeof(struct sonde_slow_record));
	return stacks->waits.err;
}

static struct stack_sides sides_of(const struct sonde_slow_record *record)
{
	return (struct stack_sides){ .ids = record->ids, .tgid = record->wait.prev.tgid, .user_generation = record->generation, .at_event = 1 };
}

/* What has come is a window of its own. */
static int close_window(struct prev_stacks *stacks, struct closed_window *ret_window)
{
	const struct process_table *processes = tracker_processes(stacks->engine.tracker);
	const struct sonde_slow_record *waits = (const struct sonde_slow_record *)stacks->waits.data;
	int err = stack_book_cut(stacks->engine.book, UINT64_MAX);

	for (size_t i = 0; !err && i < stacks->waits.size / sizeof(*waits); i++) {
		const struct stack_sides sides = sides_of(&waits[i]);

		err = stack_book_keep(stacks->engine.book, &sides, 0, processes);
	}
	if (!err)
		err = engine_close_window(&stacks->engine, ret_window);
	return err;
}

static int name_window(struct prev_stacks *stacks)
{
	const struct place_files_parts parts = { .processes = tracker_processes(stacks->engine.tracker), .proxy = stacks->engine.proxy, .runtimes = tracker_runtimes(stacks->engine.tracker) };
	struct named_stacks *named = &stacks->named;
	struct closed_window window;
	int err = close_window(stacks, &window);

	if (err)
		return err;
	samples_free(window.samples); /* there are none */
	named->store = window.store;
	named->files = place_files_new(&parts, stack_table_places(window.store->stacks));
	named->profile = profile_new();
	if (!named->files || !named->profile || kernel_names_refresh(stacks->naming.kernel))
		return -ENOMEM;
	named->namer = namer_new(stack_table_places(window.store->stacks), named->files, &stacks->naming, named->profile);
	err = named->namer ? namer_read_files(named->namer) : -ENOMEM;
	if (!err)
		named->maker = stack_maker_new(window.store, named->namer, named->profile);
	return err ? err : named->maker ? 0 : -ENOMEM;
}

static int collect(struct prev_stacks *stacks, uint64_t max_records, struct diag *diag)
{
	uint64_t now_ns = clock_ns();
	uint32_t nr = 0;
	int err;

	stacks->waits.size = 0;
	do
		err = engine_read(&stacks->engine, max_records, take_record, stacks, diag);
	while (!err && tracker_has_more(stacks->engine.tracker) && ++nr < MAX_FILES);
	if (!err && stacks->waits.size) /* before what it was mapped from may be pruned */
		err = name_window(stacks);
	return err ? err : engine_step(&stacks->engine, now_ns, diag);
}

int prev_stacks_read(struct prev_stacks *stacks, uint64_t max_records, prev_stacks_fn fn, void *arg, struct diag *diag)
{
	int err = collect(stacks, max_records, diag);

	for (size_t off = 0; !err && off < stacks->waits.size; off += sizeof(struct sonde_slow_record))
		err = fn(arg, (const void *)(stacks->waits.data + off));
	forget_names(stacks);
	return err;
}

static void print_stack(const struct profile *profile, uint32_t stack, struct buffer *lines)
{
	static const struct export_options options = { 0 };
	const uint32_t *locations;
	uint32_t nr = 0;

	if (stack == PROFILE_NONE)
		return;
	locations = profile_stack_at(profile, stack, &nr);
	for (uint32_t i = 0; i < nr; i++) {
		buffer_text(lines, "    ");
		frame_text(lines, profile, locations[i], &options, ';');
		buffer_text(lines, "\n");
	}
}

int prev_stacks_print(struct prev_stacks *stacks, const struct sonde_slow_record *record, struct buffer *lines)
{
	const struct stack_sides sides = sides_of(record);
	struct profile_sample sample = { 0 };
	int err = stack_maker_sample(stacks->named.maker, &sides, 1, &sample);

	if (err)
		return err;
	print_stack(stacks->named.profile, sample.kernel_stack, lines);
	print_stack(stacks->named.profile, sample.user_stack, lines);
	return lines->err;
}

void prev_stacks_follow_cpus(struct prev_stacks *stacks)
{
	engine_follow_cpus(&stacks->engine);
}

const struct account *prev_stacks_account(const struct prev_stacks *stacks)
{
	return &stacks->account;
}
