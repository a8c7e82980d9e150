/* SPDX-License-Identifier: Apache-2.0 */
/* location: where a frame is, without its name: in a file, in a process's anonymous memory, or in the kernel. Each location is stored once,
 * however many stacks and, for files, processes share it. One thread adds; any thread may read once nothing is added any more. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "process/process_table.h"

#define LOCATION_NO_MEMORY UINT32_MAX

struct location {
	uint64_t pc;               /* or kaddr; for a location in a file: where it was first seen */
	uint64_t elf_vaddr;        /* as linked; in a file that is not ELF: the offset; 0 without an object */
	uint64_t start_pc, end_pc, file_off; /* of the mapping; 0: none */
	uint64_t first_ns;         /* in the kernel: when it was first seen, CLOCK_MONOTONIC */
	uint32_t object;           /* or OBJECT_NONE */
	uint32_t tgid;             /* 0: in the kernel */
	bool is_return;            /* a return address: the call is before it */
	bool in_elf;               /* in an ELF file: the same location in all processes */
};

struct location_table;
struct location_table *location_table_new(void); /* NULL: no memory */
void location_table_free(struct location_table *table); /* takes NULL */
/* Releases the objects of the locations. Call it before location_table_free. */
void location_table_release(const struct location_table *table, const struct process_table *processes);
/* Return the location's number, or LOCATION_NO_MEMORY. `frame` is as in abi/record.h. */
uint32_t location_user(struct location_table *table, const struct process_table *processes, uint32_t tgid, uint64_t time_ns,
		       uint64_t frame);
uint32_t location_kernel(struct location_table *table, uint64_t kaddr, bool is_return, uint64_t time_ns);
/* Adds a location from another table. */
uint32_t location_copy(struct location_table *table, const struct process_table *processes, const struct location *location);
const struct location *location_at(const struct location_table *table, uint32_t location); /* borrowed until the next one is added */
/* Returns its address in a process with these mappings; `pc` is only where it was first seen. 0: the file is not mapped. */
uint64_t location_pc(const struct location *location, const struct process_mapping *mappings, uint32_t nr_mappings);
uint32_t location_nr(const struct location_table *table);
