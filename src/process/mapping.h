/* SPDX-License-Identifier: Apache-2.0 */
/* mapping: a virtual range of a process that is backed by a file, and what tells of one. */
#pragma once
#include <stdint.h>

/* An executable mapping of a process, with the time it was there. */
struct process_mapping {
	uint64_t start_pc, end_pc, file_off;
	uint64_t from_ns, until_ns; /* CLOCK_MONOTONIC; UINT64_MAX: still there */
	uint64_t load_bias;         /* elf_vaddr = pc - load_bias; 0 without an object */
	uint32_t object;            /* or OBJECT_NONE: anonymous memory */
	uint32_t generation;        /* of the process, when it was mapped */
};

/* A mapping event of the side-band or a line of /proc/PID/maps. */
struct mapping_event {
	uint32_t tgid;
	uint64_t start_pc, size_bytes, file_off, time_ns;
	uint64_t device, inode; /* as the kernel has them, which is not what stat(2) says on all file systems; 0: not known */
	const char *path;
};
