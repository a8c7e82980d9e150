/* SPDX-License-Identifier: Apache-2.0 */
/* signals: Ctrl-C, SIGTERM and SIGHUP. The first ends the measuring, the second writes the report with the names resolved so far, the
 * third ends the program. A signal that was ignored at our start stays ignored. Handlers, not SIG_IGN: a started command gets the defaults
 * back. */
#pragma once
#include <stdbool.h>

/* Turns a closed pipe into a write error. Call this first, for every verb. */
void signals_init(void);
/* From now on the first and the second signal call `stop`. It must be async-signal-safe; `arg` must live until signals_done(). */
void signals_stop(void (*stop)(void *arg), void *arg);
/* Measuring is over: the next signal counts as the second. */
void signals_report(void);
void signals_done(void);

/* For a program that measures several times. Between two of them there is signals_done(). */
void signals_stop_next(void (*stop)(void *arg), void *arg); /* as signals_stop; for a signal that came meanwhile it calls `stop` at once */
bool signals_came(void);                                    /* since signals_stop: the program is to end */
/* From now on SIGHUP ends nothing; signals_take_hangup says once that it came. Call it after signals_stop. */
void signals_keep_hangups(void);
bool signals_take_hangup(void);
/* The same for SIGUSR2, which would end the program. */
void signals_keep_user(void);
bool signals_take_user(void);
