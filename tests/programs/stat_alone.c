// SPDX-License-Identifier: Apache-2.0
/* sonde stat without the rest of sonde, for machines for which we cross-compile only a little: stat_alone [ARGUMENT...]. A stand-in for
 * the session takes a set and a command, and polls every millisecond. It tests the counting and the printing. */
#include <sonde/counter.h>
#include <sonde/sonde.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/command.h"
#include "cli/signals.h"
#include "cli/verbs.h"

struct sonde_session {
	struct sonde_session_options options;
	struct sonde_counters *set;
	struct command *command;
	struct diag diag;
	uint32_t tgid, nr_intervals;
	uint64_t last_ns;
};

const char *sonde_version(void)
{
	return "alone";
}

/* Only what the guest's script uses: a command, or all CPUs. */
int sonde_session_new(const struct sonde_session_options *options, struct sonde_session **ret_session)
{
	struct sonde_counter_options counters = *options->counters;
	struct sonde_session *session = calloc(1, sizeof(*session));

	*ret_session = session;
	if (!session || !options->command != counters.all_cpus)
		return -EINVAL;
	session->options = *options;
	if (options->command) {
		if (command_new(options->command, &session->diag, &session->command))
			return -EIO;
		session->tgid = command_tgid(session->command);
		counters.tids = &session->tgid;
		counters.nr_tids = 1;
		counters.flags |= SONDE_COUNTER_ON_EXEC;
	}
	return sonde_counters_new(&counters, &session->set) && !sonde_counters_has_any(session->set) ? -ENOENT : 0;
}

void sonde_session_free(struct sonde_session *session)
{
	if (!session)
		return;
	sonde_counters_free(session->set);
	command_free(session->command);
	free(session);
}

static void tell(struct sonde_session *session)
{
	uint64_t now_ns = clock_ns();
	const struct sonde_window window = { .size = sizeof(window),
					     .number = ++session->nr_intervals,
					     .duration_ns = now_ns - session->last_ns };

	session->last_ns = now_ns;
	session->options.window(session->options.arg, &window);
}

int sonde_session_run(struct sonde_session *session)
{
	const struct sonde_session_options *options = &session->options;
	uint64_t end_ns;
	int status, err = session->command ? command_release(session->command, &session->diag) : sonde_counters_start(session->set);

	session->last_ns = clock_ns();
	end_ns = options->duration_ns ? session->last_ns + options->duration_ns : UINT64_MAX;
	while (!err && clock_ns() < end_ns && !(session->command && command_ended(session->command, &status))) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		if (options->every_ns && clock_ns() >= session->last_ns + options->every_ns)
			tell(session);
	}
	if (!err)
		err = sonde_counters_stop(session->set);
	tell(session);
	return err;
}

void sonde_session_stop(struct sonde_session *session)
{
}

const char *sonde_session_error(const struct sonde_session *session)
{
	return session->diag.text;
}

const char *sonde_session_warning(struct sonde_session *session)
{
	return NULL;
}

int sonde_session_exit_code(const struct sonde_session *session)
{
	return SONDE_EXIT_FAILED;
}

bool sonde_session_command_status(const struct sonde_session *session, int *ret_status)
{
	return session->command && command_ended(session->command, ret_status);
}

bool sonde_session_command_goes_on(const struct sonde_session *session)
{
	return false;
}

struct sonde_counters *sonde_session_counters(struct sonde_session *session)
{
	return session->set;
}

int main(int argc, char **argv)
{
	signals_init();
	argv[0] = "stat";
	return verb_run(&stat_verb, argc, argv);
}
