// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static const int end_signals[] = { SIGINT, SIGTERM, SIGHUP };

/* A signal handler reaches nothing but statics. */
static void (*_Atomic stop_fn)(void *arg);
static void *_Atomic stop_arg;
static atomic_uint nr_signals; /* 0: measuring, 1: to be reported, 2: told so */

static void on_pipe(int signal)
{
}

static void on_end(int signal)
{
	static const char text[] = "sonde: the report is being written; once more ends without it\n";
	void (*stop)(void *arg) = atomic_load(&stop_fn);
	int saved = errno;

	switch (atomic_fetch_add(&nr_signals, 1)) {
	case 0:
		if (stop)
			stop(atomic_load(&stop_arg));
		break;
	case 1:
		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			break; /* nobody listens */
		break;
	default:
		_exit(128 + signal);
	}
	errno = saved;
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction old, action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	if (sigaction(signal, NULL, &old) < 0 || old.sa_handler == SIG_IGN)
		return;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
		sigaddset(&action.sa_mask, end_signals[i]); /* they are counted one after the other */
	sigaction(signal, &action, NULL);
}

void signals_init(void)
{
	handle(SIGPIPE, on_pipe);
	handle(SIGXFSZ, on_pipe); /* a file past its limit, like a closed pipe, is an error of the write */
}

void signals_stop(void (*stop)(void *arg), void *arg)
{
	atomic_store(&stop_arg, arg);
	atomic_store(&stop_fn, stop);
	atomic_store(&nr_signals, 0);
	for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
		handle(end_signals[i], on_end);
}

void signals_report(void)
{
	unsigned int measuring = 0;

	atomic_compare_exchange_strong(&nr_signals, &measuring, 1);
}

void signals_done(void)
{
	atomic_store(&stop_fn, NULL);
}
