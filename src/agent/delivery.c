// SPDX-License-Identifier: Apache-2.0
#include "agent/delivery.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <sonde/sonde.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/hold_signals.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/session_end.h"
#include "store/store.h"

#define FIRST_PAUSE_MS 1000u
#define MAX_PAUSE_MS   60000u

struct delivery {
	struct store *store;          /* the thread's own handle */
	struct post_client *client;
	struct pusher pusher;
	const char *name;
	const char *headers[OPTION_MAX_TEXTS + 1];
	pthread_t thread;
	pthread_mutex_t lock;         /* for the next five; the numbers are written by the thread alone */
	pthread_cond_t has_changed;
	bool has_new;                 /* a window that the thread has not looked for yet */
	bool is_ending;
	struct timespec until;        /* then; CLOCK_REALTIME */
	struct delivery_numbers numbers;
	bool stop;                    /* read by a request in progress */
	uint32_t pause_ms;            /* after a failure; 0: none; the thread's own */
};

/* --- a window ------------------------------------------------------------------------------------------------------------------------- */

static int append(void *arg, const void *bytes, size_t size)
{
	struct buffer *buffer = arg;

	buffer_append(buffer, bytes, size);
	return buffer->err;
}

/* Makes of a window of the store what the destination takes. */
static int convert(const struct store_row *row, const char *format, struct buffer *buffer)
{
	const struct sonde_write_options options = { .size = sizeof(options), .format = format, .profile_id = row->profile_id };
	struct sonde_profile *profile = sonde_profile_new();
	int err = profile ? sonde_profile_read_bytes(profile, "a window of the store", row->body, row->body_bytes, NULL) : -ENOMEM;

	if (!err)
		err = sonde_profile_write_bytes(profile, &options, append, buffer);
	if (err)
		output_say("%s", sonde_profile_error(profile));
	sonde_profile_free(profile);
	return err;
}

/* Says the trouble with the destination once, and when it is over. */
static void tell(struct delivery *delivery, const char *trouble)
{
	if (!strcmp(delivery->numbers.trouble, trouble))
		return;
	if (*trouble)
		output_say("%s: %s", delivery->name, trouble);
	else
		output_say("%s: takes profiles again", delivery->name);
	pthread_mutex_lock(&delivery->lock);
	snprintf(delivery->numbers.trouble, sizeof(delivery->numbers.trouble), "%s", trouble);
	pthread_mutex_unlock(&delivery->lock);
}

/* Twice as long each time, plus or minus a quarter, so that many agents do not come back together. */
static void pause_longer(struct delivery *delivery, uint32_t retry_after_s)
{
	uint32_t pause_ms = delivery->pause_ms ? 2 * delivery->pause_ms : FIRST_PAUSE_MS;

	if (pause_ms > MAX_PAUSE_MS)
		pause_ms = MAX_PAUSE_MS;
	if (pause_ms < retry_after_s * 1000)
		pause_ms = retry_after_s * 1000;
	delivery->pause_ms = pause_ms - pause_ms / 4 + (uint32_t)(clock_ns() / 1000 % (pause_ms / 2));
}

static void count(struct delivery *delivery, const struct push_answer *answer)
{
	struct delivery_numbers *numbers = &delivery->numbers;

	pthread_mutex_lock(&delivery->lock);
	numbers->nr_refused += answer->result == PUSH_REFUSED;
	numbers->nr_retries += answer->result == PUSH_LATER;
	numbers->nr_repeats += answer->may_be_repeated;
	if (answer->result == PUSH_DELIVERED) {
		numbers->nr_sent++;
		numbers->nr_bytes += answer->nr_bytes;
		numbers->nr_rejected += answer->rejected;
		numbers->last_unix_ns = clock_of_ns(CLOCK_REALTIME);
	}
	pthread_mutex_unlock(&delivery->lock);
}

/* Is done with the window: it was taken, or will never be. */
static int settle(struct delivery *delivery, const struct store_row *row, const struct push_answer *answer, struct diag *diag)
{
	delivery->pause_ms = 0;
	count(delivery, answer);
	if (answer->result == PUSH_REFUSED) {
		output_say("%s: a profile is refused: %s", delivery->name, answer->text);
	} else {
		if (answer->rejected)
			output_say("%s: of a message %" PRIu64 " profiles are rejected: %s", delivery->name, answer->rejected,
				   answer->text);
		tell(delivery, "");
	}
	return store_mark_delivered(delivery->store, delivery->name, row->id, diag);
}

static int deliver(struct delivery *delivery, const struct store_row *row, struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(STORE_MAX_BODY_BYTES);
	struct push_answer answer = { .result = PUSH_REFUSED };
	int err = convert(row, delivery->pusher.type->format, &bytes);

	if (err == -ENOMEM)
		return err;
	if (err) { /* a window that cannot be read now cannot be read later */
		snprintf(answer.text, sizeof(answer.text), "it cannot be read");
	} else {
		const struct push_profile message = { .id = row->profile_id, .kind = row->type, .bytes = bytes.data, .size = bytes.size };

		err = push(&delivery->pusher, &message, &answer);
		if (err)
			return err;
	}
	if (answer.result == PUSH_DELIVERED || answer.result == PUSH_REFUSED)
		return settle(delivery, row, &answer, diag);
	count(delivery, &answer);
	if (answer.result == PUSH_LATER) {
		tell(delivery, answer.text);
		pause_longer(delivery, answer.retry_after_s);
	}
	return 0;
}

/* --- the thread ----------------------------------------------------------------------------------------------------------------------- */

/* True: there was a window, and it is settled. */
static bool deliver_one(struct delivery *delivery)
{
	static const struct push_answer damaged = { .result = PUSH_REFUSED, .text = "its row in the store is damaged" };
	CLEANUP(store_row_done) struct store_row row = { 0 };
	struct diag diag = { 0 };
	int err = store_next_undelivered(delivery->store, delivery->name, &diag, &row);

	if (err == -EUCLEAN && row.id) /* it will not get better */
		err = settle(delivery, &row, &damaged, &diag) ?: 1;
	else if (err > 0)
		err = deliver(delivery, &row, &diag) ?: 1;
	if (err < 0) {
		tell(delivery, failure_text(&diag, err));
		pause_longer(delivery, 0);
	}
	return err > 0 && !delivery->pause_ms && !__atomic_load_n(&delivery->stop, __ATOMIC_RELAXED);
}

/* Waits for a new window, the end of a pause, or the end. False: it is over. */
static bool wait_for_work(struct delivery *delivery)
{
	uint64_t until_ns = clock_ns() + (uint64_t)(delivery->pause_ms ? delivery->pause_ms : MAX_PAUSE_MS) * NS_PER_MS;
	bool goes_on;

	pthread_mutex_lock(&delivery->lock);
	while (!delivery->is_ending && clock_ns() < until_ns && (delivery->pause_ms || !delivery->has_new)) {
		struct timespec time = { .tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S) };

		pthread_cond_timedwait(&delivery->has_changed, &delivery->lock, &time);
	}
	delivery->has_new = false;
	goes_on = !delivery->is_ending;
	pthread_mutex_unlock(&delivery->lock);
	return goes_on;
}

static void *run(void *arg)
{
	struct delivery *delivery = arg;

	do
		while (deliver_one(delivery))
			;
	while (wait_for_work(delivery));
	delivery->pause_ms = 0; /* once more, whatever the last answer was */
	while (deliver_one(delivery))
		;
	return NULL;
}

static int start_thread(struct delivery *delivery)
{
	HOLD_SIGNALS();
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&delivery->lock, NULL);
	pthread_cond_init(&delivery->has_changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return -pthread_create(&delivery->thread, NULL, run, delivery);
}

static void delivery_free(struct delivery *delivery)
{
	store_close(delivery->store);
	post_client_free(delivery->client);
	free(delivery);
}

int delivery_start(const struct delivery_options *options, struct diag *diag, struct delivery **ret_delivery)
{
	struct delivery *delivery = calloc(1, sizeof(*delivery));
	int err;

	if (!delivery)
		return -ENOMEM;
	delivery->name = options->name;
	for (uint32_t i = 0; i < options->nr_headers; i++)
		delivery->headers[i] = options->headers[i];
	/* it is a destination from now on: no window that it has not received is one that all have */
	err = store_open(options->store, STORE_DELIVER, diag, NULL, &delivery->store) ?:
	      store_mark_delivered(delivery->store, options->name, 0, diag) ?:
	      post_client_new(options->post, diag, &delivery->client);
	delivery->pusher = (struct pusher){ .type = options->type,
					    .settings = options->settings,
					    .url = options->url,
					    .headers = delivery->headers,
					    .client = delivery->client,
					    .stop = &delivery->stop };
	if (!err)
		err = start_thread(delivery);
	if (err)
		delivery_free(delivery);
	else
		*ret_delivery = delivery;
	return err;
}

const char *delivery_name(const struct delivery *delivery)
{
	return delivery->name;
}

void delivery_numbers(struct delivery *delivery, struct delivery_numbers *ret_numbers)
{
	pthread_mutex_lock(&delivery->lock);
	*ret_numbers = delivery->numbers;
	pthread_mutex_unlock(&delivery->lock);
}

void delivery_wake(struct delivery *delivery)
{
	pthread_mutex_lock(&delivery->lock);
	delivery->has_new = true;
	pthread_cond_signal(&delivery->has_changed);
	pthread_mutex_unlock(&delivery->lock);
}

/* Counts what the destination has not received. */
static uint64_t nr_waiting(struct delivery *delivery)
{
	uint64_t nr = 0;

	return store_waiting(delivery->store, delivery->name, NULL, &nr) ? 0 : nr;
}

static void say_end(struct delivery *delivery)
{
	const struct delivery_numbers *numbers = &delivery->numbers;
	uint64_t evicted = 0;

	if (store_evicted(delivery->store, delivery->name, NULL, &evicted))
		evicted = 0;
	output_say("delivered to %s: %" PRIu64 " profiles, %" PRIu64 " bytes; waiting: %" PRIu64 ", refused: %" PRIu64
		   ", rejected in part: %" PRIu64 ", evicted before: %" PRIu64 ", tried again: %" PRIu64 ", possible repeats: %" PRIu64,
		   delivery->name, numbers->nr_sent, numbers->nr_bytes, nr_waiting(delivery), numbers->nr_refused, numbers->nr_rejected,
		   evicted, numbers->nr_retries, numbers->nr_repeats);
}

void delivery_finish(struct delivery *delivery, uint32_t seconds)
{
	pthread_mutex_lock(&delivery->lock);
	clock_gettime(CLOCK_REALTIME, &delivery->until);
	delivery->until.tv_sec += seconds;
	delivery->is_ending = true;
	pthread_cond_signal(&delivery->has_changed);
	pthread_mutex_unlock(&delivery->lock);
}

void delivery_end(struct delivery *delivery)
{
	if (pthread_timedjoin_np(delivery->thread, NULL, &delivery->until)) {
		__atomic_store_n(&delivery->stop, true, __ATOMIC_RELAXED);
		pthread_join(delivery->thread, NULL);
	}
	say_end(delivery);
	pthread_cond_destroy(&delivery->has_changed);
	pthread_mutex_destroy(&delivery->lock);
	delivery_free(delivery);
}
