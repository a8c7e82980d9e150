/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_file: finds and opens the files that processes map. Whose file system does not answer (FUSE, NFS) keeps us a second at most, and then is not asked
 * again: what may wait for it runs by patience.h, the rest never asks it. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/u64_map.h"
#include "elf/elf_file.h"

#define MAPPED_FILE_DEADLINE_MS 1000
#define MAPPED_FILE_MAX_HANGING 8 /* devices; then only those that have answered before are asked */
#define MAPPED_FILE_MAX_TRIES	4 /* of what cannot be put down to one device: then it is not done any more */

struct mapped_files {
	uint64_t hanging[MAPPED_FILE_MAX_HANGING]; /* devices */
	uint32_t nr_hanging, nr_hung_paths, nr_hung_comparisons;
	struct u64_map answering; /* devices */
};
void mapped_files_done(struct mapped_files *files);

/* What tells a file from all others on this machine, and from what it was before it was written to. Has no padding. */
struct file_identity {
	uint64_t device, inode, size;
	int64_t changed_s, changed_ns;
};

/* What the mapping or, if that cannot be had, its path leads to: in the process's own root, or in ours when it has ended. `inode` (0: not known) tells the
 * mapping's file from others of its name. A descriptor of O_PATH, which has no side effects on a device or FIFO, or a negative errno. */
MUST_CHECK int mapped_file_locate(struct mapped_files *files, uint32_t tgid, uint64_t start_pc, uint64_t end_pc, uint64_t inode, const char *path);
/* What has the path in our root, when it is this very file; NULL: any will do. */
MUST_CHECK int mapped_file_find(struct mapped_files *files, const char *path, const struct file_identity *identity);
/* As far as the kernel knows without asking the file system. 0; -ENOEXEC: no regular file; or what the kernel gave. */
MUST_CHECK int mapped_file_identify(int path_fd, struct file_identity *ret_identity);
/* Takes over `path_fd`. 0; -ETIMEDOUT; -EBUSY: not tried, as its file system did not answer before; or as open(2) and elf_file_open_fd. */
MUST_CHECK int mapped_file_open(struct mapped_files *files, int path_fd, uint64_t device, struct elf_file **ret_elf);
/* Have both the same bytes? They are as large. False when that cannot be told. */
bool mapped_file_is_same(struct mapped_files *files, const struct elf_file *a, uint64_t device_a, const struct elf_file *b, uint64_t device_b);
