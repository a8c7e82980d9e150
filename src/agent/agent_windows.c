// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_windows.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/told.h"
#include "cli/output.h"
#include "cli/session_end.h"

void agent_windows_init(struct agent_windows *windows)
{
	pthread_mutex_init(&windows->lock, NULL);
	windows->numbers.last_ns = clock_ns();
	windows->told_unsent = 1;
}

void agent_windows_done(struct agent_windows *windows)
{
	pthread_mutex_destroy(&windows->lock);
}

static int store_window(struct agent_windows *windows, const struct sonde_window *window, const void *bytes, size_t size, struct diag *diag,
			struct store_evicted *ret_evicted)
{
	uint64_t end_ns = window->start_unix_ns + window->duration_ns;
	struct store_row row = {
		.start_ns = window->start_unix_ns,
		.end_ns = end_ns,
		.type = (char *)(uintptr_t)windows->type,
		.body = (void *)(uintptr_t)bytes,
		.body_bytes = size,
	};
	int err = (windows->in_memory ? store_forget_delivered(windows->store, diag) : 0) ?: store_draw_id(&row, diag);

	if (err)
		return err;
	/* The bounds first: on a full disk they make room. */
	err = store_evict(windows->store, end_ns > windows->max_age_ns ? end_ns - windows->max_age_ns : 0, windows->max_bytes, diag,
			  ret_evicted);
	return err ? err : store_add(windows->store, &row, diag);
}

/* The counts are the same ones each time, in the same order. */
static void add_counts(struct window_numbers *numbers, const struct sonde_window *window)
{
	for (uint32_t i = 0; i < window->nr_counts && i < AGENT_MAX_COUNTS; i++) {
		uint64_t sum = (window->counts[i].is_level ? 0 : numbers->counts[i].nr) + window->counts[i].nr;

		numbers->counts[i] = window->counts[i];
		numbers->counts[i].nr = sum;
	}
	numbers->nr_counts = window->nr_counts < AGENT_MAX_COUNTS ? window->nr_counts : AGENT_MAX_COUNTS;
}

static void tell_unsent(struct agent_windows *windows)
{
	if (is_told_at(windows->numbers.nr_unsent, &windows->told_unsent))
		output_say("dropped so far, because the store has no room and a destination does not take them: %" PRIu64 " profiles",
			   windows->numbers.nr_unsent);
}

static void count(struct agent_windows *windows, const struct sonde_window *window, const struct store_evicted *evicted,
		  const char *trouble)
{
	struct window_numbers *numbers = &windows->numbers;

	pthread_mutex_lock(&windows->lock);
	numbers->nr_stored += !trouble;
	numbers->nr_lost += trouble != NULL;
	windows->lost_bits |= trouble ? UINT64_C(1) << window->number % 64 : 0;
	numbers->nr_evicted += evicted->nr;
	numbers->nr_unsent += evicted->nr_unsent;
	numbers->last_ns = clock_ns();
	numbers->last_number = window->number;
	numbers->last_start_unix_ns = window->start_unix_ns;
	numbers->last_end_unix_ns = window->start_unix_ns + window->duration_ns;
	numbers->last_nr_samples = window->nr_samples;
	snprintf(numbers->trouble, sizeof(numbers->trouble), "%s", trouble ? trouble : "");
	add_counts(numbers, window);
	pthread_mutex_unlock(&windows->lock);
}

int agent_windows_take(struct agent_windows *windows, const struct sonde_window *window, const void *bytes, size_t size)
{
	struct diag diag = { 0 };
	struct store_evicted evicted = { 0 };
	int err;

	pthread_mutex_lock(windows->store_lock);
	err = store_window(windows, window, bytes, size, &diag, &evicted);
	pthread_mutex_unlock(windows->store_lock);
	count(windows, window, &evicted, err ? failure_text(&diag, err) : NULL);
	tell_unsent(windows);
	if (err && err != windows->last_err)
		output_say("%s window %" PRIu32 " is lost: %s", windows->type, window->number, failure_text(&diag, err));
	if (!err && windows->last_err)
		output_say("windows are stored again; lost in all: %" PRIu64, windows->numbers.nr_lost);
	windows->last_err = err;
	return err;
}

void agent_windows_end(struct agent_windows *windows, const struct sonde_window *window)
{
	uint64_t bit = UINT64_C(1) << window->number % 64;

	pthread_mutex_lock(&windows->lock);
	windows->numbers.nr_unmade += window->err && !(windows->lost_bits & bit);
	windows->lost_bits &= ~bit;
	pthread_mutex_unlock(&windows->lock);
}

void agent_windows_failed(struct agent_windows *windows)
{
	pthread_mutex_lock(&windows->lock);
	windows->numbers.nr_unmade++;
	pthread_mutex_unlock(&windows->lock);
}

void agent_windows_set_freq(struct agent_windows *windows, uint64_t freq_hz)
{
	pthread_mutex_lock(&windows->lock);
	windows->numbers.freq_hz = freq_hz;
	pthread_mutex_unlock(&windows->lock);
}

void agent_windows_gap(struct agent_windows *windows, uint64_t gap_ns)
{
	pthread_mutex_lock(&windows->lock);
	windows->numbers.gap_ns += gap_ns;
	windows->numbers.freq_hz = 0; /* as the settings have it now */
	windows->numbers.last_ns = clock_ns();
	pthread_mutex_unlock(&windows->lock);
}

void agent_windows_numbers(struct agent_windows *windows, struct window_numbers *ret_numbers)
{
	pthread_mutex_lock(&windows->lock);
	*ret_numbers = windows->numbers;
	pthread_mutex_unlock(&windows->lock);
}
