// SPDX-License-Identifier: Apache-2.0
#include "session/follow.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpus.h"

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
	int err = tracker_new(&store, options->account, options->parser, options->proxy, diag, ret_tracker);

	if (!err)
		err = parser_use_background(options->parser);
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

void follow_cpus(struct follow_cpus *follow, struct sampler *sampler, struct tracker *tracker, struct account *account)
{
	CLEANUP(cpus_done) struct cpus online = { 0 };
	uint64_t now = clock_ns();
	struct diag diag = { 0 };
	int err, nr_new;

	if (now - follow->looked_ns < FOLLOW_STEP_NS || follow->has_failed || cpus_read("online", NULL, &online))
		return;
	follow->looked_ns = now;
	nr_new = tracker_follow_cpus(tracker, &online, &diag);
	err = nr_new < 0 ? nr_new : sampler_follow_cpus(sampler, &online, &diag);
	if (nr_new > 0)
		account_note(account, "%d CPU%s came online while sonde ran: followed since then, the first tenth of a second may be missing", nr_new, nr_new > 1 ? "s" : "");
	if (err)
		account_note(account, "CPUs that come online are not followed any more: %s", diag.text[0] ? diag.text : strerror(-err));
	follow->has_failed = err < 0;
}
