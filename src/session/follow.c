// SPDX-License-Identifier: Apache-2.0
#include "session/follow.h"

#include <errno.h>
#include <string.h>

/* Without one, every start compiles all tables: slower, no worse. */
static void open_cache(struct tracker *tracker, struct account *account)
{
	struct table_cache *cache;
	struct diag diag = { 0 };
	int err = table_cache_open(NULL, TABLE_CACHE_MAX_BYTES, &diag, &cache);

	if (!err)
		tracker_use_cache(tracker, cache);
	else if (err == -EPERM) /* somebody should know; that there is no place for one is no news */
		account_note(account, "%s", diag.text);
}

int follow_new(const struct follow_options *options, struct diag *diag, struct tracker **ret_tracker)
{
	const struct sampler_fds fds = sampler_fds(options->sampler);
	const struct table_store_options store = { .chunks_fd = fds.chunks, .rules_fd = fds.rules, .processes_fd = fds.processes, .told_fd = fds.told,
						   .max_rules = SAMPLER_MAX_RULES, .max_bytes = options->unwind_bytes };
	int err = tracker_new(&store, options->account, options->parser, diag, ret_tracker);

	if (err)
		return err;
	if (!options->no_cache)
		open_cache(*ret_tracker, options->account);
	return tracker_use_runtimes(*ret_tracker, options->sampler);
}

/* Records first, so that every mapping they need is among the side-band events read after them. */
int follow_read(const struct follow_parts *parts, uint64_t max_records, sampler_record_fn take, void *arg, struct diag *diag)
{
	const struct stack_walker walker = raw_stacks_walker(parts->raws);
	int err = sampler_read(parts->sampler, max_records, take, arg);

	if (err)
		return diag_errno(diag, -err, "cannot read the samples: %s", strerror(-err));
	err = tracker_read(parts->tracker, diag);
	if (err)
		return err;
	err = stack_book_resolve(parts->book, tracker_processes(parts->tracker), &walker);
	return err ? diag_errno(diag, -err, "cannot keep the stacks: %s", strerror(-err)) : 0;
}
