// SPDX-License-Identifier: Apache-2.0
/* The kernel side without the walk: it counts what the ring delivers, in as many readings as requested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "collect/sampler.h"
#include "need_bpf.h"

#define FEW 10

static struct sampler *sampler;

static int count(void *arg, const void *record)
{
	++*(uint64_t *)arg;
	return 0;
}

static int stop_at_once(void *arg, const void *record)
{
	return -42;
}

static void a_reading_takes_as_many_as_asked_for(void **state)
{
	struct sonde_counters counters;
	uint64_t nr = 0;

	sampler_counters(sampler, &counters);
	assert_true(counters.recorded > FEW + 1);
	assert_int_equal(sampler_read(sampler, FEW, count, &nr), 0);
	assert_int_equal(nr, FEW);
	assert_int_equal(sampler_read(sampler, UINT64_MAX, stop_at_once, NULL), -42); /* the refused record is consumed */
	assert_int_equal(sampler_read(sampler, UINT64_MAX, count, &nr), 0);
	assert_int_equal(nr, counters.recorded - 1);
	assert_int_equal(sampler_read(sampler, UINT64_MAX, count, &nr), 0);
	assert_int_equal(nr, counters.recorded - 1); /* nothing arrives after the stop */
}

static void every_tick_is_counted_once(void **state)
{
	struct sonde_counters counters;
	uint64_t sum;

	sampler_counters(sampler, &counters);
	sum = counters.recorded;
	for (int i = 0; i < SONDE_FILTER_COUNT; i++)
		sum += counters.filtered[i];
	for (int i = 0; i < SONDE_DROP_COUNT; i++)
		sum += counters.dropped[i];
	assert_int_equal(sum, counters.ticks);
}

/* Samples all CPUs for a fifth of a second, idle ones too. This one is busy. */
static int set_up(void **state)
{
	struct event event;
	struct sampler_options options = {
		.event = &event, .freq_hz = 2000, .cpu = -1, .stack_storage = 16, .config = { .include_idle = 1 }
	};
	struct diag diag = { 0 };
	clock_t end = clock() + CLOCKS_PER_SEC / 5;

	if (event_parse("cpu-clock", &diag, &event) || sampler_new(&options, &diag, &sampler) ||
	    sampler_open_events(sampler, &options, &diag) || sampler_start(sampler, &diag)) {
		print_error("%s\n", diag.text);
		return -1;
	}
	while (clock() < end)
		;
	sampler_stop(sampler);
	return 0;
}

static int tear_down(void **state)
{
	sampler_free(sampler);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_tick_is_counted_once),
		cmocka_unit_test(a_reading_takes_as_many_as_asked_for),
	};

	need_bpf();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
