// SPDX-License-Identifier: Apache-2.0
/* report: the outputs of a session. Stored and checked before it runs, written after it. */
#include <errno.h>
#include <string.h>

#include "session/session.h"
#include "session/window_counts.h"

int sonde_session_add_output(struct sonde_session *session, const char *path, const char *format)
{
	const struct output *output;
	int err;

	if (!session)
		return -EINVAL;
	err = outputs_add(&session->outputs, path, format, &session->diag);
	if (err)
		return session_fail(session, err == -EINVAL ? SONDE_EXIT_USAGE : SONDE_EXIT_FAILED, err);
	if (session->measurement && !session->measurement->has_stacks && !session->measurement->has_histograms)
		return session_fail(session, SONDE_EXIT_USAGE,
				    diag_errno(&session->diag, EINVAL, "counts are not a profile: read them with sonde_session_counters"));
	output = &session->outputs.list[session->outputs.nr - 1];
	if (!session->measurement || !session->measurement->has_histograms || export_format_has_histograms(output->format))
		return 0;
	if (!session->measurement->has_stacks)
		return session_fail(session, SONDE_EXIT_USAGE,
				    diag_errno(&session->diag, EINVAL,
					       "%s holds stacks, and here are histograms alone; text, json, jsonl, html and top hold them",
					       export_format_name(output->format)));
	account_note(session_account(session),
		     "there are no histograms in %.200s: %s holds stacks alone; text, json, jsonl, html and top hold both", path,
		     export_format_name(output->format));
	return 0;
}

static int pass_on(const struct sonde_session *session,
		   int (*take)(void *arg, const struct sonde_window *window, const void *bytes, size_t size),
		   const struct profile *profile, const struct output_window *window, const struct buffer *bytes)
{
	const struct account *account = profile_account_of(profile);
	struct window_counts counts;
	struct sonde_window info = { .size = sizeof(info),
				     .number = window->number,
				     .start_unix_ns = window->start_unix_ns,
				     .duration_ns = account->duration_ns,
				     .nr_samples = account_nr_recorded(account),
				     .counts = counts.list };

	window_counts_fill(account, &counts);
	info.nr_counts = counts.nr;
	return take(session->options.arg, &info, bytes->data, bytes->size);
}

static int receive(void *arg, const struct profile *profile, const struct output_window *window, const struct buffer *bytes)
{
	const struct sonde_session *session = arg;

	return pass_on(session, session->options.profile, profile, window, bytes);
}

static int receive_timed(void *arg, const struct profile *profile, const struct output_window *window, const struct buffer *bytes)
{
	const struct sonde_session *session = arg;

	return pass_on(session, session->options.timed_profile, profile, window, bytes);
}

int session_set_receiver(struct sonde_session *session)
{
	struct output_receiver *receiver = &session->outputs.receiver;

	if (!session->outputs.has_windows)
		return diag_errno(&session->diag, EINVAL, "there are no windows to pass on: set every_ns");
	if (!session->options.profile_format)
		return diag_errno(&session->diag, EINVAL, "no format for the profiles: set profile_format");
	*receiver = (struct output_receiver){ .take = receive, .arg = session };
	if (session->options.timed_profile)
		receiver->take_timed = receive_timed;
	return export_format_by_name(session->options.profile_format, &session->diag, &receiver->format);
}

bool session_wants_lines(const struct sonde_session *session)
{
	return outputs_want_lines(&session->outputs) ? !session->options.no_lines : session->options.lines;
}

int sonde_session_write(struct sonde_session *session)
{
	int err;

	if (!session)
		return -EINVAL;
	err = session->naming || !session->profile ? 0 : outputs_write(&session->outputs, session->profile, NULL, &session->diag);
	if (err)
		session->exit_code = SONDE_EXIT_FAILED;
	return err;
}

const char *sonde_format_by_path(const char *path)
{
	enum export_format format;

	return export_format_by_path(path, NULL, &format) ? NULL : export_format_name(format);
}

const char *sonde_format_name(uint32_t i, const char **ret_suffixes, const char **ret_text)
{
#define X(id, name, suffixes, text) { name, suffixes, text },
	static const char *const formats[][3] = { EXPORT_FORMAT_LIST(X) };
#undef X

	if (i >= EXPORT_FORMAT_COUNT)
		return NULL;
	*ret_suffixes = formats[i][1];
	*ret_text = formats[i][2];
	return formats[i][0];
}
