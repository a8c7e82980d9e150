/* SPDX-License-Identifier: Apache-2.0 */
/* debug_path: which paths a worker may ask for while it reads one file. It names them itself, and may be in the hands of whoever wrote that
 * file, so they are told by their shape alone: the places where gdb and libdw look for debug information, and no others. */
#pragma once
#include <stdbool.h>

#define DEBUG_PATH_PREFIX "/usr/lib/debug/"

/* Below DEBUG_PATH_PREFIX, with no way up in the text? */
bool debug_path_is_below_prefix(const char *path);
/* Below DEBUG_PATH_PREFIX; beside the file `of`, or in .debug there (.gnu_debuglink); .dwo and .dwp (split DWARF, anywhere: DW_AT_comp_dir
 * is a builder's); in a directory .dwz. `of` may be NULL. */
bool debug_path_is_one(const char *path, const char *of);
