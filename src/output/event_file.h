/* SPDX-License-Identifier: Apache-2.0 */
/* event_file: writes context switches and wake-ups to a file as they happen, as JSON lines (docs/formats.md). After a failure the recording
 * goes on without the file; event_file_end reports the failure. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "model/profile.h"

#define EVENT_NONE UINT32_MAX /* written as null */

struct sched_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t cpu;
	bool is_wakeup;
	uint32_t thread;  /* number of the thread that left the CPU, or was woken up */
	uint32_t cause;   /* number of the wait that began, or of the waker */
	uint32_t next;    /* number of the thread that got the CPU */
};

struct event_wait { /* a kind of wait, or a waker with its stacks */
	uint32_t number;
	uint32_t thread;                   /* of a waker; EVENT_NONE: an interrupt */
	uint16_t state, syscall;           /* of a wait: as in struct sonde_wait_key */
	const char *kind;                  /* of a wait */
	uint32_t user_stack, kernel_stack; /* in the profile, or PROFILE_NONE */
};

struct event_totals {
	uint64_t start_ns, end_ns, unix_offset_ns;
	uint64_t nr_switches, nr_wakeups;  /* in the file */
	uint64_t nr_lost;                  /* events that are not in the file */
};

struct event_file;
/* A regular file appears at `path` only at the end. 0 or a negative errno. */
MUST_CHECK int event_file_new(const char *path, struct diag *diag, struct event_file **ret_file);
void event_file_free(struct event_file *file); /* takes NULL */
void event_file_begin(struct event_file *file, uint64_t start_ns, const char *command_line);
void event_file_event(struct event_file *file, const struct sched_event *event);
/* Describe the numbers used in the events. Call them after the last event. */
void event_file_thread(struct event_file *file, uint32_t number, uint32_t tgid, uint32_t tid, const char *comm);
void event_file_wait(struct event_file *file, const struct event_wait *wait);
void event_file_waker(struct event_file *file, const struct event_wait *waker);
/* Writes the stacks that waits and wakers refer to, their frames, and the totals; then the file appears. 0 or the first failure. */
MUST_CHECK int event_file_end(struct event_file *file, const struct profile *profile, const struct event_totals *totals, struct diag *diag);
