// SPDX-License-Identifier: Apache-2.0
/* options: fills in the defaults of a session's options, and refuses invalid ones before anything starts. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "abi/unwind.h"
#include "base/clock.h"
#include "base/sized.h"
#include "session/modes.h"
#include "session/runtime_list.h"
#include "session/session.h"
#include "session/target_filter.h"
#include "track/account_common.h"

#define MAX_STACK_STORAGE (1u << 26)
#define MIN_WINDOW_NS NS_PER_S

static int check_mode(struct sonde_session *session)
{
	if (!measurement_type_of(session->options.mode))
		return diag_errno(&session->diag, EINVAL, "there is no such mode");
	if (session->options.user_only && session->options.kernel_only)
		return diag_errno(&session->diag, EINVAL, "user stacks only and kernel stacks only exclude each other");
	if (session->options.lines && session->options.no_lines)
		return diag_errno(&session->diag, EINVAL, "with lines and without lines exclude each other");
	return 0;
}

static int check_targets(struct sonde_session *session)
{
	const struct sonde_session_options *o = &session->options;
	const struct target_filter filter = { .tgids = o->tgids,
					      .tids = o->tids,
					      .nr_tgids = o->nr_tgids,
					      .nr_tids = o->nr_tids,
					      .comm = o->comm,
					      .cgroup = o->cgroup,
					      .has_command = o->command != NULL };
	const struct measurement_type *type = measurement_type_of(o->mode);
	int err = type->finds_targets ? target_filter_find(&filter, &session->diag, &session->targets)
				      : target_filter_resolve(&filter, session_account(session), &session->diag, &session->sampling.config,
							      &session->targets);

	if (err && err != -EINVAL)
		session_fail(session, err == -EOPNOTSUPP ? SONDE_EXIT_KERNEL_CANNOT : SONDE_EXIT_FAILED, err);
	return err;
}

static int check_storage(struct sonde_session *session)
{
	session->renews_payloads = !session->options.stack_storage;
	if (!session->options.stack_storage)
		session->options.stack_storage = SONDE_DEFAULT_STACK_STORAGE;
	if (session->options.stack_storage > MAX_STACK_STORAGE)
		return diag_errno(&session->diag, EINVAL, "the stack storage holds up to %u stacks", MAX_STACK_STORAGE);
	if (!session->options.debuginfod_timeout_ns)
		session->options.debuginfod_timeout_ns = SONDE_DEFAULT_DEBUGINFOD_TIMEOUT_NS;
	if (!session->options.unwind_bytes)
		session->options.unwind_bytes = SONDE_DEFAULT_UNWIND_BYTES;
	if (session->options.unwind_bytes < SONDE_CHUNK_BYTES)
		return diag_errno(&session->diag, EINVAL, "unwind tables and mappings need %u bytes at least", SONDE_CHUNK_BYTES);
	return 0;
}

static int check_windows(struct sonde_session *session)
{
	const struct sonde_session_options *o = &session->options;
	bool has_intervals = session->measurement->type->interval;

	if (o->every_ns && o->every_ns < MIN_WINDOW_NS && !has_intervals)
		return diag_errno(&session->diag, EINVAL, "a window is a second long at least");
	if (o->every_ns > UINT64_MAX / 4)
		return diag_errno(&session->diag, EINVAL, "a window of that length never ends");
	if (o->keep && (!o->every_ns || has_intervals))
		return diag_errno(&session->diag, EINVAL, "--keep needs --every: there are no windows to keep");
	session->outputs.has_windows = o->every_ns && !has_intervals;
	session->outputs.keep = o->keep;
	return o->profile ? session_set_receiver(session) : 0;
}

static int check_labels(struct sonde_session *session)
{
	const struct sonde_session_options *o = &session->options;

	if (o->process_labels && !session->measurement->type->has_labels)
		return diag_errno(&session->diag, EINVAL, "samples and waits have labels of their processes: this mode has none");
	if (o->environment && *o->environment && !o->process_labels)
		return diag_errno(&session->diag, EINVAL, "variables of the environment are labels of processes, which are not requested");
	for (const char *const *name = o->environment; name && *name; name++) {
		int err = environment_names_add(&session->label_names, *name);

		if (err == -E2BIG)
			return diag_errno(&session->diag, EINVAL, "%d variables of the environment at most become labels",
					  ENVIRONMENT_MAX_NAMES);
		if (err)
			return diag_errno(&session->diag, EINVAL,
					  "'%.*s' is no name of a variable: up to %d letters, digits, _, . and -", ENVIRONMENT_NAME_BYTES,
					  *name, ENVIRONMENT_NAME_BYTES - 1);
	}
	return 0;
}

static int check_perf_map(struct sonde_session *session)
{
	const struct sonde_session_options *o = &session->options;

	if (!o->perf_map || (o->nr_tgids && session->measurement->needs_engine))
		return 0;
	return diag_errno(&session->diag, EINVAL, "perf maps are of processes whose stacks are taken: name them by their ids");
}

static void fill_sampling(struct sonde_session *session)
{
	const struct sonde_session_options *o = &session->options;
	struct sonde_config *config = &session->sampling.config;

	config->user_stacks = !o->kernel_only;
	config->kernel_stacks = !o->user_only;
	config->audit_every = o->audit_every;
	session->sampling.no_ticks = true;
	session->sampling.cpu = -1;
	session->sampling.stack_storage = o->stack_storage;
	session->outputs.export = (struct export_options){
		.delimited = o->delimited,
		.annotate = o->annotate,
		.offsets = o->offsets,
		.threads = o->threads,
		.max_stacks = o->max_stacks,
		.source_lines = o->source_lines,
		.of_tids = o->nr_tids > 0,
		.user_only = o->user_only,
		.kernel_only = o->kernel_only,
	};
}

static int make_measurement(struct sonde_session *session)
{
	const struct measurement_parts parts = { .options = &session->options, .engine = &session->engine, .account = &session->account };

	return measurement_new(measurement_type_of(session->options.mode), &parts, &session->sampling, &session->diag,
			       &session->measurement);
}

static int keep_texts(struct sonde_session *session)
{
	account_begin(&session->account, session->options.command_line);
	session->vmlinux = session->options.vmlinux ? strdup(session->options.vmlinux) : NULL;
	return session->options.vmlinux && !session->vmlinux ? -ENOMEM : 0;
}

int session_take_options(struct sonde_session *session, const struct sonde_session_options *options)
{
	int err = sized_options(&session->options, sizeof(session->options), options, &session->diag);

	if (!err)
		err = keep_texts(session);
	if (!err)
		err = check_mode(session);
	if (!err)
		err = check_storage(session);
	if (!err)
		err = runtime_list_parse(session->options.runtimes, &session->diag, &session->runtimes_off);
	if (!err)
		err = check_targets(session);
	if (err)
		return err;
	fill_sampling(session);
	return make_measurement(session) ?: check_windows(session) ?: check_labels(session) ?: check_perf_map(session);
}
