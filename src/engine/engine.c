// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/file_limit.h"

/* Of one window. Beyond that, the kernel side may not forget what it sent, and further stacks are missed. */
#define STACKS_BYTES ((size_t)256 << 20)

/* --- creating it ---------------------------------------------------------------------------------------------------------------------- */

/* Loads the kernel side, and starts the processes that work beside it. */
static int load(struct engine *engine, const struct engine_options *options, struct diag *diag)
{
	int err = parser_new(diag, &engine->parser); /* it starts while the kernel side is loaded */

	if (err)
		return err;
	file_limit_raise(); /* after the fork: a command keeps its own limit */
	return sampler_new(options->sampling, diag, &engine->sampler) ?: parser_ready(engine->parser, diag) ?:
		proxy_new(diag, &engine->proxy);
}

/* Without a cache, every start builds all tables: slower, otherwise the same. */
static void open_cache(struct engine *engine)
{
	struct table_cache *cache;
	struct diag diag = { 0 };
	int err = table_cache_open(NULL, TABLE_CACHE_MAX_BYTES, &diag, &cache);

	if (!err)
		tracker_use_cache(engine->tracker, cache);
	else if (err == -EPERM) /* a refused directory is worth a note; a missing one is not */
		account_note(engine->account, "%s", diag.text);
}

/* Creates the tracker, with the table cache and the interpreters. */
static int make_tracker(struct engine *engine, const struct engine_options *options, struct diag *diag)
{
	const struct sampler_fds fds = sampler_fds(engine->sampler);
	const struct table_store_options store = { .chunks_fd = fds.chunks,
						   .rules_fd = fds.rules,
						   .processes_fd = fds.processes,
						   .table_generation_fd = fds.table_generation,
						   .max_rules = SAMPLER_MAX_RULES,
						   .max_bytes = options->unwind_bytes };
	int err = tracker_new(&store, engine->account, engine->parser, engine->proxy, diag, &engine->tracker);

	if (!err)
		err = parser_use_background(engine->parser);
	if (err)
		return err;
	if (!options->no_cache)
		open_cache(engine);
	return tracker_use_runtimes(engine->tracker, engine->sampler, options->runtimes_off);
}

static int make_identities(struct engine *engine, const struct environment_names *names)
{
	engine->identities = identities_new(engine->proxy, names);
	if (!engine->identities)
		return -ENOMEM;
	tracker_use_identities(engine->tracker, engine->identities);
	stack_recorder_use_identities(engine->recorder, engine->identities);
	return 0;
}

int engine_init(struct engine *engine, const struct engine_options *options, struct diag *diag)
{
	int err;

	engine->account = options->account;
	engine->renews_payloads = options->renews_payloads;
	engine->recorder = stack_recorder_new(options->timestamps, options->account);
	if (!engine->recorder)
		return -ENOMEM;
	err = load(engine, options, diag);
	if (!err)
		err = make_tracker(engine, options, diag);
	if (!err && options->label_names)
		err = make_identities(engine, options->label_names);
	if (!err && options->audit_every)
		err = auditor_new(tracker_processes(engine->tracker), engine->account, diag, &engine->auditor);
	if (err)
		return err;
	engine->initial_stacks = options->initial_stacks ? initial_stacks_new(engine->proxy) : NULL;
	engine->deferred = deferred_stacks_new(engine->tracker, engine->sampler, engine->proxy, engine->auditor, engine->initial_stacks);
	return engine->deferred && (engine->initial_stacks || !options->initial_stacks) ? 0 : -ENOMEM;
}

void engine_done(struct engine *engine)
{
	stack_recorder_free(engine->recorder, engine_processes(engine));
	deferred_stacks_free(engine->deferred);
	initial_stacks_free(engine->initial_stacks);
	auditor_free(engine->auditor);
	tracker_free(engine->tracker);
	identities_free(engine->identities);
	parser_free(engine->parser);
	proxy_free(engine->proxy);
	sampler_free(engine->sampler);
	cpus_watch_done(&engine->cpus);
	*engine = (struct engine){ 0 };
}

const struct process_table *engine_processes(const struct engine *engine)
{
	return engine->tracker ? tracker_processes(engine->tracker) : NULL;
}

void engine_set_nice(struct engine *engine, int nice)
{
	parser_set_nice(engine->parser, nice);
	auditor_set_nice(engine->auditor, nice);
	proxy_set_nice(engine->proxy, nice);
}

/* --- while it runs -------------------------------------------------------------------------------------------------------------------- */

/* Reads records first: every mapping that they need is then among the side-band events read after them. */
int engine_read(struct engine *engine, uint64_t max_records, sampler_record_fn take, void *arg, struct diag *diag)
{
	const struct stack_walker walker = deferred_stacks_walker(engine->deferred);
	int err = sampler_read(engine->sampler, max_records, take, arg);

	if (err)
		return diag_errno(diag, -err, "cannot read the samples: %s", strerror(-err));
	err = tracker_read(engine->tracker, diag);
	if (err)
		return err;
	err = stack_recorder_resolve(engine->recorder, tracker_processes(engine->tracker), &walker);
	return err ? diag_errno(diag, -err, "cannot keep the stacks: %s", strerror(-err)) : 0;
}

void engine_follow_cpus(struct engine *engine)
{
	const struct cpus *online;
	uint64_t now = clock_ns();
	struct diag diag = { 0 };
	int err, nr_new;

	if (now - engine->looked_ns < ENGINE_STEP_NS || engine->has_failed_cpus)
		return;
	engine->looked_ns = now;
	if (cpus_watch_look(&engine->cpus, &online))
		return;
	nr_new = tracker_follow_cpus(engine->tracker, online, &diag);
	err = nr_new < 0 ? nr_new : sampler_follow_cpus(engine->sampler, online, &diag);
	if (nr_new > 0)
		account_note(engine->account,
			     "%d CPU%s came online while sonde ran: followed since then, the first tenth of a second may be missing",
			     nr_new, nr_new > 1 ? "s" : "");
	if (err)
		account_note(engine->account, "CPUs that come online are not followed any more: %s",
			     diag.text[0] ? diag.text : strerror(-err));
	engine->has_failed_cpus = err < 0;
}

int engine_step(struct engine *engine, uint64_t now_ns, struct diag *diag)
{
	int err = 0;

	if (engine->renews_payloads && stack_recorder_bytes(engine->recorder) < STACKS_BYTES)
		err = sampler_renew_payloads(engine->sampler);
	if (err)
		return diag_errno(diag, -err, "cannot make room for more stacks: %s", strerror(-err));
	return tracker_prune(engine->tracker, now_ns);
}

/* --- windows -------------------------------------------------------------------------------------------------------------------------- */

int engine_close_window(struct engine *engine, struct closed_window *ret_window)
{
	int err = stack_recorder_close(engine->recorder, tracker_processes(engine->tracker), ret_window);

	return err ? err : sampler_next_window(engine->sampler);
}

void engine_forget_window(struct engine *engine, const struct stack_store *store)
{
	stack_recorder_done(engine->recorder, store, tracker_processes(engine->tracker));
}
