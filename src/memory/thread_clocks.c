// SPDX-License-Identifier: Apache-2.0
#include "memory/thread_clocks.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/small_file.h"

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
	clocks->list[clocks->nr++] = (struct thread_clock){ .tgid = tgid, .tid = tid, .fd = -1 };
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

void thread_clocks_open(struct thread_clocks *clocks)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_TASK_CLOCK };

	for (uint32_t i = 0; i < clocks->nr && i < MAX_OPEN; i++)
		clocks->list[i].fd = (int)syscall(SYS_perf_event_open, &attr, clocks->list[i].tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint64_t read_clock(const struct thread_clock *clock)
{
	uint64_t ns;

	return clock->fd >= 0 && read(clock->fd, &ns, sizeof(ns)) == sizeof(ns) ? ns : 0;
}

void thread_clocks_begin(struct thread_clocks *clocks)
{
	for (uint32_t i = 0; i < clocks->nr; i++)
		clocks->list[i].begin_ns = read_clock(&clocks->list[i]);
}

void thread_clocks_end(struct thread_clocks *clocks)
{
	for (uint32_t i = 0; i < clocks->nr; i++)
		clocks->list[i].end_ns = read_clock(&clocks->list[i]);
}

void thread_clocks_close(struct thread_clocks *clocks)
{
	for (uint32_t i = 0; i < clocks->nr; i++) {
		if (clocks->list[i].fd >= 0)
			close(clocks->list[i].fd);
		clocks->list[i].fd = -1;
	}
}

uint64_t thread_clocks_used(uint32_t tgid, uint32_t tid)
{
	char path[64], text[96];
	uint64_t ns = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/schedstat", tgid, tid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)))
		return 0;
	text[strcspn(text, " ")] = 0;
	return number_u64(text, UINT64_MAX, &ns) ? 0 : ns;
}

uint64_t process_cpu_time(uint32_t tgid)
{
	clockid_t clock;

	return clock_getcpuclockid((pid_t)tgid, &clock) ? 0 : clock_of_ns(clock);
}
