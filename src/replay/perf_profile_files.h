/* SPDX-License-Identifier: Apache-2.0 */
/* perf_profile_files: finds a recorded file on this machine. It must have the recorded build id. If none was recorded, it must have the
 * same inode, on the machine of the recording, and be unchanged since. One thread. */
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
	const char *path; /* borrowed for the life of `files`; the recorded path if no file was found */
	uint64_t inode;   /* of the file at this path; UINT64_MAX: none was found, so no file there may be used */
};
/* 0 or -ENOMEM. */
MUST_CHECK int perf_files_find(struct perf_files *files, const struct perf_data_mmap *mmap, struct perf_file *ret_file);
/* Returns the recorded build id for a path; NULL: none. */
const struct build_id *perf_files_build_id(struct perf_files *files, const char *path);
/* Returns the number of files not found. *ret_nr_changed: those with another file at their path now. *ret_path: the first one's path,
 * or "". */
uint32_t perf_files_nr_missing(const struct perf_files *files, uint32_t *ret_nr_changed, const char **ret_path);
bool perf_files_are_ours(const struct perf_files *files); /* recorded on this machine, or on an unknown one? */
