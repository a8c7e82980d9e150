// SPDX-License-Identifier: Apache-2.0
/* The outputs of a session: remembered and checked before it runs, written when it has run. */
#include <errno.h>
#include <string.h>

#include "session/output.h"
#include "session/report_file.h"
#include "session/session.h"

#define REPORT_BYTES_MAX ((size_t)4 << 30)

int sonde_session_add_output(struct sonde_session *session, const char *path, const char *format)
{
	struct output *output;
	int err;

	if (!session)
		return -EINVAL;
	if (session->nr_outputs == MAX_OUTPUTS)
		return session_fail(session, SONDE_EXIT_USAGE, diag_errno(&session->diag, EINVAL, "at most %d outputs", MAX_OUTPUTS));
	output = &session->outputs[session->nr_outputs];
	err = format ? export_format_by_name(format, &session->diag, &output->format) :
		       export_format_by_path(path, &session->diag, &output->format);
	if (err)
		return session_fail(session, SONDE_EXIT_USAGE, err);
	err = output_check(path, &session->diag);
	if (err)
		return session_fail(session, SONDE_EXIT_FAILED, err);
	output->path = strdup(path);
	if (!output->path)
		return session_fail_setup(session, -ENOMEM);
	session->nr_outputs++;
	if (session->options.histograms && !export_format_has_histograms(output->format))
		account_note(profile_account(session->profile), "there are no histograms in %.200s: %s holds stacks alone; text, json, jsonl, html and top hold both", path, export_format_name(output->format));
	return 0;
}

bool session_wants_lines(const struct sonde_session *session)
{
	for (uint32_t i = 0; i < session->nr_outputs; i++) {
		if (export_format_has_lines(session->outputs[i].format))
			return !session->options.no_lines;
	}
	return session->options.lines;
}

int sonde_session_write(struct sonde_session *session)
{
	int first_err = 0;

	if (!session)
		return -EINVAL;
	for (uint32_t i = 0; i < session->nr_outputs; i++) {
		struct output *output = &session->outputs[i];
		int err = report_file_write(session->profile, output->format, &session->export, output->path, REPORT_BYTES_MAX, &session->diag);

		output->is_written = !err;
		if (err && !first_err) {
			first_err = err;
			session->exit_code = SONDE_EXIT_FAILED;
		}
	}
	return first_err;
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
