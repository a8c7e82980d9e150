// SPDX-License-Identifier: Apache-2.0
/* session_double: replaces the library, so that tests of the command line need neither BPF nor privileges. Its "report" is the options
 * that it received; the environment selects what fails:
 *   DOUBLE_NEW, DOUBLE_RUN, DOUBLE_WRITE=CODE   that call fails with this exit code
 *   DOUBLE_STATUS=N                             the command ended with this wait status
 *   DOUBLE_EMPTY=1                              no samples
 *   DOUBLE_WAIT=1                               runs until it is stopped (20 s at most)
 *   DOUBLE_SLOW=MS                              writing takes that long */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/buffer.h"
#include "base/number.h"
#include "output/export.h"

struct sonde_session {
	struct buffer report;
	const char *error;
	int code, stop_fds[2];
	struct {
		const char *path, *format;
	} outputs[64];
	uint32_t nr_outputs;
};

static const char *const formats[][2] = {
	{ "text", ".txt" },	      { "folded", ".folded .collapsed" }, { "json", ".json" },
	{ "pprof", ".pb.gz .pprof" }, { "html", ".html .htm" },		  { "top", ".top" },
};

static uint64_t asked(const char *name)
{
	const char *text = getenv(name);
	uint64_t value = 0;

	return text && number_u64(text, UINT32_MAX, &value) == 0 ? value : 0;
}

static int fail(struct sonde_session *session, const char *where)
{
	session->code = (int)asked(where);
	if (session->code)
		session->error = where;
	return session->code ? -EIO : 0;
}

static void ids(struct buffer *buffer, const char *name, const uint32_t *list, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		buffer_printf(buffer, "%s%" PRIu32 "%s", i ? "," : name, list[i], i + 1 == nr ? "\n" : "");
}

static void report(struct buffer *b, const struct sonde_session_options *o)
{
	const struct sonde_sampling_options *sampling = o->sampling;

	buffer_printf(b,
		      "command_line=%s\nfreq=%" PRIu64 " period=%" PRIu64 " duration=%" PRIu64 " cpu=%" PRId64 " storage=%" PRIu64
		      " unwind=%" PRIu64 " audit=%" PRIu32 " debuginfod_timeout=%" PRId64 "\n",
		      o->command_line, sampling->freq_hz, sampling->period, o->duration_ns, sampling->cpu ? (int64_t)*sampling->cpu : -1,
		      o->stack_storage, o->unwind_bytes, o->audit_every, o->debuginfod_timeout_ns);
	buffer_printf(b, "flags=%s%s%s%s%s%s%s%s%s\n", sampling->no_fallback ? " no_fallback" : "", sampling->idle ? " idle" : "",
		      o->user_only ? " user_only" : "", o->kernel_only ? " kernel_only" : "", o->delimited ? " delimited" : "",
		      o->annotate ? " annotate" : "", o->offsets ? " offsets" : "", o->threads ? " threads" : "",
		      o->no_unwind_cache ? " no_unwind_cache" : "");
	buffer_printf(b, "event=%s comm=%s cgroup=%s\n", sampling->event ? sampling->event : "", o->comm ? o->comm : "",
		      o->cgroup ? o->cgroup : "");
	ids(b, "tgids=", o->tgids, o->nr_tgids);
	ids(b, "tids=", o->tids, o->nr_tids);
	for (char *const *word = o->command; word && *word; word++)
		buffer_printf(b, "command=%s\n", *word);
}

int sonde_session_new(const struct sonde_session_options *options, struct sonde_session **ret_session)
{
	struct sonde_session *session = calloc(1, sizeof(*session));

	if (!session || pipe(session->stop_fds) < 0)
		abort();
	session->report = BUFFER_INIT(1 << 20);
	report(&session->report, options);
	*ret_session = session;
	return fail(session, "DOUBLE_NEW");
}

void sonde_session_free(struct sonde_session *session)
{
	buffer_done(&session->report);
	free(session);
}

const char *sonde_session_error(const struct sonde_session *session)
{
	return session->error;
}

int sonde_session_exit_code(const struct sonde_session *session)
{
	return session->code;
}

int sonde_session_run(struct sonde_session *session)
{
	struct pollfd fd = { .fd = session->stop_fds[0], .events = POLLIN };

	while (asked("DOUBLE_WAIT") && poll(&fd, 1, 20000) < 0 && errno == EINTR)
		continue;
	if (fail(session, "DOUBLE_RUN"))
		return -EIO;
	session->code = asked("DOUBLE_EMPTY") ? SONDE_EXIT_NO_SAMPLES : 0;
	return 0;
}

int sonde_session_set_rate(struct sonde_session *session, uint64_t freq_hz)
{
	return -EINVAL;
}

int sonde_session_set_memory(struct sonde_session *session, uint64_t unwind_bytes)
{
	return -EINVAL;
}

void sonde_session_stop(struct sonde_session *session)
{
	if (write(session->stop_fds[1], "", 1) < 0)
		abort();
}

bool sonde_session_command_status(const struct sonde_session *session, int *ret_status)
{
	*ret_status = (int)asked("DOUBLE_STATUS");
	return getenv("DOUBLE_STATUS") != NULL;
}

int sonde_session_add_output(struct sonde_session *session, const char *path, const char *format)
{
	session->outputs[session->nr_outputs].path = path;
	session->outputs[session->nr_outputs++].format = format;
	return 0;
}

static int write_output(struct sonde_session *session, uint32_t i)
{
	FILE *file = strcmp(session->outputs[i].path, "-") != 0 ? fopen(session->outputs[i].path, "we") : stdout;

	if (!file)
		return -errno;
	if (fprintf(file, "format=%s\n%s", session->outputs[i].format, session->report.data) < 0 || fflush(file) != 0) {
		session->error = strerror(errno);
		session->code = SONDE_EXIT_FAILED;
		return -EIO;
	}
	return file == stdout ? 0 : fclose(file);
}

int sonde_session_write(struct sonde_session *session)
{
	struct timespec pause = { .tv_sec = (time_t)(asked("DOUBLE_SLOW") / 1000),
				  .tv_nsec = (long)(asked("DOUBLE_SLOW") % 1000) * 1000000 };
	int err = 0;

	if (getenv("DOUBLE_SLOW") && write(STDERR_FILENO, "double: writing\n", 16) < 0)
		return -errno;
	while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
		continue;
	if (asked("DOUBLE_WRITE"))
		return fail(session, "DOUBLE_WRITE");
	for (uint32_t i = 0; !err && i < session->nr_outputs; i++)
		err = write_output(session, i);
	return err;
}

const char *sonde_session_total(struct sonde_session *session)
{
	return "total: 1 window\n";
}

const char *sonde_session_account(struct sonde_session *session)
{
	return "double: the account\n";
}

const char *sonde_session_warning(struct sonde_session *session)
{
	return NULL;
}

bool sonde_session_command_goes_on(const struct sonde_session *session)
{
	return false;
}

struct sonde_counters *sonde_session_counters(struct sonde_session *session)
{
	return NULL;
}

const char *sonde_profile_source(const struct sonde_session_options *options)
{
	return "/* the source */\n";
}

const char *sonde_format_by_path(const char *path)
{
	enum export_format format;

	return export_format_by_path(path, NULL, &format) ? NULL : export_format_name(format);
}

const char *sonde_format_name(uint32_t i, const char **ret_suffixes, const char **ret_text)
{
	if (i >= sizeof(formats) / sizeof(formats[0]))
		return NULL;
	*ret_suffixes = formats[i][1];
	*ret_text = "";
	return formats[i][0];
}

const char *sonde_version(void)
{
	return "0.1.0";
}
