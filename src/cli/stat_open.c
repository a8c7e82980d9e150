// SPDX-License-Identifier: Apache-2.0
/* sonde stat: opens the counters, and says why not. */
#include <errno.h>
#include <string.h>

#include <sonde/sonde.h>

#include "cli/output.h"
#include "cli/stat.h"
#include "cli/verbs.h"

/* The arguments of all -e, without the names of whole kinds. */
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

static int open_set(const struct stat_arguments *arguments, uint32_t command_tgid, struct sonde_counters **ret_set)
{
	bool is_whole = stat_is_whole(arguments), counts_child = stat_is_of_command(arguments);
	struct buffer names = BUFFER_INIT(1 << 20);
	struct sonde_counter_options options = {
		.size = sizeof(options),
		.kinds = take_kinds(arguments, &names),
		.tids = counts_child ? &command_tgid : arguments->whose.tids.ids,
		.nr_tids = counts_child ? 1 : arguments->whose.tids.nr,
		.tgids = arguments->whose.tgids.ids,
		.nr_tgids = arguments->whose.tgids.nr,
		.cgroup = arguments->whose.cgroup,
		.cpus = arguments->cpus.ids,
		.nr_cpus = arguments->cpus.nr,
		.all_cpus = arguments->all_cpus,
		.flags = (counts_child ? SONDE_COUNTER_ON_EXEC : 0) | (arguments->no_inherit ? SONDE_COUNTER_NO_INHERIT : 0) |
			 (arguments->user_only ? SONDE_COUNTER_NO_KERNEL : 0) | (arguments->kernel_only ? SONDE_COUNTER_NO_USER : 0) |
			 (arguments->group ? SONDE_COUNTER_GROUP : 0),
	};
	int err;

	if (!names.size && !options.kinds)
		buffer_printf(&names, "%s,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses", is_whole ? "cpu-clock" : "task-clock");
	options.names = names.size ? names.data : NULL;
	err = names.err ? names.err : sonde_counters_new(&options, ret_set);
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

/* Who has no right to one has none to the others, mostly: that is said once. */
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

static int failed(const struct sonde_counters *set, int err)
{
	const char *text = set ? sonde_counters_error(set) : NULL;

	if (err == -EINVAL && (!set || !sonde_counters_nr(set)))
		return output_usage(&stat_verb, text ? text : strerror(-err));
	say_reasons(set);
	if (!set || !sonde_counters_nr(set))
		output_say("%s", text && *text ? text : strerror(-err));
	if (err == -EACCES || err == -EPERM || has_error(set, -EACCES)) /* a right is what there can be done about it */
		return SONDE_EXIT_NOT_PERMITTED;
	if (err == -EOPNOTSUPP)
		return SONDE_EXIT_KERNEL_CANNOT;
	return set && sonde_counters_nr(set) && err != -ESRCH && err != -EMFILE ? SONDE_EXIT_KERNEL_CANNOT : SONDE_EXIT_FAILED;
}

/* Once, not before each run. */
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

int stat_open(const struct stat_arguments *arguments, uint32_t command_tgid, struct stat_report *report)
{
	int err = open_set(arguments, command_tgid, &report->set);

	if (!sonde_counters_has_any(report->set))
		return failed(report->set, err);
	say_user_only(report);
	return SONDE_EXIT_REPORT;
}
