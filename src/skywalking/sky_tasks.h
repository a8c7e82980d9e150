/* SPDX-License-Identifier: Apache-2.0 */
/* sky_tasks: the tasks that SkyWalking's server has given: begun, extended, replaced, ended, and their windows sent. One thread. */
#pragma once
#include "skywalking/sky_processes.h"
#include "skywalking/sky_rpc.h"
#include "skywalking/sky_task.h"

#define SKY_MAX_TASKS 16
#define SKY_MAX_TAKEN 256

struct sky_slot {
	struct sky_task *task;         /* NULL: free */
	struct sky_stacks window;      /* that is being sent, if has_window */
	bool has_window;
	uint32_t nr_calls, nr_tries;   /* of the window: calls that were answered; how often the next one has failed */
	uint64_t try_at_ns;            /* not before */
	uint64_t stopped_ns;           /* when its end was asked for; 0: it was not */
	uint64_t nr_sent, nr_without, nr_refused; /* samples */
	uint64_t nr_lost;              /* windows that could not be sent until the end */
};

struct sky_tasks {
	struct sky_slot slots[SKY_MAX_TASKS];
	const char *period;            /* borrowed: "9ms" */
	uint64_t flush_ns;
	uint64_t seen_ms;              /* all tasks up to that update were taken */
	uint64_t taken[SKY_MAX_TAKEN]; /* hashes of the last tasks, whatever became of them: a server may give them again */
	uint32_t nr_taken;             /* ever */
	uint32_t next;                 /* slot to be served */
	bool has_said_unreadable;
};

/* Takes the commands of an answer to a query. What cannot be a task is said. */
void sky_tasks_take(struct sky_tasks *tasks, const struct sky_processes *processes, struct reader message);
/* A task that we began by ourselves, under an id of the server. */
void sky_tasks_begin(struct sky_tasks *tasks, const struct sky_known *known, const char *id, bool is_off_cpu, uint64_t duration_ns);
/* Sends windows that are there, one of each task, and is done with the tasks that are over. 0, or what sky_rpc_stream returned: the window
 * is kept. */
MUST_CHECK int sky_tasks_send(struct sky_tasks *tasks, struct sky_rpc *rpc, struct diag *diag);
void sky_tasks_stop(struct sky_tasks *tasks);          /* all of them */
bool sky_tasks_are_over(const struct sky_tasks *tasks);
/* After sky_tasks_stop: waits for the ends of the tasks, until that time (clock_ns), and says what became of each. */
void sky_tasks_done(struct sky_tasks *tasks, uint64_t until_ns);
/* "9ms", "1500us", "2s": a millisecond or more. 0 or -EINVAL. For the tests, too. */
MUST_CHECK int sky_period_parse(const char *text, uint64_t *ret_ns);
