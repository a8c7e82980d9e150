// SPDX-License-Identifier: Apache-2.0
#include "cli/session_end.h"

#include <string.h>

#include "base/command.h"
#include "cli/output.h"

void session_stop(void *session)
{
	sonde_session_stop(session);
}

int session_failed(const struct verb *verb, const struct sonde_session *session, int err)
{
	const char *text = session ? sonde_session_error(session) : NULL;
	int code = session ? sonde_session_exit_code(session) : SONDE_EXIT_FAILED;

	if (code == SONDE_EXIT_USAGE && text && *text)
		return output_usage(verb, text);
	output_say("%s", text && *text ? text : strerror(-err));
	return code == SONDE_EXIT_REPORT || code == SONDE_EXIT_NO_SAMPLES ? SONDE_EXIT_FAILED : code;
}

int session_code(const struct sonde_session *session)
{
	int status = 0, code = sonde_session_command_status(session, &status) ? command_exit_code(status) : 0;

	return code ? code : sonde_session_exit_code(session);
}

const char *failure_text(const struct diag *diag, int err)
{
	return *diag->text ? diag->text : strerror(-err);
}
