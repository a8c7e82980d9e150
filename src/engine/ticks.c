// SPDX-License-Identifier: Apache-2.0
#include "engine/ticks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/small_file.h"

#define MAX_RATE_PATH "/proc/sys/kernel/perf_event_max_sample_rate"
#define MIN_CLOCK_PERIOD_NS 10000 /* the kernel's minimum: perf_swevent_start_hrtimer, kernel/events/core.c */
#define FALLBACK "cpu-clock"

/* 0: the kernel does not report one. */
static uint64_t max_rate_hz(void)
{
	char text[32];
	uint64_t hz;

	return small_file_read(AT_FDCWD, MAX_RATE_PATH, text, sizeof(text)) || number_u64(text, UINT64_MAX, &hz) ? 0 : hz;
}

static int check_rate(struct ticks *ticks, struct account *account, struct diag *diag)
{
	struct sonde_sampling_options *o = &ticks->options;
	uint64_t max_hz = max_rate_hz();

	if (o->freq_hz && o->period)
		return diag_errno(diag, EINVAL, "a rate and a period exclude each other");
	if (!o->freq_hz && !o->period)
		o->freq_hz = SONDE_DEFAULT_FREQ_HZ;
	if (max_hz && o->freq_hz > max_hz)
		return diag_errno(diag, EINVAL,
				  "this kernel samples at up to %" PRIu64
				  " Hertz; to allow more: sudo sysctl kernel.perf_event_max_sample_rate=%" PRIu64,
				  max_hz, o->freq_hz);
	if (ticks->event.is_clock && o->period && o->period < MIN_CLOCK_PERIOD_NS) {
		account_note(account, "the kernel samples a clock every %d ns at most: that is the period", MIN_CLOCK_PERIOD_NS);
		o->period = MIN_CLOCK_PERIOD_NS;
	}
	return o->period >> 63 ? diag_errno(diag, EINVAL, "the period is too large") : 0;
}

int ticks_init(struct ticks *ticks, const struct measurement_parts *parts, struct sampler_options *sampling, struct diag *diag)
{
	struct sonde_sampling_options *o = &ticks->options;
	int err = sized_options(o, sizeof(*o), parts->options->sampling, diag);

	if (!err)
		err = event_parse(o->event ? o->event : FALLBACK, diag, &ticks->event);
	if (!err)
		err = check_rate(ticks, parts->account, diag);
	if (err)
		return err;
	sampling->no_ticks = false;
	sampling->config.include_idle = o->idle;
	sampling->event = &ticks->event;
	sampling->freq_hz = o->freq_hz;
	sampling->period = o->period;
	sampling->cpu = o->cpu ? (int64_t)*o->cpu : -1;
	ticks->opening = *sampling;
	o->event = NULL;
	o->cpu = NULL;
	return 0;
}

static bool is_missing(int err)
{
	return err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV || err == -EINVAL;
}

int ticks_open(struct ticks *ticks, const struct measurement_parts *parts, struct diag *diag)
{
	struct sampler *sampler = parts->engine->sampler;
	char wanted[sizeof(ticks->event.name)];
	int err = sampler_open_events(sampler, &ticks->opening, diag);

	if (!err || !is_missing(err) || !strcmp(ticks->event.name, FALLBACK))
		return err;
	if (ticks->options.no_fallback) {
		diag_errno(diag, -err, "this machine does not have the event '%s' (%s)", ticks->event.name, strerror(-err));
		return -EOPNOTSUPP;
	}
	memcpy(wanted, ticks->event.name, sizeof(wanted));
	*diag = (struct diag){ 0 };
	err = event_parse(FALLBACK, diag, &ticks->event);
	if (!err)
		err = sampler_open_events(sampler, &ticks->opening, diag);
	if (!err)
		account_note(parts->account, "this machine does not have the event '%s': sampling " FALLBACK " instead", wanted);
	return err;
}

int ticks_set_rate(struct ticks *ticks, struct sampler *sampler, uint64_t freq_hz)
{
	int err = ticks->event.is_clock && ticks->options.freq_hz ? sampler_set_rate(sampler, freq_hz) : -EINVAL;

	if (!err)
		ticks->options.freq_hz = freq_hz;
	return err;
}

void ticks_account(const struct ticks *ticks, const struct sampler *sampler, struct account *account)
{
	const struct cpu_events_total total = sampler_events(sampler);
	const struct sonde_sampling_options *o = &ticks->options;

	snprintf(account->event, sizeof(account->event), "%s", ticks->event.name);
	snprintf(account->event_unit, sizeof(account->event_unit), "%s", ticks->event.is_clock ? "nanoseconds" : "count");
	account->freq_hz = o->freq_hz;
	/* the kernel's clocks keep a rate as a fixed period */
	account->period = o->freq_hz && ticks->event.is_clock ? NS_PER_S / o->freq_hz : o->period;
	account->expected = total.expected;
	account->throttled = total.nr_throttled;
	account->throttled_ns = total.throttled_ns;
	account->unscheduled_ns = total.unscheduled_ns;
	account->events = total.count;
	account->nr_cpus = sampler_nr_cpus(sampler);
}
