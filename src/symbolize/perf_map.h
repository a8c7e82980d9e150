/* SPDX-License-Identifier: Apache-2.0 */
/* perf_map: the names that a JIT compiler writes for its code, "hexstart hexsize name" a line, in /tmp/perf-PID.map (format: Linux
 * tools/perf/Documentation/jit-interface.txt). JITs reuse memory, so where lines overlap the later one wins; the rest of the earlier one
 * still counts. Immutable once read; any thread may look up. The file is untrusted. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define PERF_MAP_MAX_BYTES   ((uint64_t)1 << 30)
#define PERF_MAP_MAX_ENTRIES ((size_t)4 << 20) /* lines; more are refused and counted */

struct perf_map;
/* Reads from a descriptor by pread(2) only; the caller keeps it. 0; -ENODATA: no usable line; -ENOMEM; or the error of the read. */
MUST_CHECK int perf_map_read_fd(int fd, struct perf_map **ret_map);
/* The same from memory. 0, -ENODATA or -ENOMEM. */
MUST_CHECK int perf_map_parse(const char *bytes, size_t size, struct perf_map **ret_map);
void perf_map_free(struct perf_map *map); /* accepts NULL */
static inline void perf_map_freep(struct perf_map **map)
{
	perf_map_free(*map);
}

/* 0 or -ENOENT. The name is borrowed from the map; *ret_start is the start in its line. */
MUST_CHECK int perf_map_find(const struct perf_map *map, uint64_t pc, const char **ret_name, uint64_t *ret_start);
uint32_t perf_map_size(const struct perf_map *map);	  /* lines accepted */
uint32_t perf_map_nr_refused(const struct perf_map *map); /* lines that made no sense, or were too many or too long */
