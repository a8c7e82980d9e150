/* SPDX-License-Identifier: Apache-2.0 */
/* crash_watch: takes the stack of each thread whose process a signal ends (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL without a handler) at
 * the moment at which the signal is delivered, into the store. By a session of its own, on a thread of its own. */
#pragma once
#include <pthread.h>

#include <sonde/sonde.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "store/store.h"

#define CRASH_WORDS_BYTES 96

struct crash_watch_options { /* borrowed until crash_watch_end */
	const char *command_line, *runtimes; /* as in struct sonde_session_options */
	struct store *store;
	pthread_mutex_t *store_lock;
	void (*crashed)(void *arg, const char *words);           /* "process 185 (web)"; from any thread */
	void (*warned)(void *arg, struct sonde_session *session); /* the session may have warnings; from its own thread */
	void *arg;
};

struct crash_watch;
/* Returns when signals are watched. 0; -EOPNOTSUPP and others with a line: they cannot be. */
MUST_CHECK int crash_watch_start(const struct crash_watch_options *options, struct diag *diag, struct crash_watch **ret_watch);
void crash_watch_end(struct crash_watch *watch); /* takes NULL */
