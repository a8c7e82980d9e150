/* SPDX-License-Identifier: Apache-2.0 */
/* stranger: as whom a process opens files, and how a thread of ours does the same. For a thread that ends afterwards: its rights do
 * not come back. The rights of the other threads stay as they are. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

#define CREDENTIALS_NOBODY 65534 /* the user and the group that own nothing */

struct credentials {
	uint32_t uid, gid; /* of its file accesses */
	uint32_t *groups;
	uint32_t nr_groups;
	uint64_t capabilities; /* to pass by file permissions: a mask of 1 << CAP_... */
	bool has_root;	       /* its /proc/TGID/root is there: it has not ended */
	uint32_t inner_tgid;   /* its number in its own (innermost) pid namespace */
};

/* Nobody: neither groups nor capabilities. */
void credentials_init_nobody(struct credentials *credentials);
/* The process whose directory in /proc `proc_fd` is; nobody when its user numbers differ (a set-user-id program is fed by one user
 * and reads as another). 0; -ESRCH: it is gone; -ENOMEM. The caller calls credentials_done in any case. */
MUST_CHECK int credentials_read(int proc_fd, struct credentials *ret_credentials);
void credentials_done(struct credentials *credentials);
#define CREDENTIALS_GONE UINT32_MAX
/* As whom the process opens files; CREDENTIALS_GONE: it is gone. */
uint32_t credentials_uid(uint32_t tgid);

/* Whom the copy of a file is charged to that the process (0, or gone: nobody's) maps. */
uint32_t credentials_file_uid(uint32_t tgid);
/* Does the process whose directory in /proc that is see the files that we see, with its mounts and its root? */
bool credentials_see_our_files(int proc_fd);
/* How good a word its mounts are on the files of user `owner`: the greatest where they are ours, then where only root can have made them,
 * then where that user made them. CREDENTIALS_GONE_RANK: it is gone. */
#define CREDENTIALS_GONE_RANK 0
#define CREDENTIALS_OWN_RANK  1 /* anybody's, who made them himself */
#define CREDENTIALS_OUR_RANK  4
uint32_t credentials_rank(uint32_t tgid, uint32_t owner);

/* Makes the calling thread open files as the stranger does; without our own capabilities in any case. When we are not root, it is the only
 * thing done. 0, or negative errno: then nothing may be opened. */
MUST_CHECK int credentials_become(const struct credentials *credentials);
