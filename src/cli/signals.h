/* SPDX-License-Identifier: Apache-2.0 */
/* signals: Ctrl-C, SIGTERM and SIGHUP end the measuring; the next one has the report written with what there is, the one after it ends
 * the program. What was ignored when we started stays ignored. Handlers, not SIG_IGN: a started command gets the defaults back. */
#pragma once

/* A closed pipe becomes a write error. For every verb, first thing. */
void signals_init(void);
/* From now on a signal calls `stop`, and so does the second one: it is async-signal-safe, and `arg` outlives signals_done(). */
void signals_stop(void (*stop)(void *arg), void *arg);
/* Measuring is over: the next signal is the second. */
void signals_report(void);
void signals_done(void);
