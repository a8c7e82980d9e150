/* SPDX-License-Identifier: Apache-2.0 */
/* perf_profile_walk: walks a stack that a recording holds as registers and memory, by the unwind tables of the files that were mapped. A
 * file's table is made when a stack comes to it. One thread. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "model/account.h"
#include "parse/parser.h"
#include "perfdata/perf_data.h"
#include "process/process_table.h"
#include "unwind/deferred_walk.h"

struct perf_walk;
/* Borrows all for its life. 0, -ENOMEM. */
MUST_CHECK int perf_walk_new(struct process_table *processes, struct account *account, struct parser *parser, struct diag *diag,
			     struct perf_walk **ret_walk);
void perf_walk_free(struct perf_walk *walk); /* takes NULL */
/* Something was mapped, or a process began or ended. */
void perf_walk_changed(struct perf_walk *walk);
/* Does the sample hold what is needed, of a machine such as ours? */
bool perf_walk_can(const struct perf_data_sample *sample);
/* `asked_bytes`: of each stack, the recording was to hold at most. 0, -ENOMEM. The frames are borrowed until the next call. */
MUST_CHECK int perf_walk_run(struct perf_walk *walk, uint32_t tgid, uint64_t time_ns, const struct perf_data_sample *sample,
			     uint32_t asked_bytes, struct deferred_stack *ret_stack);
