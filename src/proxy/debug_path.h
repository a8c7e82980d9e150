/* SPDX-License-Identifier: Apache-2.0 */
/* debug_path: which paths a worker may request while it reads one file. The worker chooses the paths, and whoever wrote that file may
 * control the worker. So only the shape of a path counts: it must be one where gdb and libdw look for debug information. */
#pragma once
#include <stdbool.h>

#define DEBUG_PATH_PREFIX "/usr/lib/debug/"

/* Is it below DEBUG_PATH_PREFIX, without "/../"? */
bool debug_path_is_below_prefix(const char *path);
/* Is it below DEBUG_PATH_PREFIX; in the directory of the file `of`, or in .debug there (.gnu_debuglink); a .dwo or .dwp (split DWARF,
 * anywhere: DW_AT_comp_dir is a directory of the build machine); or in a directory .dwz? `of` may be NULL. */
bool debug_path_is_one(const char *path, const char *of);
