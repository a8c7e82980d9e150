// SPDX-License-Identifier: Apache-2.0
#include "session/prev_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/clock.h"
#include "base/file_limit.h"
#include "export/frame_text.h"
#include "session/follow.h"

#define MAX_FILES 64 /* new ones that are looked at in one reading: the others wait for the next */
#define WAITS_BYTES_MAX ((size_t)64 << 20)

struct prev_stacks {
	struct profile *profile;   /* only for its names and stacks: there are no samples */
	struct parser *parser;
	struct proxy *proxy;
	struct sampler *sampler;
	struct tracker *tracker;
	struct follow_cpus cpus;
	struct raw_stacks *raws;
	struct stack_book *book;
	struct naming naming;
	struct stack_maker *maker; /* of the book; NULL: not yet */
	struct buffer waits;       /* struct sonde_slow_record each: of the reading that is under way */
};

static int load(struct prev_stacks *stacks, struct diag *diag)
{
	const struct sampler_options sampling = { .config = { .user_stacks = 1, .kernel_stacks = 1 }, .stack_storage = SONDE_DEFAULT_STACK_STORAGE, .cpu = -1, .no_ticks = true };
	int err = parser_new(diag, &stacks->parser); /* it gets ready while the kernel side is loaded */

	if (err)
		return err;
	file_limit_raise();
	return sampler_new(&sampling, diag, &stacks->sampler) ?: parser_ready(stacks->parser, diag) ?: proxy_new(diag, &stacks->proxy);
}

static int set_up(struct prev_stacks *stacks, struct diag *diag)
{
	int err;

	stacks->profile = profile_new();
	stacks->book = stacks->profile ? stack_book_new(false, stacks->profile) : NULL;
	if (!stacks->book)
		return -ENOMEM;
	err = load(stacks, diag);
	if (!err)
		err = follow_new(&(struct follow_options){ .sampler = stacks->sampler, .parser = stacks->parser, .proxy = stacks->proxy, .account = profile_account(stacks->profile),
							   .unwind_bytes = SONDE_DEFAULT_UNWIND_BYTES }, diag, &stacks->tracker);
	if (err)
		return err;
	stacks->raws = raw_stacks_new(stacks->tracker, stacks->sampler, NULL, NULL);
	stacks->naming = (struct naming){ .parser = stacks->parser, .proxy = stacks->proxy, .runtimes = tracker_runtimes(stacks->tracker) };
	return stacks->raws ? 0 : -ENOMEM;
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

void prev_stacks_free(struct prev_stacks *stacks)
{
	if (!stacks)
		return;
	raw_stacks_free(stacks->raws);
	stack_book_free(stacks->book);
	tracker_free(stacks->tracker);
	parser_free(stacks->parser);
	proxy_free(stacks->proxy);
	sampler_free(stacks->sampler);
	profile_free(stacks->profile);
	buffer_done(&stacks->waits);
	free(stacks);
}

struct sampler *prev_stacks_sampler(const struct prev_stacks *stacks)
{
	return stacks->sampler;
}

int prev_stacks_start(struct prev_stacks *stacks, struct diag *diag)
{
	return tracker_scan(stacks->tracker, diag);
}

void prev_stacks_fds(const struct prev_stacks *stacks, int fds[PREV_STACKS_FDS])
{
	fds[0] = sampler_wake_fd(stacks->sampler);
	fds[1] = tracker_fd(stacks->tracker);
}

static int take_record(void *arg, const void *record)
{
	struct prev_stacks *stacks = arg;

	if (*(const uint32_t *)record != SONDE_RECORD_SLOW)
		return stack_book_record(stacks->book, record);
	buffer_append(&stacks->waits, record, sizeof(struct sonde_slow_record));
	return stacks->waits.err;
}

static int collect(struct prev_stacks *stacks, uint64_t max_records, struct diag *diag)
{
	const struct follow_parts parts = { stacks->sampler, stacks->tracker, stacks->raws, stacks->book };
	uint64_t now_ns = clock_ns();
	uint32_t nr = 0;
	int err;

	stacks->waits.size = 0;
	do {
		err = follow_read(&parts, max_records, take_record, stacks, diag);
		if (!err && stack_book_has_room(stacks->book))
			err = sampler_renew_bodies(stacks->sampler);
	} while (!err && tracker_has_more(stacks->tracker) && ++nr < MAX_FILES);
	if (!err && stacks->waits.size) /* before what it was mapped from may be pruned */
		err = stack_book_read_names(stacks->book, tracker_processes(stacks->tracker), &stacks->naming, &stacks->maker);
	return err ? err : tracker_prune(stacks->tracker, now_ns);
}

int prev_stacks_read(struct prev_stacks *stacks, uint64_t max_records, prev_stacks_fn fn, void *arg, struct diag *diag)
{
	int err = collect(stacks, max_records, diag);

	for (size_t off = 0; !err && off < stacks->waits.size; off += sizeof(struct sonde_slow_record))
		err = fn(arg, (const void *)(stacks->waits.data + off));
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
	const struct stack_sides sides = {
		.user_stack = record->user_stack,
		.kernel_stack = record->kernel_stack,
		.runtime_stack = record->runtime_stack,
		.tgid = record->wait.prev.tgid,
		.generation = record->generation,
		.user_generation = record->generation,
		.user_side = record->user_side,
		.kernel_side = record->kernel_side,
		.runtime_side = record->runtime_side,
		.at_event = 1,
	};
	struct profile_sample sample = { 0 };
	int err = stack_maker_sample(stacks->maker, &sides, 1, &sample);

	if (err)
		return err;
	print_stack(stacks->profile, sample.kernel_stack, lines);
	print_stack(stacks->profile, sample.user_stack, lines);
	return lines->err;
}

void prev_stacks_follow_cpus(struct prev_stacks *stacks)
{
	follow_cpus(&stacks->cpus, stacks->sampler, stacks->tracker, profile_account(stacks->profile));
}

const struct account *prev_stacks_account(const struct prev_stacks *stacks)
{
	return profile_account_of(stacks->profile);
}
