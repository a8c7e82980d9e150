// SPDX-License-Identifier: Apache-2.0
#include "process/patience.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "base/hold_signals.h"

#define THREAD_STACK_BYTES ((size_t)256 << 10)

/* The thread and who waits for it share it; who comes last frees it. */
struct errand {
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool is_done, is_given_up;
	void (*fn)(void *arg);
	void (*free_fn)(void *arg);
	void *arg;
};

static void errand_free(struct errand *errand)
{
	pthread_cond_destroy(&errand->done);
	pthread_mutex_destroy(&errand->lock);
	free(errand);
}

static void *run(void *arg)
{
	struct errand *errand = arg;
	bool is_given_up;

	errand->fn(errand->arg);
	pthread_mutex_lock(&errand->lock);
	errand->is_done = true;
	is_given_up = errand->is_given_up;
	pthread_cond_signal(&errand->done);
	pthread_mutex_unlock(&errand->lock);
	if (is_given_up) {
		errand->free_fn(errand->arg);
		errand_free(errand);
	}
	return NULL;
}

static int start_thread(struct errand *errand)
{
	HOLD_SIGNALS(); /* they are for the thread that runs the session: the new one holds them for ever */
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, run, errand);
	pthread_attr_destroy(&attr);
	return -err;
}

/* False: given up, the errand is the thread's now. */
static bool wait_for(struct errand *errand, unsigned int max_ms)
{
	struct timespec until;
	bool is_done;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += max_ms / 1000;
	until.tv_nsec += max_ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	pthread_mutex_lock(&errand->lock);
	while (!errand->is_done && !err)
		err = pthread_cond_timedwait(&errand->done, &errand->lock, &until);
	is_done = errand->is_done;
	errand->is_given_up = !is_done;
	pthread_mutex_unlock(&errand->lock);
	return is_done;
}

int patience_run(void (*fn)(void *arg), void (*free_fn)(void *arg), void *arg, unsigned int max_ms)
{
	struct errand *errand = calloc(1, sizeof(*errand));
	pthread_condattr_t attr;
	int err;

	if (!errand)
		return -ENOMEM;
	errand->fn = fn;
	errand->free_fn = free_fn;
	errand->arg = arg;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&errand->done, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&errand->lock, NULL);
	err = start_thread(errand);
	if (!err && !wait_for(errand, max_ms))
		return -ETIMEDOUT;
	errand_free(errand);
	return err;
}
