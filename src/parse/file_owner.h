/* SPDX-License-Identifier: Apache-2.0 */
/* file_owner: the user who is charged for reading a file, and whether its file system may hang. Does not access the file system. One
 * thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct file_owner {
	uint64_t device;
	uint32_t uid;
	bool is_trusted; /* root's, our own, or those of the user who called us by sudo */
	bool is_local;   /* on a disk or in memory: it answers */
	/* any user may be its server (FUSE), or that is unknown: the uid is not reliable, so the device is charged instead */
	bool is_users;
};

struct file_owners;
struct file_owners *file_owners_new(void); /* NULL: no memory */
void file_owners_free(struct file_owners *owners); /* takes NULL */
/* fd -1: a file in our own memory. */
struct file_owner file_owner_of(struct file_owners *owners, int fd);
/* How long a worker that reads such a file may sleep before the file's server counts as hung (worker_request.max_idle_ns). */
uint64_t file_owner_idle_ns(const struct file_owner *owner);
/* Are both charged together? */
bool file_owner_is_same(const struct file_owner *a, const struct file_owner *b);
