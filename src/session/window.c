// SPDX-License-Identifier: Apache-2.0
#include "session/window.h"

#include <errno.h>
#include <string.h>

#include "session/stack_maker.h"
#include "session/wait_book.h"
#include "session/wall.h"

void window_free(struct window *window)
{
	if (!window)
		return;
	samples_free(window->samples);
	wait_sums_free(window->sums);
	place_files_free(window->files);
	free(window);
}

/* What a profile is made with. */
struct making {
	const struct window *window;
	const struct sonde_profile_options *options;
	struct stack_maker *maker;
	struct profile *profile;
};

static int add_sample(const struct making *making, const struct sample *from)
{
	struct profile_sample sample = {
		.tgid = from->key.sides.tgid,
		.tid = from->key.tid,
		.cpu = from->key.cpu,
		.comm = profile_string(making->profile, from->key.comm),
		.time_ns = from->key.time_ns ? from->key.time_ns + making->window->unix_offset_ns : 0,
		.values = { from->count > INT64_MAX ? INT64_MAX : (int64_t)from->count },
	};
	int err = sample.comm == PROFILE_NONE ? -ENOMEM : stack_maker_sample(making->maker, &from->key.sides, from->count, &sample);

	return err ? err : profile_add(making->profile, &sample);
}

static int add_samples(const struct making *making)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < samples_nr(making->window->samples); i++)
		err = add_sample(making, samples_at(making->window->samples, i));
	return err;
}

/* One that has begun, and has nothing in this window yet. */
static bool is_empty(const struct wait_entry *entry)
{
	return !entry->sum.off_ns && !entry->sum.nr_waits;
}

static int add_waits(const struct making *making)
{
	const struct wait_book_options kept = { .show_count = making->options->count_waits, .kernel_stacks = !making->options->user_only, .wake = making->options->wake,
					       .histograms = making->options->histograms };
	CLEANUP(wait_book_freep) struct wait_book *book = wait_book_new(&kept, making->profile);
	const struct wait_sums *sums = making->window->sums;
	int err = book ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < wait_sums_nr(sums); i++) {
		const struct wait_entry *entry = wait_sums_at(sums, i);

		err = entry->key.what != SONDE_WAIT_OFF || is_empty(entry) ? 0 : wait_book_sum(book, making->maker, entry);
	}
	for (uint32_t i = 0; !err && i < wait_sums_nr_slots(sums); i++)
		err = wait_book_slot(book, wait_sums_slot_at(sums, i));
	return err;
}

static int add_wall(const struct making *making)
{
	CLEANUP(wall_freep) struct wall *wall = wall_new(!making->options->user_only, making->profile);
	const struct wait_sums *sums = making->window->sums;
	int err = wall ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < wait_sums_nr(sums); i++)
		err = is_empty(wait_sums_at(sums, i)) ? 0 : wall_sum(wall, making->maker, wait_sums_at(sums, i));
	return err ? err : wall_finish(wall, making->maker, making->window->samples);
}

static int add_all(const struct making *making)
{
	switch (making->options->question) {
	case SONDE_ON_CPU:
		return add_samples(making);
	case SONDE_OFF_CPU:
		return add_waits(making);
	case SONDE_WALL:
		return add_wall(making);
	}
	return -EINVAL;
}

/* A failure costs the file, not the report. */
static void write_events(struct window *window, const struct making *making)
{
	const struct event_end end = { .end_ns = window->end_ns, .unix_offset_ns = window->unix_offset_ns, .nr_lost = window->events_lost };
	struct diag diag = { 0 };

	window->events_err = event_book_end(window->events, making->maker, making->profile, &end, &diag);
	if (window->events_err)
		account_note(profile_account(making->profile), "the events were not written: %s", diag.text[0] ? diag.text : strerror(-window->events_err));
}

static int make(struct window *window, struct making *making, struct namer *namer)
{
	int err = namer_read_files(namer);

	if (!err)
		making->maker = stack_maker_new(window->store, namer, making->profile);
	if (err || !making->maker)
		return err ? err : -ENOMEM;
	if (window->events)
		write_events(window, making);
	err = add_all(making);
	stack_maker_free(making->maker);
	return err;
}

int window_profile(struct window *window, const struct sonde_profile_options *options, const struct naming *naming, struct profile **ret_profile, uint32_t *ret_nr_skipped)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	struct making making = { .window = window, .options = options, .profile = profile };
	struct namer *namer = profile ? namer_new(stack_table_places(window->store->stacks), window->files, naming, profile) : NULL;
	int err = namer ? 0 : -ENOMEM;

	if (!err) {
		*profile_account(profile) = window->account;
		err = make(window, &making, namer);
		*ret_nr_skipped = namer_nr_skipped(namer);
		if (*ret_nr_skipped)
			account_note(profile_account(profile), "names came too late: %u files were not read, what stands there has addresses", *ret_nr_skipped);
	}
	namer_free(namer);
	if (!err)
		*ret_profile = MOVE(profile);
	return err;
}
