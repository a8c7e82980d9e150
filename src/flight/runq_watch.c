// SPDX-License-Identifier: Apache-2.0
#include "flight/runq_watch.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

#include "flight/session_thread.h"

struct runq_watch {
	struct session_thread thread;
	struct sonde_runq_options runq;
	struct sonde_session_options of_session;
	uint64_t nr_lines;    /* the session's own */
	pthread_mutex_t lock; /* for both below */
	uint64_t nr_long, nr;
};

/* A line for each wait begins with its time, a heading does not. */
static int take_lines(void *arg, const char *lines)
{
	struct runq_watch *watch = arg;

	for (const char *at = lines; *at; at = *at ? at + 1 : at) {
		watch->nr_lines += isdigit((unsigned char)*at) != 0;
		at += strcspn(at, "\n");
	}
	return 0;
}

static void note_start(void *arg)
{
	session_thread_started(&((struct runq_watch *)arg)->thread);
}

/* Some times a second, when the lines up to now have been taken. */
static void take_number(void *arg, uint64_t elapsed_ns, uint64_t nr)
{
	struct runq_watch *watch = arg;

	pthread_mutex_lock(&watch->lock);
	watch->nr = nr;
	watch->nr_long = watch->nr_lines;
	pthread_mutex_unlock(&watch->lock);
}

void runq_watch_read(struct runq_watch *watch, uint64_t *ret_nr_long, uint64_t *ret_nr)
{
	pthread_mutex_lock(&watch->lock);
	*ret_nr_long = watch->nr_long;
	*ret_nr = watch->nr;
	pthread_mutex_unlock(&watch->lock);
}

static void watch_free(struct runq_watch *watch)
{
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}

int runq_watch_start(uint64_t limit_ns, struct diag *diag, struct runq_watch **ret_watch)
{
	struct runq_watch *watch = calloc(1, sizeof(*watch));
	int err;

	if (!watch)
		return -ENOMEM;
	pthread_mutex_init(&watch->lock, NULL);
	watch->runq = (struct sonde_runq_options){ .size = sizeof(watch->runq), .slower = true, .slower_ns = limit_ns };
	watch->of_session = (struct sonde_session_options){ .size = sizeof(watch->of_session),
							    .mode = SONDE_RUN_QUEUE,
							    .runq = &watch->runq,
							    .started = note_start,
							    .progress = take_number,
							    .text = take_lines,
							    .arg = watch };
	err = session_thread_start(&watch->thread, &watch->of_session, "runq.p99", diag);
	if (err)
		watch_free(watch);
	else
		*ret_watch = watch;
	return err;
}

void runq_watch_end(struct runq_watch *watch)
{
	if (!watch)
		return;
	session_thread_end(&watch->thread);
	watch_free(watch);
}
