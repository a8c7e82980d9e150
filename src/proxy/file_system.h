/* SPDX-License-Identifier: Apache-2.0 */
/* file_system: whether reading a file may wait for something other than this machine's disks, and whether any user can cause that. */
#pragma once
#include <stdint.h>

enum file_system_kind {
	FILE_SYSTEM_LOCAL,
	/* Mounted by root. Its server may hang (NFS, CIFS, 9p), but closing a file that was read does not wait for it. */
	FILE_SYSTEM_NETWORK,
	/* Any user may serve it: FUSE, and what a user namespace has mounted on top of others. Closing waits, too. */
	FILE_SYSTEM_FOREIGN,
};

/* The kind of file system behind a descriptor (O_PATH will do), as process `tgid` (0: ourselves) has it mounted. Queries the file system,
 * so it may block for ever. */
enum file_system_kind file_system_kind(uint32_t tgid, int fd);
