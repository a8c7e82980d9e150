/* SPDX-License-Identifier: Apache-2.0 */
/* mapping: a range of a process's virtual addresses that maps a file, and the event that reports one. */
#pragma once
#include <stdint.h>

/* An executable mapping of a process, and when it existed. */
struct process_mapping {
	uint64_t start_pc, end_pc, file_off;
	uint64_t from_ns, until_ns; /* CLOCK_MONOTONIC; UINT64_MAX: still exists */
	uint64_t load_bias;         /* elf_vaddr = pc - load_bias; 0 without an object */
	uint32_t object;            /* or OBJECT_NONE: anonymous memory */
	uint32_t generation;        /* of the process, when the mapping was made */
};

/* A mapping event of the side-band or a line of /proc/PID/maps. */
struct mapping_event {
	uint32_t tgid;
	uint64_t start_pc, size_bytes, file_off, time_ns;
	uint64_t device, inode; /* the kernel's numbers; on some file systems stat(2) shows others; 0: not known */
	const char *path;
};
