// SPDX-License-Identifier: Apache-2.0
#include "agent/delivery.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <sonde/sonde.h>

#include "agent/window_part.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/hold_signals.h"
#include "base/timed_wait.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/profile_bytes.h"
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
	uint64_t until_ns;            /* then */
	struct delivery_numbers numbers;
	bool stop;                    /* read by a request in progress */
	/* the thread's own */
	uint32_t pause_ms;            /* after a failure; 0: none */
	size_t limit_bytes;           /* messages of this size are too large for the destination; SIZE_MAX: none was yet */
	uint64_t row_id;              /* the window that was sent last, and what of it is next */
	struct window_part part;
	bool is_settled;              /* all of it was */
};

/* --- a window ------------------------------------------------------------------------------------------------------------------------- */

static int read_window(const struct store_row *row, struct sonde_profile **ret_profile)
{
	CLEANUP(profile_freep) struct sonde_profile *profile = sonde_profile_new();
	int err = profile ? sonde_profile_read_bytes(profile, "a window of the store", row->body, row->body_bytes, NULL) : -ENOMEM;

	if (err)
		output_say("%s", sonde_profile_error(profile));
	else
		*ret_profile = MOVE(profile);
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

/* Twice as long each time, plus or minus a quarter, so that many agents do not come back together; or what the server asks for, and up to
 * a quarter more. */
static void pause_longer(struct delivery *delivery, uint32_t retry_after_s)
{
	uint32_t pause_ms = delivery->pause_ms ? 2 * delivery->pause_ms : FIRST_PAUSE_MS, least_ms = retry_after_s * 1000;
	uint32_t random = (uint32_t)(clock_ns() / 1000);

	if (pause_ms > MAX_PAUSE_MS)
		pause_ms = MAX_PAUSE_MS;
	pause_ms = pause_ms - pause_ms / 4 + random % (pause_ms / 2);
	delivery->pause_ms = pause_ms > least_ms ? pause_ms : least_ms + random % (least_ms / 4);
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

/* Is done with a message: it was taken, or will never be. */
static void settle(struct delivery *delivery, const struct push_answer *answer)
{
	delivery->pause_ms = 0;
	count(delivery, answer);
	if (answer->result == PUSH_REFUSED) {
		output_say("%s: a profile is refused: %s", delivery->name, answer->text);
		return;
	}
	if (answer->rejected)
		output_say("%s: of a message %" PRIu64 " profiles are rejected: %s", delivery->name, answer->rejected, answer->text);
	tell(delivery, "");
}

/* The destination takes no message of this size: said once, and none as large is sent any more. */
static void learn_limit(struct delivery *delivery, size_t size, const char *words)
{
	if (delivery->limit_bytes == SIZE_MAX)
		output_say("%s: a message of %zu bytes is too large for it, its parts are sent: %s", delivery->name, size, words);
	delivery->limit_bytes = size;
}

/* 0, whatever the answer is; -ENOMEM. */
static int send_profile(struct delivery *delivery, const struct store_row *row, struct sonde_profile *profile,
			struct push_answer *ret_answer)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(STORE_MAX_BODY_BYTES);
	uint8_t id[PUSH_ID_BYTES];
	const struct sonde_write_options options = { .size = sizeof(options),
						     .format = delivery->pusher.type->format,
						     .profile_id = id };
	int err;

	window_part_id(&delivery->part, row->profile_id, id);
	*ret_answer = (struct push_answer){ .result = PUSH_TOO_LARGE, .text = "it is too large, and no part of it can be sent" };
	err = profile_bytes_write(profile, &options, &bytes);
	if (err == -EFBIG || (!err && bytes.size >= delivery->limit_bytes))
		return 0;
	if (!err)
		err = push(&delivery->pusher,
			   &(struct push_profile){ .id = id, .kind = row->type, .bytes = bytes.data, .size = bytes.size }, ret_answer);
	if (!err && ret_answer->result == PUSH_TOO_LARGE)
		learn_limit(delivery, bytes.size, ret_answer->text);
	if (!err || err == -ENOMEM)
		return err;
	*ret_answer = (struct push_answer){ .result = PUSH_REFUSED, .text = "it cannot be written" };
	return 0;
}

static void count_split(struct delivery *delivery)
{
	pthread_mutex_lock(&delivery->lock);
	delivery->numbers.nr_split++;
	pthread_mutex_unlock(&delivery->lock);
}

/* What becomes of a profile with so many samples. True: go on with the next one. */
static bool take_answer(struct delivery *delivery, uint64_t nr_samples, struct push_answer *answer)
{
	if (answer->result == PUSH_TOO_LARGE && nr_samples > 1) {
		if (delivery->part.nr_parts == 1)
			count_split(delivery);
		window_part_halve(&delivery->part);
		return true;
	}
	if (answer->result == PUSH_TOO_LARGE)
		answer->result = PUSH_REFUSED;
	if (answer->result == PUSH_DELIVERED || answer->result == PUSH_REFUSED) {
		settle(delivery, answer);
		delivery->is_settled = !window_part_next(&delivery->part);
		return !delivery->is_settled;
	}
	count(delivery, answer);
	if (answer->result == PUSH_LATER) {
		tell(delivery, answer->text);
		pause_longer(delivery, answer->retry_after_s);
	}
	return false;
}

/* Sends the part of the window that is next. 1: go on; 0: not now, or there is no more; or a negative errno. */
static int deliver_part(struct delivery *delivery, const struct store_row *row, struct sonde_profile *window)
{
	CLEANUP(profile_freep) struct sonde_profile *part = NULL;
	struct push_answer answer;
	uint64_t nr_samples;
	int err = 0;

	if (delivery->part.nr_parts > 1) {
		part = sonde_profile_new();
		err = part ? sonde_profile_merge_part(part, window, delivery->part.number, delivery->part.nr_parts) : -ENOMEM;
	}
	if (!err)
		err = send_profile(delivery, row, part ?: window, &answer);
	nr_samples = sonde_profile_nr_samples(part ?: window);
	return err ? err : take_answer(delivery, nr_samples, &answer);
}

static int deliver(struct delivery *delivery, const struct store_row *row, struct diag *diag)
{
	static const struct push_answer unreadable = { .result = PUSH_REFUSED, .text = "it cannot be read" };
	CLEANUP(profile_freep) struct sonde_profile *window = NULL;
	int err = read_window(row, &window);

	if (err == -ENOMEM)
		return err;
	if (err) { /* a window that cannot be read now cannot be read later */
		settle(delivery, &unreadable);
		return store_mark_delivered(delivery->store, delivery->name, row->id, diag);
	}
	if (delivery->row_id != row->id) {
		delivery->row_id = row->id;
		delivery->part = (struct window_part){ 0, 1 };
	}
	delivery->is_settled = false;
	while ((err = deliver_part(delivery, row, window)) > 0)
		;
	return err || !delivery->is_settled ? err : store_mark_delivered(delivery->store, delivery->name, row->id, diag);
}

/* --- the thread ----------------------------------------------------------------------------------------------------------------------- */

/* True: there was a window, and it is settled. */
static bool deliver_one(struct delivery *delivery)
{
	static const struct push_answer damaged = { .result = PUSH_REFUSED, .text = "its row in the store is damaged" };
	CLEANUP(store_row_done) struct store_row row = { 0 };
	struct diag diag = { 0 };
	int err = store_next_undelivered(delivery->store, delivery->name, &diag, &row);

	if (err == -EUCLEAN && row.id) { /* it will not get better */
		settle(delivery, &damaged);
		err = store_mark_delivered(delivery->store, delivery->name, row.id, &diag) ?: 1;
	} else if (err > 0)
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
	while (!delivery->is_ending && clock_ns() < until_ns && (delivery->pause_ms || !delivery->has_new))
		timed_cond_wait(&delivery->has_changed, &delivery->lock, until_ns);
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

	pthread_mutex_init(&delivery->lock, NULL);
	timed_cond_init(&delivery->has_changed);
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
	delivery->limit_bytes = SIZE_MAX;
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
		   ", rejected in part: %" PRIu64 ", split: %" PRIu64 ", evicted before: %" PRIu64 ", tried again: %" PRIu64
		   ", possible repeats: %" PRIu64,
		   delivery->name, numbers->nr_sent, numbers->nr_bytes, nr_waiting(delivery), numbers->nr_refused, numbers->nr_rejected,
		   numbers->nr_split, evicted, numbers->nr_retries, numbers->nr_repeats);
}

void delivery_finish(struct delivery *delivery, uint32_t seconds)
{
	pthread_mutex_lock(&delivery->lock);
	delivery->until_ns = clock_ns() + seconds * NS_PER_S;
	delivery->is_ending = true;
	pthread_cond_signal(&delivery->has_changed);
	pthread_mutex_unlock(&delivery->lock);
}

void delivery_end(struct delivery *delivery)
{
	if (!timed_join(delivery->thread, delivery->until_ns)) {
		__atomic_store_n(&delivery->stop, true, __ATOMIC_RELAXED);
		pthread_join(delivery->thread, NULL);
	}
	say_end(delivery);
	pthread_cond_destroy(&delivery->has_changed);
	pthread_mutex_destroy(&delivery->lock);
	delivery_free(delivery);
}
