/* SPDX-License-Identifier: Apache-2.0 */
/* jit_file_cache: holds the files open in which processes name their JIT code, from soon after the first sample of such code on. A process
 * that has ended, or a container with its /tmp, takes the way to them along; what is open can still be read at the report, as it had grown
 * to be. Nothing is read before. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "naming/location.h"
#include "process/jit_files.h"

#define JIT_FILE_CACHE_MAX_PROCESSES 256 /* files are held of */

struct jit_file_cache;
struct proxy;
struct jit_file_cache *jit_file_cache_new(struct proxy *proxy, uint32_t own_tgid); /* the command that we started, or 0. NULL: no memory */
void jit_file_cache_free(struct jit_file_cache *cache);
/* Looks at the places that came since the last call, and now and then for files that were not there yet. */
void jit_file_cache_step(struct jit_file_cache *cache, const struct location_table *locations, uint64_t now_ns);
/* Of a process that has ended: gives its files, for the caller to close, and returns true. Of one that lives nothing: it says itself what
 * its files are by now. */
bool jit_file_cache_copy(const struct jit_file_cache *cache, uint32_t tgid, struct jit_files *ret_files);
/* The next places are those of another table, as a window has ended: processes that had ended when the one before did are forgotten. */
void jit_file_cache_end_window(struct jit_file_cache *cache);
