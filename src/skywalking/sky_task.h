/* SPDX-License-Identifier: Apache-2.0 */
/* sky_task: a profiling task of SkyWalking: waits for its time, then profiles one process by a session of its own, on a thread of its own,
 * and makes records of each window. Whoever owns it takes the windows. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "skywalking/sky_program.h"
#include "skywalking/sky_stacks.h"

struct sky_task_options { /* copied */
	char id[SKY_ID_BYTES], process_id[SKY_ID_BYTES];
	uint32_t pid;
	struct sky_program program; /* the pid may be another's by the time the task begins, and the program another one later */
	bool is_off_cpu;
	uint64_t start_unix_ns, end_unix_ns;
	uint64_t period_ns;     /* on CPU: a sample for so much time */
	uint64_t flush_ns;      /* a window for so long each */
};

struct sky_task;

MUST_CHECK int sky_task_start(const struct sky_task_options *options, struct diag *diag, struct sky_task **ret_task);
/* Waits for its end, at most until that time (clock_ns). False: it goes on. */
bool sky_task_join(struct sky_task *task, uint64_t until_ns);
/* Stops it, waits for its end, and frees it with the windows that are left. Takes NULL. */
void sky_task_free(struct sky_task *task);
const struct sky_task_options *sky_task_options(const struct sky_task *task); /* as they were given */
/* False: its session has ended, or is about to. */
bool sky_task_extend(struct sky_task *task, uint64_t end_unix_ns);
void sky_task_end_by(struct sky_task *task, uint64_t end_unix_ns); /* at the latest */
/* Ends it now; its last window follows. A second call, seconds later, hurries the names. */
void sky_task_stop(struct sky_task *task);
/* True: there will be no more windows. Then *ret_reason is why it failed, or "". */
bool sky_task_is_over(struct sky_task *task, const char **ret_reason);
/* Since when all CPUs are sampled, in milliseconds; 0: not yet. */
uint64_t sky_task_since_ms(struct sky_task *task);
/* Moves the oldest window out. False: there is none. */
bool sky_task_take_window(struct sky_task *task, struct sky_stacks *ret_window);
struct sky_task_losses {
	uint64_t nr_windows; /* found no room, as nobody took them, or could not be made */
	uint64_t nr_samples; /* of all windows: the session lost them */
};
struct sky_task_losses sky_task_losses(struct sky_task *task);
