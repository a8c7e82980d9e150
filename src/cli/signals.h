/* SPDX-License-Identifier: Apache-2.0 */
/* signals: Ctrl-C, SIGTERM and SIGHUP. The first ends the measuring, the second writes the report with the names resolved so far, the
 * third ends the program. A signal that was ignored at our start stays ignored. Handlers, not SIG_IGN: a started command gets the defaults
 * back. */
#pragma once

/* Turns a closed pipe into a write error. Call this first, for every verb. */
void signals_init(void);
/* From now on the first and the second signal call `stop`. It must be async-signal-safe; `arg` must live until signals_done(). */
void signals_stop(void (*stop)(void *arg), void *arg);
/* Measuring is over: the next signal counts as the second. */
void signals_report(void);
void signals_done(void);
