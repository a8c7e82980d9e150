/* SPDX-License-Identifier: Apache-2.0 */
/* jit_files: the files in which a process's JIT compilers record the names of their code. /tmp/perf-PID.map is in the process's root, with
 * its number in its own pid namespace. jit-PID.dump may be anywhere: its writer maps a page of it executable so that a profiler finds it
 * (Linux tools/perf/Documentation/jitdump-specification.txt), and so the process table knows it. Opened as the process's own
 * (proxy/opener.h). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "process/process_table.h"
#include "proxy/proxy.h"

#define JIT_FILES_MAX		 8 /* per process */
#define JIT_FILES_MAX_MAP_BYTES	 ((uint64_t)1 << 30)
#define JIT_FILES_MAX_DUMP_BYTES ((uint64_t)4 << 30) /* with the code itself, which is skipped */

struct jit_files {
	int fds[JIT_FILES_MAX]; /* owned by the caller; jit_files_done closes those that are not -1 (MOVE_FD) */
	uint32_t nr;
	uint32_t nr_refused; /* exist and were not opened: no regular file, another user's, too large, ... */
	int refusal;	     /* negative errno of the last one refused */
};

/* The process's number in its own pid namespace: its files have that in their names. For a process that has ended, the outer number: its
 * files are looked for in our root. */
uint32_t jit_files_number(uint32_t tgid);
/* Whose files, and by what they are found. */
struct jit_process {
	struct proxy *proxy;
	const struct process_table *processes; /* NULL: jitdumps are not opened */
	uint32_t tgid, number;                 /* number: jit_files_number's */
	bool is_ours;                          /* see proxy_open_own */
};
/* Opens the files. Fills ret_files in any case. */
void jit_files_open(const struct jit_process *process, struct jit_files *ret_files);
void jit_files_done(struct jit_files *files);
