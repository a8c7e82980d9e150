// SPDX-License-Identifier: Apache-2.0
#include "tracing/events_options.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/command.h"
#include "cli/output.h"
#include "cli/session_end.h"
#include "cli/signals.h"
#include "cli/verbs.h"

/* Finds the first `size` bytes of `word`. Returns the number of names if it is none of them. */
static uint32_t find_word(const char *(*name_at)(uint32_t i), const char *word, size_t size)
{
	uint32_t i = 0;

	while (name_at(i) && (strlen(name_at(i)) != size || strncmp(name_at(i), word, size) != 0))
		i++;
	return i;
}

static void list_words(struct buffer *text, const char *(*name_at)(uint32_t i))
{
	for (uint32_t i = 0; name_at(i); i++)
		buffer_printf(text, "%s%s", i ? ", " : "", name_at(i));
}

static int unknown_word(const char *option, const char *(*name_at)(uint32_t i), const char *word, size_t size, struct diag *diag)
{
	struct buffer words = BUFFER_INIT(1 << 10);
	int err;

	list_words(&words, name_at);
	err = diag_errno(diag, EINVAL, "%s takes %s, not '%.*s'", option, words.data ? words.data : "", size < 60 ? (int)size : 60, word);
	buffer_done(&words);
	return err;
}

static int parse_by(struct events_options *options, const char *(*by_at)(uint32_t i), struct diag *diag)
{
	const char *at = options->by_text;

	do {
		size_t size = strcspn(at, ",");
		uint32_t i = find_word(by_at, at, size);

		if (!by_at(i))
			return unknown_word("--by", by_at, at, size, diag);
		options->by |= 1u << i;
		at += size;
	} while (*at++);
	return 0;
}

int events_check(struct events_options *options, char *const *command, const char *(*by_at)(uint32_t i),
		 const char *(*format_at)(uint32_t i), struct diag *diag)
{
	int err = target_options_check(&options->targets, command, diag);
	uint32_t format = 0;

	options->command = command;
	if (!err && options->by_text)
		err = parse_by(options, by_at, diag);
	if (err || !options->format_text)
		return err;
	format = find_word(format_at, options->format_text, strlen(options->format_text));
	if (!format_at(format))
		return unknown_word("--format", format_at, options->format_text, strlen(options->format_text), diag);
	options->format = !strcmp(options->format_text, "bpftrace") ? SONDE_LINES_BPFTRACE
			  : !strcmp(options->format_text, "json")   ? SONDE_LINES_JSON
								    : SONDE_LINES_TEXT;
	return 0;
}

uint32_t events_top(const struct events_options *options)
{
	if (options->top != EVENTS_DEFAULT_TOP)
		return (uint32_t)options->top;
	return options->interval_s && options->nr_intervals != 1 && options->format != SONDE_LINES_JSON ? EVENTS_TOP : 0;
}

static int print(void *arg, const char *lines)
{
	return output_result_text(lines) ? -EPIPE : 0;
}

/* Of all intervals together. 0: unlimited, or too long to count. */
static uint64_t duration_ns(const struct events_options *options)
{
	uint64_t interval_ns = options->interval_s * NS_PER_S;

	return interval_ns && options->nr_intervals <= UINT64_MAX / interval_ns ? interval_ns * options->nr_intervals : 0;
}

struct sonde_session_options events_session_options(const struct events_options *options, const char *command_line)
{
	const struct target_options *targets = &options->targets;

	return (struct sonde_session_options){
		.size = sizeof(struct sonde_session_options),
		.command_line = command_line,
		.duration_ns = duration_ns(options),
		.every_ns = options->interval_s * NS_PER_S,
		.tgids = targets->tgids.nr ? targets->tgids.ids : NULL,
		.tids = targets->tids.nr ? targets->tids.ids : NULL,
		.nr_tgids = targets->tgids.nr,
		.nr_tids = targets->tids.nr,
		.comm = targets->comm,
		.cgroup = targets->cgroup,
		.command = options->command,
		.text = print,
	};
}

struct header {
	const struct events_options *options;
	const char *measuring;
};

/* When measuring has begun. */
static void print_header(void *arg)
{
	const struct header *of = arg;
	struct buffer header = BUFFER_INIT(1 << 17);

	buffer_printf(&header, "%s of ", of->measuring);
	target_options_text(&of->options->targets, of->options->command, &header);
	buffer_text(&header, "... Hit Ctrl-C to end.\n");
	output_talk(header.data);
	buffer_done(&header);
}

static int failed(const struct verb *verb, const struct sonde_session *session, int err)
{
	return err == -EPIPE ? SONDE_EXIT_FAILED : session_failed(verb, session, err); /* -EPIPE: already reported */
}

static int measure(const struct verb *verb, struct sonde_session *session, const char *nothing)
{
	int err;

	signals_stop(session_stop, session);
	err = sonde_session_run(session);
	signals_report();
	if (err)
		return failed(verb, session, err);
	output_talk(sonde_session_account(session));
	if (sonde_session_exit_code(session) == SONDE_EXIT_NO_SAMPLES)
		output_say("%s", nothing);
	return session_code(session);
}

int events_run(const struct verb *verb, const struct events_options *options, const struct sonde_session_options *session_options,
	       const char *measuring, const char *nothing)
{
	struct header header = { options, measuring };
	struct sonde_session_options of_library = *session_options;
	struct sonde_session *session = NULL;
	int err, code;

	of_library.started = print_header;
	of_library.arg = &header;
	err = sonde_session_new(&of_library, &session);
	code = err ? failed(verb, session, err) : measure(verb, session, nothing);
	signals_done();
	sonde_session_free(session);
	return code;
}
