/* SPDX-License-Identifier: Apache-2.0 */
/* local_fs: file systems whose word can be taken for what they say of their files. */
#pragma once
#include <stdbool.h>

/* Is the open file on one that only this machine can have made up what it says of its files? FUSE and network file systems are none. May wait for the file system. */
bool local_fs_has(int fd);
