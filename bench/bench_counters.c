// SPDX-License-Identifier: Apache-2.0
/* bench_counters ROUNDS: the cost of opening, reading and closing all software events of the calling thread, by the library and by bare
 * system calls in turn. Prints medians. */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <sonde/counter.h>

#include "base/number.h"

#define NR_EVENTS 9
#define MAX_ROUNDS 100000

struct times {
	uint64_t open_ns, read_ns, close_ns;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int by_library(struct times *times)
{
	const struct sonde_counter_options options = { .size = sizeof(options),
						       .kinds = SONDE_EVENTS_SOFTWARE,
						       .flags = SONDE_COUNTER_ENABLED };
	struct sonde_count counts[NR_EVENTS];
	struct sonde_counters *counters = NULL;
	uint64_t began = now_ns(), opened, done;
	int err = sonde_counters_new(&options, &counters);

	opened = now_ns();
	if (!err)
		err = sonde_counters_read(counters, counts, NR_EVENTS);
	done = now_ns();
	sonde_counters_free(counters);
	*times = (struct times){ opened - began, done - opened, now_ns() - done };
	return err;
}

static int by_system_calls(struct times *times)
{
	static const uint64_t configs[NR_EVENTS] = { PERF_COUNT_SW_CPU_CLOCK,	    PERF_COUNT_SW_TASK_CLOCK,
						     PERF_COUNT_SW_PAGE_FAULTS,	    PERF_COUNT_SW_CONTEXT_SWITCHES,
						     PERF_COUNT_SW_CPU_MIGRATIONS,  PERF_COUNT_SW_PAGE_FAULTS_MIN,
						     PERF_COUNT_SW_PAGE_FAULTS_MAJ, PERF_COUNT_SW_ALIGNMENT_FAULTS,
						     PERF_COUNT_SW_EMULATION_FAULTS };
	uint64_t began = now_ns(), opened, done, values[3];
	int fds[NR_EVENTS], err = 0;

	for (int i = 0; i < NR_EVENTS; i++) {
		struct perf_event_attr attr = { .size = sizeof(attr),
						.type = PERF_TYPE_SOFTWARE,
						.config = configs[i],
						.inherit = 1,
						.exclude_hv = 1,
						.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING };

		fds[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	opened = now_ns();
	for (int i = 0; i < NR_EVENTS; i++)
		err |= read(fds[i], values, sizeof(values)) != sizeof(values);
	done = now_ns();
	for (int i = 0; i < NR_EVENTS; i++)
		close(fds[i]);
	*times = (struct times){ opened - began, done - opened, now_ns() - done };
	return err;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double median_us(const struct times *times, uint64_t nr, size_t field)
{
	static uint64_t values[MAX_ROUNDS];

	for (uint64_t i = 0; i < nr; i++)
		memcpy(&values[i], (const char *)&times[i] + field, sizeof(values[i]));
	qsort(values, nr, sizeof(*values), compare);
	return (double)values[nr / 2] / 1000;
}

int main(int argc, char **argv)
{
	static struct times ours[MAX_ROUNDS], bare[MAX_ROUNDS];
	uint64_t nr;

	if (argc != 2 || number_u64(argv[1], MAX_ROUNDS, &nr) || !nr)
		return 2;
	for (uint64_t i = 0; i < nr; i++) {
		if (by_library(&ours[i]) || by_system_calls(&bare[i]))
			return 1;
	}
	printf("%.1f %.1f %.1f %.1f %.1f %.1f\n", median_us(ours, nr, offsetof(struct times, open_ns)),
	       median_us(ours, nr, offsetof(struct times, read_ns)), median_us(ours, nr, offsetof(struct times, close_ns)),
	       median_us(bare, nr, offsetof(struct times, open_ns)), median_us(bare, nr, offsetof(struct times, read_ns)),
	       median_us(bare, nr, offsetof(struct times, close_ns)));
	return 0;
}
