/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_file: finds the files that processes map, and tells them apart. Finding them may wait for a file server for ever (proxy/proxy.h).
 * Any thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

/* What tells a file from all others on this machine, and from what it was before it was written to. Numbers of devices and inodes are used
 * again: so that what one user left never stands for another's file, its owner is part of it. Has no padding. */
struct file_identity {
	uint64_t device, inode, size, owner;
	int64_t changed_s, changed_ns;
};

/* What the mapping or, if that cannot be had, its path leads to: in the process's own root, or in ours when it has ended. `inode` (0: not
 * known) tells the mapping's file from others of its name. A descriptor of O_PATH, which has no side effects on a device or FIFO, or a
 * negative errno. */
MUST_CHECK int mapped_file_locate(uint32_t tgid, uint64_t start_pc, uint64_t end_pc, uint64_t inode, const char *path);
/* The same of what has the path in our root. */
MUST_CHECK int mapped_file_find(const char *path);
/* As far as the kernel knows without asking the file system. 0; -ENOEXEC: no regular file; or what the kernel gave. */
MUST_CHECK int mapped_file_identify(int path_fd, struct file_identity *ret_identity);
/* Have both the same bytes? False when that cannot be told. Reads them: neither may be on a file system that can keep us waiting. */
bool mapped_file_is_same(const struct elf_file *a, const struct elf_file *b);
