/* SPDX-License-Identifier: Apache-2.0 */
/* perf_profile_files: which file on this machine is the one that a recording tells of, if there is one: its build id says so or, where the
 * recording has none for it, its inode, on the machine of the recording, when it was not changed since. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "perfdata/perf_data.h"

struct perf_files;
/* Borrows the info for its life. `recorded_ns`: since 1970, when the recording was last written; 0: not known. NULL: no memory. */
struct perf_files *perf_files_new(const struct perf_data_info *info, int64_t recorded_ns);
void perf_files_free(struct perf_files *files); /* takes NULL */

struct perf_file {
	const char *path; /* borrowed for files' life: the recorded one, when none is to be had */
	uint64_t inode;   /* of the file that has this path; UINT64_MAX: none may be taken for it */
};
/* 0 or -ENOMEM. */
MUST_CHECK int perf_files_find(struct perf_files *files, const struct perf_data_mmap *mmap, struct perf_file *ret_file);
/* The build id that the recording has for a path: NULL when it has none. */
const struct build_id *perf_files_build_id(struct perf_files *files, const char *path);
/* How many files are not to be had, and of these, how many have their path taken by another file now; the path of the first, "" for none.
 */
uint32_t perf_files_nr_missing(const struct perf_files *files, uint32_t *ret_nr_changed, const char **ret_path);
bool perf_files_are_ours(const struct perf_files *files); /* was it recorded on this machine, as far as it tells? */
