/* SPDX-License-Identifier: Apache-2.0 */
/* place: where a frame stands, without its name: in a file, in a process's anonymous memory, or in the kernel. Each place is one, however
 * many stacks and, for files, processes go through it. One thread adds; any may read when nothing is added any more. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "process/process_table.h"

#define LOCATION_NO_MEMORY UINT32_MAX

struct location {
	uint64_t pc;               /* or kaddr; where it was first met, when it stands in a file */
	uint64_t elf_vaddr;        /* as linked; the byte in the file when that is no ELF file; 0 without an object */
	uint64_t start_pc, end_pc, file_off; /* of the mapping; 0 when there was none */
	uint64_t first_ns;         /* in the kernel: when it was first met, CLOCK_MONOTONIC */
	uint32_t object;           /* or OBJECT_NONE */
	uint32_t tgid;             /* 0: in the kernel */
	bool is_return;            /* a return address: the call is before it */
	bool in_elf;               /* then the place is the same in all processes */
};

struct location_table;
struct location_table *location_table_new(void); /* NULL: no memory */
void location_table_free(struct location_table *table); /* takes NULL */
/* Before that: the files of the places need not be known any more. */
void location_table_release(const struct location_table *table, const struct process_table *processes);
/* Its number; LOCATION_NO_MEMORY. `frame` is as abi/record.h has it. */
uint32_t location_user(struct location_table *table, const struct process_table *processes, uint32_t tgid, uint64_t time_ns,
		       uint64_t frame);
uint32_t location_kernel(struct location_table *table, uint64_t kaddr, bool is_return, uint64_t time_ns);
/* That of another table. */
uint32_t place_copy(struct location_table *table, const struct process_table *processes, const struct location *location);
const struct location *location_at(const struct location_table *table, uint32_t location); /* borrowed until the next one is added */
/* Where it stands in a process with these mappings: places know where they were first met. 0: the file is not mapped there. */
uint64_t location_pc(const struct location *location, const struct process_mapping *mappings, uint32_t nr_mappings);
uint32_t location_nr(const struct location_table *table);
