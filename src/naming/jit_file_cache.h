/* SPDX-License-Identifier: Apache-2.0 */
/* jit_file_cache: keeps the files open in which processes list the names of their JIT code, from soon after the first sample of such code.
 * Their paths disappear when the process ends, or the container with its /tmp. Open files can still be read at the report, with everything
 * written to them until then. Reads nothing before the report. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "naming/location.h"
#include "process/jit_files.h"

#define JIT_FILE_CACHE_MAX_PROCESSES 256 /* with open files */

struct jit_file_cache;
struct proxy;
/* own_tgid: the command that we started, or 0. NULL: no memory. */
struct jit_file_cache *jit_file_cache_new(struct proxy *proxy, uint32_t own_tgid);
void jit_file_cache_free(struct jit_file_cache *cache);
/* Looks at the locations added since the last call, and from time to time for files that did not exist yet. */
void jit_file_cache_step(struct jit_file_cache *cache, const struct location_table *locations, const struct process_table *processes,
			 uint64_t now_ns);
/* For a process that has ended: returns true and copies of the descriptors, which the caller closes. For a living process: returns false,
 * because its current files can be found by path. */
bool jit_file_cache_copy(const struct jit_file_cache *cache, uint32_t tgid, struct jit_files *ret_files);
/* As jit_files_number, which is asked once for each process that the cache knows. Takes NULL. */
uint32_t jit_file_cache_number(const struct jit_file_cache *cache, uint32_t tgid);
/* A window has ended: the next call passes another table of locations. Forgets processes that had already ended at the end of the window
 * before. */
void jit_file_cache_end_window(struct jit_file_cache *cache);
