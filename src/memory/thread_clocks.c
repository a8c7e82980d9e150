// SPDX-License-Identifier: Apache-2.0
#include "memory/thread_clocks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"

#define MAX_OPEN 256

void thread_clocks_done(struct thread_clocks *clocks)
{
	thread_clocks_close(clocks);
	free(clocks->list);
	*clocks = (struct thread_clocks){ 0 };
}

static int add(struct thread_clocks *clocks, uint32_t tgid, uint32_t tid)
{
	if (clocks->nr == clocks->capacity) {
		uint32_t capacity = clocks->capacity * 2 + 64;
		struct thread_clock *list = reallocarray(clocks->list, capacity, sizeof(*list));

		if (!list)
			return -ENOMEM;
		clocks->list = list;
		clocks->capacity = capacity;
	}
	clocks->list[clocks->nr++] = (struct thread_clock){ .tgid = tgid, .tid = tid, .event_fd = -1, .stat_fd = -1 };
	return 0;
}

static int list_process(struct thread_clocks *clocks, uint32_t tgid)
{
	char path[64];
	const struct dirent *entry;
	uint64_t tid;
	DIR *dir;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", tgid);
	dir = opendir(path);
	while (dir && !err && (entry = readdir(dir))) {
		if (!number_u64(entry->d_name, UINT32_MAX, &tid))
			err = add(clocks, tgid, (uint32_t)tid);
	}
	if (dir)
		closedir(dir);
	return err;
}

int thread_clocks_list(struct thread_clocks *clocks, const uint32_t *tgids, uint32_t nr_tgids)
{
	int err = 0;

	clocks->nr = 0;
	for (uint32_t i = 0; !err && i < nr_tgids; i++)
		err = list_process(clocks, tgids[i]);
	return err;
}

static const char *schedstat_path(char *path, size_t room, uint32_t tgid, uint32_t tid)
{
	snprintf(path, room, "/proc/%" PRIu32 "/task/%" PRIu32 "/schedstat", tgid, tid);
	return path;
}

/* "CPU time, time spent waiting for a CPU, times that it got one". */
static bool read_schedstat(int fd, struct thread_reading *reading)
{
	char text[96];
	ssize_t nr = pread(fd, text, sizeof(text) - 1, 0);

	if (nr <= 0)
		return false;
	text[nr] = 0;
	return sscanf(text, "%" SCNu64 " %*u %" SCNu64, &reading->used_ns, &reading->nr_slices) == 2;
}

static void open_clock(struct thread_clock *clock)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_TASK_CLOCK };
	char path[64];

	clock->event_fd = (int)syscall(SYS_perf_event_open, &attr, clock->tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	clock->stat_fd = open(schedstat_path(path, sizeof(path), clock->tgid, clock->tid), O_RDONLY | O_CLOEXEC);
}

void thread_clocks_open(struct thread_clocks *clocks, uint32_t random)
{
	for (uint32_t i = 0; i < clocks->nr; i++) {
		struct thread_clock *clock = &clocks->list[(random % clocks->nr + i) % clocks->nr];

		clock->is_left_out = i >= MAX_OPEN;
		if (!clock->is_left_out)
			open_clock(clock);
	}
}

static uint64_t read_event(const struct thread_clock *clock)
{
	uint64_t ns;

	return clock->event_fd >= 0 && read(clock->event_fd, &ns, sizeof(ns)) == sizeof(ns) ? ns : 0;
}

/* What the file has of a thread that does not run is exact, and a thread whose event stands still around the reading does not run. */
static struct thread_reading read_clock(const struct thread_clock *clock)
{
	struct thread_reading reading = { .event_ns = read_event(clock) };

	reading.is_exact = clock->stat_fd >= 0 && read_schedstat(clock->stat_fd, &reading) && read_event(clock) == reading.event_ns;
	return reading;
}

void thread_clocks_begin(struct thread_clocks *clocks)
{
	for (uint32_t i = 0; i < clocks->nr; i++)
		clocks->list[i].begin = read_clock(&clocks->list[i]);
}

static uint64_t difference(uint64_t begin, uint64_t end)
{
	return end > begin ? end - begin : 0;
}

static void learn_switch(struct thread_clocks *clocks, const struct thread_clock *clock)
{
	double used_ns = (double)difference(clock->begin.used_ns, clock->end.used_ns);

	if (!clock->begin.is_exact || !clock->end.is_exact)
		return;
	clocks->missed_ns += used_ns - (double)difference(clock->begin.event_ns, clock->end.event_ns);
	clocks->nr_slices += difference(clock->begin.nr_slices, clock->end.nr_slices);
}

void thread_clocks_end(struct thread_clocks *clocks)
{
	for (uint32_t i = 0; i < clocks->nr; i++)
		clocks->list[i].end = read_clock(&clocks->list[i]);
	for (uint32_t i = 0; i < clocks->nr; i++)
		learn_switch(clocks, &clocks->list[i]);
}

uint64_t thread_clocks_in_window(const struct thread_clocks *clocks, const struct thread_clock *clock)
{
	uint64_t event_ns = difference(clock->begin.event_ns, clock->end.event_ns);
	double switch_ns = clocks->nr_slices ? fmax(clocks->missed_ns, 0) / (double)clocks->nr_slices : 0;

	if (clock->begin.is_exact && clock->end.is_exact)
		return difference(clock->begin.used_ns, clock->end.used_ns);
	return event_ns ? event_ns + (uint64_t)(switch_ns * (double)difference(clock->begin.nr_slices, clock->end.nr_slices)) : 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void thread_clocks_close(struct thread_clocks *clocks)
{
	for (uint32_t i = 0; i < clocks->nr; i++) {
		close_fd(&clocks->list[i].event_fd);
		close_fd(&clocks->list[i].stat_fd);
	}
}

uint64_t thread_clocks_used(uint32_t tgid, uint32_t tid)
{
	struct thread_reading reading = { 0 };
	char path[64];
	int fd = open(schedstat_path(path, sizeof(path), tgid, tid), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	read_schedstat(fd, &reading);
	close(fd);
	return reading.used_ns;
}

uint64_t process_cpu_time(uint32_t tgid)
{
	clockid_t clock;

	return clock_getcpuclockid((pid_t)tgid, &clock) ? 0 : clock_of_ns(clock);
}
