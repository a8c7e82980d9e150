/* SPDX-License-Identifier: Apache-2.0 */
/* read_owner: whose files a worker has read. What one user's file has made of a worker must neither see another's files nor answer for
 * them, so a worker reads those of one user alone. Root's, and our own user's, are no stranger's: who has read only such may read any. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define READ_OWNER_OURS  0u
#define READ_OWNER_MANY  UINT32_MAX /* several, or not to be had: no more files for who has read these */

/* Of the file beside the owner of those before it. */
uint32_t read_owner_join(uint32_t owner, int fd);
uint32_t read_owner_join_uid(uint32_t owner, uint32_t uid); /* of which is known whose it is */
uint32_t read_owner_of(const int *fds, uint32_t nr_fds);
/* May a worker that has read the one's files be asked about the other's? */
bool read_owner_may_read(uint32_t has_read, uint32_t asked);
