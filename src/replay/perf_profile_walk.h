/* SPDX-License-Identifier: Apache-2.0 */
/* perf_profile_walk: walks deferred stacks of a recording, with the unwind tables of the mapped files. A file's table is built when a stack
 * first reaches the file. One thread. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "model/account.h"
#include "parse/parser.h"
#include "perfdata/perf_data.h"
#include "process/process_table.h"
#include "unwind/deferred_walk.h"

struct perf_walk;
/* Borrows the processes, the account and the parser for its life. 0; -ENOMEM; or as table_store_new. */
MUST_CHECK int perf_walk_new(struct process_table *processes, struct account *account, struct parser *parser, struct diag *diag,
			     struct perf_walk **ret_walk);
void perf_walk_free(struct perf_walk *walk); /* takes NULL */
/* Call it when something was mapped, or a process began, or called exec. */
void perf_walk_changed(struct perf_walk *walk);
/* Does the sample have stack memory and the registers of 64-bit code that a walk on our machine needs? `arch`: of the recording, as uname
 * has it; "": not known. */
bool perf_walk_can(const struct perf_data_sample *sample, const char *arch);
/* `asked_bytes`: how much of each stack the recording was to contain at most. 0, -ENOMEM. The frames are borrowed until the next call. */
MUST_CHECK int perf_walk_run(struct perf_walk *walk, uint32_t tgid, uint64_t time_ns, const struct perf_data_sample *sample,
			     uint32_t asked_bytes, struct deferred_stack *ret_stack);
