// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
