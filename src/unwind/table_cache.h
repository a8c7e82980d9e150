/* SPDX-License-Identifier: Apache-2.0 */
/* table_cache: compiled unwind tables on disk, so that the second start need not read call frame information again.
 *
 * Kept is only what root of this machine has installed: a file with a build id, on a local file system, that belongs to root, is not
 * writable by others, and has its path in our own mount namespace. It is known by device, inode, size, times of change and build id. A
 * container can name its files, and give them build ids, as it likes: none of them gets into the cache, and none is served from it. One
 * thread; several programs may use a directory at once. */
#pragma once
#include "base/cleanup.h"
#include "base/diag.h"
#include "elf/elf_file.h"
#include "unwind/rule_table.h"
#include "unwind/unwind_table.h"

#define TABLE_CACHE_MAX_BYTES (256u << 20)

struct table_cache;
/* The directory, which is made. Beyond max_bytes, the files that were not used longest go. NULL: $SONDE_CACHE_DIR/unwind; else
 * /var/cache/sonde/unwind for root and $XDG_CACHE_HOME/sonde/unwind for others. 0; -EPERM: it is not ours, or others may write to it; or
 * what the system gave. */
MUST_CHECK int table_cache_open(const char *path, uint64_t max_bytes, struct diag *diag, struct table_cache **ret_cache);
void table_cache_free(struct table_cache *cache); /* takes NULL */
static inline void table_cache_freep(struct table_cache **cache)
{
	table_cache_free(*cache);
}
/* The table of the file, `path` as processes name it. Borrows the rules for the table's life. 0; -ENOENT: it is not there, or what is there
 * cannot be used; -ENOMEM. */
MUST_CHECK int table_cache_load(struct table_cache *cache, const struct elf_file *elf, const char *path, struct rule_table *rules,
				struct unwind_table **ret_table);
/* Keeps a table, if it is worth it. What cannot be kept is not. */
void table_cache_keep(struct table_cache *cache, const struct elf_file *elf, const char *path, const struct rule_table *rules,
		      const struct unwind_table *table);

#define TABLE_CACHE_INTERPRETERS 8

/* Takes down that the file holds a language's interpreter that processes run, so that the next recording has ready what it takes before the
 * first process runs it. Of files that could be kept, the last TABLE_CACHE_INTERPRETERS. */
void table_cache_note_interpreter(struct table_cache *cache, const struct elf_file *elf, const char *path);
/* Calls `fn` with the path of each that was taken down. 0 or what `fn` gave, which ends it. */
typedef int (*table_cache_path_fn)(void *arg, const char *path);
MUST_CHECK int table_cache_interpreters(const struct table_cache *cache, table_cache_path_fn fn, void *arg);
