/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_region: what a process maps, as the kernel reports it. */
#pragma once
#include <stdint.h>

struct mapped_region { /* borrowed for the call */
	uint32_t tgid;
	uint64_t start_pc, end_pc;
	uint64_t device, inode; /* 0: not known */
	const char *path;
};
