// SPDX-License-Identifier: Apache-2.0
/* sonde stat: opens the counters and reports why they cannot be opened. */
#include <errno.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "stat/stat.h"

/* Collects the arguments of all -e in `names`, except the names of whole kinds. Returns those kinds. */
static uint32_t take_kinds(const struct stat_arguments *arguments, struct buffer *names)
{
	static const struct {
		const char *word;
		uint32_t kind;
	} kinds[] = { { "hardware", SONDE_EVENTS_HARDWARE }, { "software", SONDE_EVENTS_SOFTWARE }, { "cache", SONDE_EVENTS_CACHE } };
	uint32_t found = 0;

	for (uint32_t i = 0; i < arguments->events.nr; i++) {
		uint32_t kind = 0;

		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			kind |= strcmp(arguments->events.texts[i], kinds[k].word) ? 0 : kinds[k].kind;
		if (!kind)
			buffer_printf(names, "%s%s", names->size ? "," : "", arguments->events.texts[i]);
		found |= kind;
	}
	return found;
}

static struct sonde_session_options to_options(const struct stat_arguments *arguments, const struct sonde_counter_options *counters)
{
	const struct target_options *targets = &arguments->targets;

	return (struct sonde_session_options){
		.size = sizeof(struct sonde_session_options),
		.mode = SONDE_COUNT,
		.counters = counters,
		.duration_ns = arguments->duration_s * NS_PER_S,
		.every_ns = arguments->interval_ms * NS_PER_MS,
		.tids = targets->tids.ids,
		.nr_tids = targets->tids.nr,
		.tgids = targets->tgids.ids,
		.nr_tgids = targets->tgids.nr,
		.cgroup = targets->cgroup,
		.command = arguments->command,
	};
}

static int open_session(const struct stat_arguments *arguments, void (*window)(void *arg, const struct sonde_window *window), void *arg,
			struct sonde_session **ret_session)
{
	struct buffer names = BUFFER_INIT(1 << 20);
	struct sonde_counter_options counters = {
		.size = sizeof(counters),
		.kinds = take_kinds(arguments, &names),
		.cpus = arguments->cpus.ids,
		.nr_cpus = arguments->cpus.nr,
		.all_cpus = arguments->all_cpus,
		.flags = (arguments->no_inherit ? SONDE_COUNTER_NO_INHERIT : 0) | (arguments->user_only ? SONDE_COUNTER_NO_KERNEL : 0) |
			 (arguments->kernel_only ? SONDE_COUNTER_NO_USER : 0) | (arguments->group ? SONDE_COUNTER_GROUP : 0),
	};
	struct sonde_session_options options = to_options(arguments, &counters);
	int err;

	if (!names.size && !counters.kinds)
		buffer_printf(&names, "%s,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses",
			      stat_is_whole(arguments) ? "cpu-clock" : "task-clock");
	counters.names = names.size ? names.data : NULL;
	options.window = window;
	options.arg = arg;
	err = names.err ? names.err : sonde_session_new(&options, ret_session);
	buffer_done(&names);
	return err;
}

static bool has_error(const struct sonde_counters *set, int err)
{
	struct sonde_counter_info info = { .size = sizeof(info) };

	for (uint32_t i = 0; i < sonde_counters_nr(set); i++) {
		if (!sonde_counters_info(set, i, &info) && info.err == err)
			return true;
	}
	return false;
}

/* A missing right mostly concerns all events, so it is reported once. */
static void say_reasons(const struct sonde_counters *set)
{
	struct sonde_counter_info info = { .size = sizeof(info) };
	uint32_t nr_denied = 0;

	for (uint32_t i = 0; i < sonde_counters_nr(set); i++) {
		if (sonde_counters_info(set, i, &info) || (info.err == -EACCES && nr_denied++))
			continue;
		output_say("%s", info.error);
	}
	if (nr_denied > 1)
		output_say("so it is for %u more of the events", nr_denied - 1);
}

/* For a set that failed as a whole, or when there is no set. */
static int failed_whole(const struct sonde_session *session, int err)
{
	const char *text = session ? sonde_session_error(session) : NULL;
	int code = session ? sonde_session_exit_code(session) : SONDE_EXIT_FAILED;

	if (!text || !*text)
		text = strerror(-err);
	if (err == -EINVAL || code == SONDE_EXIT_USAGE)
		return output_usage(&stat_verb, text);
	output_say("%s", text);
	return code;
}

static int failed(struct sonde_session *session, int err)
{
	const struct sonde_counters *set = sonde_session_counters(session);

	if (!set || !sonde_counters_nr(set))
		return failed_whole(session, err);
	say_reasons(set);
	if (err == -EACCES || err == -EPERM || has_error(set, -EACCES)) /* the user can do something about a missing right */
		return SONDE_EXIT_NOT_PERMITTED;
	if (err == -EOPNOTSUPP)
		return SONDE_EXIT_KERNEL_CANNOT;
	return err != -ESRCH && err != -EMFILE ? SONDE_EXIT_KERNEL_CANNOT : SONDE_EXIT_FAILED;
}

/* Reported once, not before each run. */
static void say_user_only(struct stat_report *report)
{
	struct sonde_counter_info info = { .size = sizeof(info) };

	if (report->user_only)
		return;
	for (uint32_t i = 0; i < sonde_counters_nr(report->set); i++)
		report->user_only |= !sonde_counters_info(report->set, i, &info) && info.is_user_only;
	if (report->user_only)
		output_say("what happens in the kernel may not be counted (kernel.perf_event_paranoid): counting user space only");
}

int stat_open(const struct stat_arguments *arguments, struct stat_report *report,
	      void (*window)(void *arg, const struct sonde_window *window), void *arg, struct sonde_session **ret_session)
{
	int err = open_session(arguments, window, arg, ret_session);

	if (err)
		return failed(*ret_session, err);
	report->set = sonde_session_counters(*ret_session);
	say_user_only(report);
	return SONDE_EXIT_REPORT;
}
