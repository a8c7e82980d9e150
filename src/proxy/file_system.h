/* SPDX-License-Identifier: Apache-2.0 */
/* file_system: whether reading a file may wait for somebody else than this machine's disks, and whether that may be anybody. */
#pragma once
#include <stdint.h>

enum file_system_kind {
	FILE_SYSTEM_LOCAL,
	FILE_SYSTEM_NETWORK, /* root has mounted it; its server may hang (NFS, CIFS, 9p), but closing a file that was read does not wait for
				it */
	FILE_SYSTEM_FOREIGN, /* anybody may serve it: FUSE, and what a user namespace has put on top of others. Closing waits, too */
};

/* Of the file behind a descriptor, which may be of O_PATH, as process `tgid` (0: we) has it mounted. Asks the file system, so it may wait
 * for ever. */
enum file_system_kind file_system_kind(uint32_t tgid, int fd);
