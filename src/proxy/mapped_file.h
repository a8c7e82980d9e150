/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_file: finds the files that processes map, and identifies them. Finding one may wait for a file server for ever (proxy/proxy.h).
 * Any thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

/* Distinguishes a file from all others on this machine, and from its state before it was written to. Device and inode numbers are reused.
 * The owner is included, so that what one user left never counts as another user's file. Has no padding. */
struct file_identity {
	uint64_t device, inode, size, owner;
	int64_t changed_s, changed_ns;
};

/* Opens the file of the mapping. If the mapping cannot be opened, opens its path in the process's own root, or in ours when the process has
 * ended. `inode` (0: not known) distinguishes the mapping's file from others with its name. Returns an O_PATH descriptor, which has no side
 * effects on a device or FIFO, or a negative errno. */
MUST_CHECK int mapped_file_locate(uint32_t tgid, uint64_t start_pc, uint64_t end_pc, uint64_t inode, const char *path);
/* The same for a path in our root. */
MUST_CHECK int mapped_file_find(const char *path);
/* Fills the identity from what the kernel knows without querying the file system. 0; -ENOEXEC: no regular file; or the kernel's error. */
MUST_CHECK int mapped_file_identify(int path_fd, struct file_identity *ret_identity);
/* Do both have the same bytes? False when that cannot be determined. Reads both: neither may be on a file system that can block us. */
bool mapped_file_is_same(const struct elf_file *a, const struct elf_file *b);
