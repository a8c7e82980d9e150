/* SPDX-License-Identifier: Apache-2.0 */
/* oom_watch: has the kernel killed a process for lack of memory? By its counter, of the machine's and cgroups' memory alike; which process
 * it was is in the kernel's log, where that may be read. One thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct oom_watch {
	uint64_t nr_killed;
	int log_fd;           /* -1: it may not be read */
	uint64_t nr_unread;   /* times that the counter could not be read */
};

/* 0; -EOPNOTSUPP with a line: the kernel does not count. */
MUST_CHECK int oom_watch_init(struct oom_watch *watch, struct diag *diag);
void oom_watch_done(struct oom_watch *watch);
/* True: since the last call; `words`: "process 185 (web)", or "". */
bool oom_watch_look(struct oom_watch *watch, char *words, size_t room);
