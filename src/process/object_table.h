/* SPDX-License-Identifier: Apache-2.0 */
/* object_table: the files that processes map, by number. The same file (by device, inode, owner, size and time of change, or a copy of the
 * same owner's with the same build id and the same bytes) has one number however many processes map it under whatever paths. It is known as
 * long as somebody refers to it: then its number may be another's. A file is opened while a process that maps it lives. Of those that
 * nobody maps any more but somebody still asks for, only the youngest stay open, and those that could not be found again by their path; the
 * others are opened again when they are asked for. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "proxy/mapped_region.h"

#define OBJECT_NONE UINT32_MAX

struct object {
	struct elf_file *elf; /* NULL: not an ELF file of ours, or not to be read; owned by the table */
	const char *path;     /* as the process saw it when it was first met, or by which it is found in our root, "[vdso]" */
	uint64_t device;      /* that it was on when it was first met; 0: not known */
	uint64_t serial;      /* no other file has had it; not 0 */
};

struct object_table;
struct proxy;
struct object_table *object_table_new(struct proxy *proxy); /* which finds and opens the files, borrowed; NULL: none. NULL: no memory */
void object_table_free(struct object_table *table);
/* The file of a mapping. Its path is where it is looked for when the mapping itself cannot be opened (the process has ended, no
 * CAP_CHECKPOINT_RESTORE); what is found there must have the mapping's inode, or it is another file that has the name now, or has it
 * outside of a container. OBJECT_NONE: no memory. */
uint32_t object_table_met(struct object_table *table, const struct mapped_region *region);
/* The file that has this path in our root, whoever maps it. OBJECT_NONE: there is none, or no memory. */
uint32_t object_table_find(struct object_table *table, const char *path);
/* Borrowed until the next object_table_met, _find or _sweep. */
const struct object *object_table_at(const struct object_table *table, uint32_t object);
/* One reference by a mapping that lives, and one by whoever else may ask for it; and back. OBJECT_NONE is nothing. */
void object_table_map(struct object_table *table, uint32_t object);
void object_table_unmap(struct object_table *table, uint32_t object);
void object_table_hold(struct object_table *table, uint32_t object);
void object_table_release(struct object_table *table, uint32_t object);
bool object_table_is_mapped(const struct object_table *table, uint32_t object);
/* Forgets the files that nobody refers to, after a call of `fn` for each, and closes what need not be open. 0 or -ENOMEM. */
typedef void (*object_forgotten_fn)(void *arg, uint32_t object);
MUST_CHECK int object_table_sweep(struct object_table *table, object_forgotten_fn fn, void *arg);
uint32_t object_table_nr_left(const struct object_table *table); /* files whose last mapping ended since the last sweep */
uint32_t object_table_nr(const struct object_table *table);     /* numbers are below it; of those not in use, the path is "" */
uint32_t object_table_nr_met(const struct object_table *table); /* with those that are forgotten */
/* How many could not be opened because the process's limit of descriptors was reached, and how many that were closed could not be opened
 * again. */
uint32_t object_table_nr_refused(const struct object_table *table);
uint32_t object_table_nr_lost(const struct object_table *table);
/* How many files were left unread because their file system did not answer (FUSE, NFS), and the path of the first, "" for none. */
uint32_t object_table_nr_hung(const struct object_table *table, const char **ret_path);
