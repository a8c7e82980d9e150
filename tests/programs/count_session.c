// SPDX-License-Identifier: Apache-2.0
/* count_session EVENT ROUNDS: counts EVENT of this whole process in a session of the library, stops it after ROUNDS intervals of 50 ms,
 * and tries what such a session refuses. Prints "name value" lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sonde/counter.h>
#include <sonde/sonde.h>

#include "checked.h"

static void work(void)
{
	volatile unsigned long turns = 0;

	while (turns < 3000000)
		turns++;
}

struct intervals {
	struct sonde_session *session;
	uint64_t nr, max, ns, last_value;
	int falls, gaps;       /* of the value, between consecutive intervals */
	uint64_t end_unix_ns;
};

static void take_interval(void *arg, const struct sonde_window *window)
{
	struct intervals *intervals = arg;
	struct sonde_count count;

	CHECK(sonde_counters_read(sonde_session_counters(intervals->session), &count, 1));
	intervals->falls += count.value < intervals->last_value;
	intervals->gaps += intervals->nr && window->start_unix_ns != intervals->end_unix_ns;
	intervals->last_value = count.value;
	intervals->end_unix_ns = window->start_unix_ns + window->duration_ns;
	intervals->ns += window->duration_ns;
	if (++intervals->nr == intervals->max)
		sonde_session_stop(intervals->session);
	work();
}

int main(int argc, char **argv)
{
	const struct sonde_counter_options counters = { .size = sizeof(counters), .names = argc == 3 ? argv[1] : "" };
	struct intervals intervals = { .max = argc == 3 ? strtoul(argv[2], NULL, 10) : 1 };
	const uint32_t own = (uint32_t)getpid();
	struct sonde_session_options options = { .size = sizeof(options),
						 .mode = SONDE_COUNT,
						 .counters = &counters,
						 .tgids = &own,
						 .nr_tgids = 1,
						 .every_ns = 50000000,
						 .window = take_interval,
						 .arg = &intervals };
	struct sonde_session *refused;

	CHECK(sonde_session_new(&options, &intervals.session));
	printf("outputs %d\n", -sonde_session_add_output(intervals.session, "-", "text"));
	CHECK(sonde_session_run(intervals.session));
	printf("intervals %llu\nns %llu\nvalue %llu\nfalls %d\ngaps %d\n", (unsigned long long)intervals.nr,
	       (unsigned long long)intervals.ns, (unsigned long long)intervals.last_value, intervals.falls, intervals.gaps);
	sonde_session_free(intervals.session);
	options.comm = "name";
	printf("names %d\n", -sonde_session_new(&options, &refused));
	sonde_session_free(refused);
	return 0;
}
