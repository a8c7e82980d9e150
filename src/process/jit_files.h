/* SPDX-License-Identifier: Apache-2.0 */
/* jit_files: the files in which a process's JIT compilers say what they called their code: /tmp/perf-PID.map in its root, under the number
 * that it has in its own pid namespace, and jit-PID.dump wherever it is: its writer maps a page of it executable, so that a
 * profiler meets it (Linux tools/perf/Documentation/jitdump-specification.txt). Opened as the process's own (proxy/opener.h). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "proxy/proxy.h"

#define JIT_FILES_MAX		 8 /* of a process */
#define JIT_FILES_MAX_MAP_BYTES	 ((uint64_t)1 << 30)
#define JIT_FILES_MAX_DUMP_BYTES ((uint64_t)4 << 30) /* with the code itself, which is passed over */

struct jit_files {
	int fds[JIT_FILES_MAX]; /* the caller's; jit_files_done closes those that are not -1 (MOVE_FD) */
	uint32_t nr;
	uint32_t nr_refused; /* are there and were not opened: no regular file, another's, too large, ... */
	int refusal;	     /* why the last one was not: negative errno */
};

/* Of a process that has ended, the perf map alone; a jitdump of it, whose path the caller saw mapped, is added by jit_files_add_dump.
 * `is_ours`: see proxy_open_own. Fills ret_files in any case. */
void jit_files_open(struct proxy *proxy, uint32_t tgid, bool is_ours, struct jit_files *ret_files);
/* Nothing happens when the path is not that of a jitdump of the process. */
void jit_files_add_dump(struct jit_files *files, struct proxy *proxy, uint32_t tgid, bool is_ours, const char *path);
/* Is this what a process that calls itself `number` calls its jitdump? */
bool jit_files_is_dump(const char *path, uint32_t number);
void jit_files_done(struct jit_files *files);
