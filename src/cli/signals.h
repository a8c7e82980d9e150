/* SPDX-License-Identifier: Apache-2.0 */
/* signals: Ctrl-C, SIGTERM and SIGHUP end the sampling; the next one only says that the report is being written, the one after it ends
 * the program. What was ignored when we started stays ignored. Handlers, not SIG_IGN: a started command gets the defaults back. */
#pragma once

struct sonde_session;

/* A closed pipe becomes a write error. For every verb, first thing. */
void signals_init(void);
/* From now on a signal stops this session, which must outlive signals_done(). */
void signals_stop(struct sonde_session *session);
/* Sampling is over: the next signal is the second. */
void signals_report(void);
void signals_done(void);
