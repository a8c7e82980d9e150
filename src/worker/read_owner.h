/* SPDX-License-Identifier: Apache-2.0 */
/* read_owner: the user whose files a worker has read. A file may have taken over its worker. Such a worker must neither see another user's
 * files nor answer for them, so a worker reads the files of one user only. Files of root and of our own user are trusted: a worker that has
 * read only such may read any. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define READ_OWNER_OURS  0u
#define READ_OWNER_MANY  UINT32_MAX /* several users, or not known: the worker gets no more files */

/* Returns the owner after reading this file, too. */
uint32_t read_owner_join(uint32_t owner, int fd);
uint32_t read_owner_join_uid(uint32_t owner, uint32_t uid); /* the same, for a known uid */
uint32_t read_owner_of(const int *fds, uint32_t nr_fds);
/* May a worker that has read has_read's files get those of `asked`? */
bool read_owner_may_read(uint32_t has_read, uint32_t asked);
