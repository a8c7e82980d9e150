// SPDX-License-Identifier: Apache-2.0
/* What a function costs, in events: count [EVENTS]. cc count.c $(pkg-config --cflags --libs sonde) */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/counter.h>

#define MAX_EVENTS 64
#define PAGES 1000

static void work(void)
{
	char *pages = (char *)malloc(PAGES * 4096); /* the cast is for C++ */

	for (size_t i = 0; pages && i < PAGES; i++)
		((volatile char *)pages)[i * 4096] = 1;
	free(pages);
}

int main(int argc, char **argv)
{
	struct sonde_counter_options options = { .size = sizeof(options),
						 .names =
						     argc > 1 ? argv[1] : "task-clock,page-faults,context-switches,instructions,cycles" };
	struct sonde_count counts[MAX_EVENTS];
	struct sonde_counters *counters = NULL;
	int err = sonde_counters_new(&options, &counters); /* some events may be missing, each with its own reason */
	uint32_t nr = sonde_counters_nr(counters);

	if (err && !sonde_counters_has_any(counters)) {
		fprintf(stderr, "count: %s\n", sonde_counters_error(counters));
		sonde_counters_free(counters);
		return 1;
	}
	err = sonde_counters_start(counters);
	work();
	if (!err)
		err = sonde_counters_stop(counters);
	if (!err)
		err = sonde_counters_read(counters, counts, nr < MAX_EVENTS ? nr : MAX_EVENTS);
	for (uint32_t i = 0; !err && i < nr && i < MAX_EVENTS; i++) {
		struct sonde_counter_info info = { .size = sizeof(info) };

		if (sonde_counters_info(counters, i, &info))
			continue;
		if (counts[i].err)
			printf("%-20s %s\n", info.name, *info.error ? info.error : strerror(-counts[i].err));
		else if (!counts[i].running_ns)
			printf("%-20s had no turn\n", info.name);
		else
			printf("%-20s %" PRIu64 " %s\n", info.name, counts[i].value, info.unit);
	}
	sonde_counters_free(counters);
	return err != 0;
}
