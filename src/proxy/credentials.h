/* SPDX-License-Identifier: Apache-2.0 */
/* credentials: the user, groups and capabilities with which a process opens files, and how one of our threads takes them on. Only for a
 * thread that ends afterwards: it cannot get its rights back. The other threads keep theirs. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

#define CREDENTIALS_NOBODY 65534 /* the user and the group that own nothing */

struct credentials {
	uint32_t uid, gid; /* filesystem uid and gid */
	uint32_t *groups;
	uint32_t nr_groups;
	uint64_t capabilities; /* those that bypass file permissions: a mask of 1 << CAP_... */
	bool has_root;	       /* /proc/TGID/root exists: the process has not ended */
	uint32_t inner_tgid;   /* its number in its own (innermost) pid namespace */
};

/* Nobody: no groups, no capabilities. */
void credentials_init_nobody(struct credentials *credentials);
/* Reads the credentials of the process whose directory in /proc is `proc_fd`. The result is nobody when its ids differ: a set-user-id
 * program gets its input from one user and reads as another. 0; -ESRCH: the process has ended; -ENOMEM. The caller calls credentials_done
 * in any case. */
MUST_CHECK int credentials_read(int proc_fd, struct credentials *ret_credentials);
void credentials_done(struct credentials *credentials);
/* Are both we and the process root, whom no file's permissions stop? Then nothing is to be taken on: we have no more rights than it.
 * Another user who runs us with capabilities must not see root's files by them. */
bool credentials_pass_all(const struct credentials *credentials);
#define CREDENTIALS_GONE UINT32_MAX
/* The uid with which the process opens files; CREDENTIALS_GONE: it has ended. */
uint32_t credentials_uid(uint32_t tgid);

/* The user charged for the copy of a file that process `tgid` maps; nobody for 0 or a process that has ended. */
uint32_t credentials_file_uid(uint32_t tgid);
/* Does the process whose directory in /proc is `proc_fd` see the files that we see, with its mounts and its root? */
bool credentials_see_our_files(int proc_fd);
/* How far the process's mounts can be trusted for files of user `owner`. Highest when they are our own mounts, then when only root can have
 * made them, then when `owner` made them. CREDENTIALS_GONE_RANK: the process has ended. */
#define CREDENTIALS_GONE_RANK 0
#define CREDENTIALS_OWN_RANK  1 /* any other user made the mounts */
#define CREDENTIALS_OUR_RANK  4
uint32_t credentials_rank(uint32_t tgid, uint32_t owner);

/* Makes the calling thread open files with these credentials. Does nothing for those that pass all; else drops our own capabilities, and
 * when we are not root, that is all it does. 0, or a negative errno: then nothing may be opened. */
MUST_CHECK int credentials_become(const struct credentials *credentials);
