/* SPDX-License-Identifier: Apache-2.0 */
/* file_owner: whom the reading of a file is charged to, and whether its file system may keep us waiting. Asks no file system. One thread.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct file_owner {
	uint64_t device;
	uint32_t uid;
	bool is_trusted; /* root's, ours, or whoever called us by sudo */
	bool is_local;   /* a disk's or memory's: it answers */
	bool is_users; /* any user may be its server (FUSE), or nobody knows: the uid is no more than his word, and the device stands for it
			*/
};

struct file_owners;
struct file_owners *file_owners_new(void); /* NULL: no memory */
void file_owners_free(struct file_owners *owners); /* takes NULL */
/* -1: what stands in memory of ours. */
struct file_owner file_owner_of(struct file_owners *owners, int fd);
/* How long a worker that reads such a file may sleep before the file's server counts as hung (worker_request.max_idle_ns). */
uint64_t file_owner_idle_ns(const struct file_owner *owner);
/* Are both charged alike? */
bool file_owner_is_same(const struct file_owner *a, const struct file_owner *b);
