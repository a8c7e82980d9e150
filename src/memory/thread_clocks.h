/* SPDX-License-Identifier: Apache-2.0 */
/* thread_clocks: the CPU time of other processes' threads, as the scheduler counts it. /proc has it as of the last tick for a thread
 * that runs, which may be longer ago than a window lasts; so in windows a perf event per thread counts, too, and is there no longer than
 * that. It does not see what a switch to the thread costs, which the scheduler counts (7 us of a thread's 36 in a virtual machine). So
 * /proc's number is taken where the thread runs at neither end of the window, the event's and the usual cost of its switches elsewhere.
 * One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct thread_reading {
	uint64_t event_ns, used_ns, nr_slices; /* by the event; by the scheduler; times that it got a CPU */
	bool is_exact;                         /* used_ns is of now */
};

struct thread_clock {
	uint32_t tgid, tid;
	int event_fd, stat_fd; /* -1: none */
	bool is_left_out;      /* of more than 256, it is none of those that were drawn for the window */
	struct thread_reading begin, end; /* of the window */
};

struct thread_clocks {
	struct thread_clock *list;
	uint32_t nr, capacity;
	double missed_ns;    /* by events, of all exact windows so far */
	uint64_t nr_slices;  /* in these */
};

void thread_clocks_done(struct thread_clocks *clocks);
/* Lists the threads of these processes that there are now. 0 or -ENOMEM. */
MUST_CHECK int thread_clocks_list(struct thread_clocks *clocks, const uint32_t *tgids, uint32_t nr_tgids);
/* Of 256 threads at most, as each takes some microseconds: of those that follow one drawn at random. */
void thread_clocks_open(struct thread_clocks *clocks, uint32_t random);
void thread_clocks_begin(struct thread_clocks *clocks);
void thread_clocks_end(struct thread_clocks *clocks); /* in the same order, so each has the time of a window */
/* What the thread has used between begin and end. 0: nothing, or that is not known. */
uint64_t thread_clocks_in_window(const struct thread_clocks *clocks, const struct thread_clock *clock);
void thread_clocks_close(struct thread_clocks *clocks);
/* All that the thread has used so far; 0: it is gone. */
uint64_t thread_clocks_used(uint32_t tgid, uint32_t tid);
/* All that the threads of a process have used so far, and those that have ended. 0: it is gone. */
uint64_t process_cpu_time(uint32_t tgid);
