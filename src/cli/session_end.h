/* SPDX-License-Identifier: Apache-2.0 */
/* session_end: how a verb's session is stopped, and what its end means for the user. */
#pragma once
#include <sonde/sonde.h>

#include "base/diag.h"
#include "cli/option.h"

void session_stop(void *session); /* for signals_stop */
/* Says why the session failed; returns the exit code, which is not that of a success. `session` may be NULL. */
int session_failed(const struct verb *verb, const struct sonde_session *session, int err);
/* A command's own failure is passed on; else the session's result. */
int session_code(const struct sonde_session *session);
/* The text of a failure: the message, or what errno means. Borrowed from `diag` or for ever. */
const char *failure_text(const struct diag *diag, int err);
