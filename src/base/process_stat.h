/* SPDX-License-Identifier: Apache-2.0 */
/* process_stat: /proc/PID/stat, by the numbers that its fields have in proc_pid_stat(5). */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

enum { PROCESS_STAT_STATE = 3, PROCESS_STAT_FLAGS = 9, PROCESS_STAT_UTIME = 14, PROCESS_STAT_STIME = 15,
       PROCESS_STAT_CUTIME = 16, PROCESS_STAT_CSTIME = 17 /* of children that it has waited for */, PROCESS_STAT_THREADS = 20,
       PROCESS_STAT_START = 22 /* since boot */, PROCESS_STAT_RSS = 24 /* in pages */,
       PROCESS_STAT_STACK = 28 /* where the program's stack begins */, PROCESS_STAT_ENV_START = 50, PROCESS_STAT_ENV_END = 51 };

struct process_stat {
	char text[1024];
};

/* 0 or a negative errno. */
MUST_CHECK int process_stat_read(uint32_t pid, struct process_stat *ret_stat);
MUST_CHECK int process_stat_read_at(int proc_fd, struct process_stat *ret_stat); /* proc_fd: /proc/PID */
/* A thread of the process that has not ended; 0: there is none. When its first thread has ended, /proc/PID says little of a process that
 * goes on, but /proc/PID/task/TID of the others does. */
uint32_t process_stat_thread(int proc_fd);
/* A field's first character, behind the name; '\0': there is no such field. */
char process_stat_char(const struct process_stat *stat, int field);
uint64_t process_stat_number(const struct process_stat *stat, int field); /* 0: it is none, or negative */
uint64_t process_stat_ns(const struct process_stat *stat, int field);     /* of a time */
uint64_t process_stat_rss_bytes(const struct process_stat *stat);
