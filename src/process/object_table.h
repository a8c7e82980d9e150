/* SPDX-License-Identifier: Apache-2.0 */
/* object_table: the files that processes map, by number. The same file has one number, however many processes map it under whatever paths.
 * Files are the same by device, inode, owner, size and modification time; or when one is a copy of the other, with the same owner, build id
 * and bytes. A file stays known as long as something refers to it; then its number may be reused. A file is opened while a process that
 * maps it is alive. Of the files that nobody maps any more, but that are still referred to, the most recent stay open, and those that could
 * not be found again by their path. The others are opened again on demand. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "proxy/mapped_region.h"

#define OBJECT_NONE UINT32_MAX

struct object {
	struct elf_file *elf; /* NULL: not an ELF file that we read, or not readable; owned by the table */
	/* As the process saw it when the file was first found, or as it is found in our root; "[vdso]". */
	const char *path;
	uint64_t device;      /* where it was when it was first found; 0: not known */
	uint64_t serial;      /* unique over all files; not 0 */
};

/* Code that a runtime compiled into memory, which has a file of its own: .NET's "/memfd:doublemapper (deleted)". */
static inline bool object_is_compiled(const struct object *object)
{
	return !object->elf && !strncmp(object->path, "/memfd:", strlen("/memfd:"));
}

struct object_table;
struct proxy;
/* `proxy` finds and opens the files; borrowed; NULL: none. Returns NULL: no memory. */
struct object_table *object_table_new(struct proxy *proxy);
void object_table_free(struct object_table *table);
/* Returns the file of a mapping. When the mapping itself cannot be opened (the process has ended, no CAP_CHECKPOINT_RESTORE), its path is
 * tried. What is found there must have the mapping's inode. Else it is another file that has the name now, or has it outside of a
 * container. OBJECT_NONE: no memory. */
uint32_t object_table_met(struct object_table *table, const struct mapped_region *region);
/* Returns the file that has this path in our root, mapped or not. OBJECT_NONE: there is none, or no memory. */
uint32_t object_table_find(struct object_table *table, const char *path);
/* Borrowed until the next object_table_met, _find or _sweep. */
const struct object *object_table_at(const struct object_table *table, uint32_t object);
/* Add and remove a reference: by a live mapping (map, unmap), or by any other user of the number (hold, release). OBJECT_NONE does
 * nothing. */
void object_table_map(struct object_table *table, uint32_t object);
void object_table_unmap(struct object_table *table, uint32_t object);
void object_table_hold(struct object_table *table, uint32_t object);
void object_table_release(struct object_table *table, uint32_t object);
bool object_table_is_mapped(const struct object_table *table, uint32_t object);
/* Forgets the files that nothing refers to, after calling `fn` for each, and closes idle files. 0 or -ENOMEM. */
typedef void (*object_forgotten_fn)(void *arg, uint32_t object);
MUST_CHECK int object_table_sweep(struct object_table *table, object_forgotten_fn fn, void *arg);
uint32_t object_table_nr_left(const struct object_table *table); /* files whose last mapping ended since the last sweep */
uint32_t object_table_nr(const struct object_table *table);     /* all numbers are below it; those not in use have the path "" */
uint32_t object_table_nr_met(const struct object_table *table); /* including forgotten ones */
/* How many files could not be opened because our limit of descriptors was reached, and how many closed ones could not be opened again. */
uint32_t object_table_nr_refused(const struct object_table *table);
uint32_t object_table_nr_lost(const struct object_table *table);
/* How many files were not read because their file system did not answer (FUSE, NFS), and the path of the first; "": none. */
uint32_t object_table_nr_hung(const struct object_table *table, const char **ret_path);
