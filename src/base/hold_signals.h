/* SPDX-License-Identifier: Apache-2.0 */
/* hold_signals: blocks signals for this thread until the end of the scope; they are delivered then. The kernel does not load a BPF program
 * while a signal is pending for the thread (EAGAIN from the verifier), so with a timer every few milliseconds it never would. A thread that
 * is created meanwhile blocks them for its life; other threads handle them. */
#pragma once
#include <pthread.h>
#include <signal.h>

#include "base/cleanup.h"

#define HOLD_SIGNALS() CLEANUP(hold_signals_end) const sigset_t held_ = hold_signals_begin()

static inline sigset_t hold_signals_begin(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	return before;
}

static inline void hold_signals_end(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}
