/* SPDX-License-Identifier: Apache-2.0 */
/* debug_file: the file that has a stripped program's symbols. Looked for by build id, then by the .gnu_debuglink section, where gdb looks
 * ("Debugging Information in Separate Files"). It must have the program's build id, or the checksum in the link: anybody may have put it
 * there. */
#pragma once
#include "base/cleanup.h"
#include "elf/elf_file.h"

#define DEBUG_FILE_MAX_BYTES ((uint64_t)16 << 30) /* larger files are not opened; only symbols are read */
#define DEBUG_LINK_MAX_BYTES ((uint64_t)2 << 30)  /* read whole for the checksum */

/* `debug_dir` is /usr/lib/debug or the like. `path` is the program's, or NULL; only if it is absolute, its directory is searched. 0 or
 * -ENOENT. The caller frees the file. */
MUST_CHECK int debug_file_open(const struct elf_file *elf, const char *path, const char *debug_dir, struct elf_file **ret_debug);
/* The same for a file that was supplied as its debug file. Takes over `fd`, even on failure. 0; -ENOENT: the file belongs to another
 * program; -ENODATA: nothing useful in it; or as elf_file_open_fd. */
MUST_CHECK int debug_file_take(const struct elf_file *elf, int fd, struct elf_file **ret_debug);
