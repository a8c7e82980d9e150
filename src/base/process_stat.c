// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/number.h"
#include "base/small_file.h"

#define NAME_FIELD 2

int process_stat_read_at(int proc_fd, struct process_stat *ret_stat)
{
	return small_file_read(proc_fd, "stat", ret_stat->text, sizeof(ret_stat->text));
}

int process_stat_read(uint32_t pid, struct process_stat *ret_stat)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	return small_file_read(AT_FDCWD, path, ret_stat->text, sizeof(ret_stat->text));
}

/* The name may have any character, so what is counted begins behind its last parenthesis. */
static const char *find(const struct process_stat *stat, int field)
{
	const char *at = strrchr(stat->text, ')');

	for (int i = NAME_FIELD; at && i < field; i++)
		at = strchr(at + 1, ' ');
	return at ? at + 1 : "";
}

uint32_t process_stat_thread(int proc_fd)
{
	int fd = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	CLEANUP(closedirp) DIR *threads = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (fd >= 0 && !threads)
		close(fd);
	while (threads && (entry = dir_next(threads, &err))) {
		struct process_stat stat;
		uint64_t tid;
		char path[32], state;

		if (number_u64(entry->d_name, INT32_MAX, &tid))
			continue;
		snprintf(path, sizeof(path), "task/%" PRIu64 "/stat", tid);
		if (small_file_read(proc_fd, path, stat.text, sizeof(stat.text)))
			continue;
		state = process_stat_char(&stat, PROCESS_STAT_STATE);
		if (state != 'Z' && state != 'X')
			return (uint32_t)tid;
	}
	return 0;
}

char process_stat_char(const struct process_stat *stat, int field)
{
	return *find(stat, field);
}

uint64_t process_stat_number(const struct process_stat *stat, int field)
{
	const char *text = find(stat, field);
	char digits[24];
	uint64_t number;

	snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(text, " "), text);
	return number_u64(digits, UINT64_MAX, &number) ? 0 : number;
}

uint64_t process_stat_ns(const struct process_stat *stat, int field)
{
	return process_stat_number(stat, field) * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

uint64_t process_stat_rss_bytes(const struct process_stat *stat)
{
	return process_stat_number(stat, PROCESS_STAT_RSS) * (uint64_t)sysconf(_SC_PAGESIZE);
}
