/* SPDX-License-Identifier: Apache-2.0 */
/* thread_clocks: the CPU time of other processes' threads. The kernel's files have it as of the last tick, which may be longer ago than a
 * window lasts; so in windows a perf event per thread counts it, and is there no longer than that. One thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

struct thread_clock {
	uint32_t tgid, tid;
	int fd;                /* of its event; -1: none */
	uint64_t begin_ns, end_ns;
};

struct thread_clocks {
	struct thread_clock *list;
	uint32_t nr, capacity;
};

void thread_clocks_done(struct thread_clocks *clocks);
/* Lists the threads of these processes that there are now. 0 or -ENOMEM. */
MUST_CHECK int thread_clocks_list(struct thread_clocks *clocks, const uint32_t *tgids, uint32_t nr_tgids);
void thread_clocks_open(struct thread_clocks *clocks); /* of the first 256: each takes some microseconds */
void thread_clocks_begin(struct thread_clocks *clocks);
void thread_clocks_end(struct thread_clocks *clocks); /* in the same order, so each has the time of a window */
void thread_clocks_close(struct thread_clocks *clocks);
/* All that the thread has used so far; 0: it is gone. */
uint64_t thread_clocks_used(uint32_t tgid, uint32_t tid);
/* All that the threads of a process have used so far, and those that have ended. 0: it is gone. */
uint64_t process_cpu_time(uint32_t tgid);
