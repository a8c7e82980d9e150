// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define SAME_WISH_NS \
	(300 * NS_PER_MS) /* a second signal this soon, before the report, repeats the first */

static const int end_signals[] = { SIGINT, SIGTERM, SIGHUP };

/* Static, because a signal handler gets no argument. */
static void (*_Atomic stop_fn)(void *arg);
static void *_Atomic stop_arg;
static atomic_uint nr_signals; /* 0: measuring, 1: to be reported, 2: in a hurry */
static atomic_bool is_reporting, has_hangup, has_user;
static _Atomic uint64_t first_ns;

static void on_pipe(int signal)
{
}

static void call_stop(void)
{
	void (*stop)(void *arg) = atomic_load(&stop_fn);

	if (stop)
		stop(atomic_load(&stop_arg));
}

/* timeout(1) signals its child and then its own process group; closing a terminal sends SIGHUP after a Ctrl-C. */
static bool is_same_wish(void)
{
	return atomic_load(&nr_signals) == 1 && !atomic_load(&is_reporting) && clock_ns() - atomic_load(&first_ns) < SAME_WISH_NS;
}

static void on_end(int signal)
{
	static const char text[] = "sonde: the report is being written with the names that there are; once more ends without it\n";
	int saved = errno;

	if (is_same_wish())
		return;
	switch (atomic_fetch_add(&nr_signals, 1)) {
	case 0:
		atomic_store(&first_ns, clock_ns());
		call_stop();
		break;
	case 1:
		call_stop();
		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			break; /* nobody listens */
		break;
	default:
		_exit(128 + signal);
	}
	errno = saved;
}

static void on_hangup(int signal)
{
	atomic_store(&has_hangup, true);
}

static void on_user(int signal)
{
	atomic_store(&has_user, true);
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction old, action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	if (sigaction(signal, NULL, &old) < 0 || old.sa_handler == SIG_IGN)
		return;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
		sigaddset(&action.sa_mask, end_signals[i]); /* so that signals are handled one at a time */
	sigaction(signal, &action, NULL);
}

void signals_init(void)
{
	handle(SIGPIPE, on_pipe);
	handle(SIGXFSZ, on_pipe); /* a file past its limit fails the write, like a closed pipe */
}

void signals_stop(void (*stop)(void *arg), void *arg)
{
	atomic_store(&stop_arg, arg);
	atomic_store(&stop_fn, stop);
	atomic_store(&nr_signals, 0);
	atomic_store(&is_reporting, false);
	for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
		handle(end_signals[i], on_end);
}

void signals_report(void)
{
	unsigned int measuring = 0;

	atomic_compare_exchange_strong(&nr_signals, &measuring, 1);
	atomic_store(&is_reporting, true);
}

void signals_done(void)
{
	atomic_store(&stop_fn, NULL);
}

void signals_stop_next(void (*stop)(void *arg), void *arg)
{
	atomic_store(&stop_arg, arg);
	atomic_store(&stop_fn, stop);
	if (signals_came())
		stop(arg);
}

bool signals_came(void)
{
	return atomic_load(&nr_signals);
}

void signals_keep_hangups(void)
{
	handle(SIGHUP, on_hangup);
}

bool signals_take_hangup(void)
{
	return atomic_exchange(&has_hangup, false);
}

void signals_keep_user(void)
{
	handle(SIGUSR2, on_user);
}

bool signals_take_user(void)
{
	return atomic_exchange(&has_user, false);
}
