/* SPDX-License-Identifier: Apache-2.0 */
/* object_table: the files that processes map, numbered from 0 in the order they are met. The same file (by build id and size; else by
 * device, inode, size and time of change) has one number however many processes map it under whatever paths. A file is opened
 * while a process that maps it lives, and stays open. One thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

#define OBJECT_NONE UINT32_MAX

struct object {
	struct elf_file *elf; /* NULL: not an ELF file of ours, or not to be read; owned by the table */
	const char *path;     /* as the process saw it when it was first met, "[vdso]" */
};

struct object_table;
struct object_table *object_table_new(void); /* NULL: no memory */
void object_table_free(struct object_table *table);
/* The file that `tgid` has mapped at [start_pc, end_pc). `path` names it, and is where it is looked for when the mapping itself
 * cannot be opened (the process has ended, no CAP_CHECKPOINT_RESTORE); what is found there must have the mapping's `inode` (0: not known), or it is
 * another file that has the name now, or has it outside of a container. OBJECT_NONE: no memory. */
uint32_t object_table_met(struct object_table *table, uint32_t tgid, uint64_t start_pc, uint64_t end_pc, uint64_t inode, const char *path);
/* Borrowed until the next object_table_met. */
const struct object *object_table_at(const struct object_table *table, uint32_t object);
uint32_t object_table_nr(const struct object_table *table);
/* How many were not opened because the process's limit of descriptors was reached. */
uint32_t object_table_nr_refused(const struct object_table *table);
