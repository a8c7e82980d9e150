/* SPDX-License-Identifier: Apache-2.0 */
/* debug_file: the file that a stripped program's symbols were moved to: by build id, then by its .gnu_debuglink section, in the
 * places where gdb looks ("Debugging Information in Separate Files"). What is found must carry the program's build id, or the
 * checksum that the link tells; anybody may have put it there. */
#pragma once
#include "base/cleanup.h"
#include "elf/elf_file.h"

#define DEBUG_FILE_MAX_BYTES ((uint64_t)16 << 30) /* opened at all; only symbols are read */
#define DEBUG_LINK_MAX_BYTES ((uint64_t)2 << 30)  /* read whole for the checksum */

/* `debug_dir` is /usr/lib/debug or like it; `path` is the program's, places beside it are tried only when it is absolute; may be NULL. 0
 * or -ENOENT. The caller frees the file. */
MUST_CHECK int debug_file_open(const struct elf_file *elf, const char *path, const char *debug_dir, struct elf_file **ret_debug);
/* The same of a file that somebody gave us for it: takes over `fd`, also when it fails. 0; -ENOENT: it is another file's; -ENODATA: nothing
 * is in it; or as elf_file_open_fd. */
MUST_CHECK int debug_file_take(const struct elf_file *elf, int fd, struct elf_file **ret_debug);
