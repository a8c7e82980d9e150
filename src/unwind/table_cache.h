/* SPDX-License-Identifier: Apache-2.0 */
/* table_cache: compiled unwind tables on disk, so that the next start need not read call frame information again.
 *
 * Caches only what root of this machine has installed: a file with a build id, on a local file system, owned by root, not writable by
 * others, whose path is in our own mount namespace. The key is device, inode, size, times of change and build id. A container can choose
 * its files' names and build ids freely: its files are neither cached nor served from the cache. One thread; several programs may share a
 * directory. */
#pragma once
#include "base/cleanup.h"
#include "base/diag.h"
#include "elf/elf_file.h"
#include "unwind/rule_table.h"
#include "unwind/unwind_table.h"

#define TABLE_CACHE_MAX_BYTES (256u << 20)

struct table_cache;
/* Opens or creates the directory. Above max_bytes, removes the least recently used files. path NULL: $SONDE_CACHE_DIR/unwind; else
 * /var/cache/sonde/unwind for root and $XDG_CACHE_HOME/sonde/unwind for others. 0; -EPERM: it is not ours, or others may write to it; or
 * the system's error. */
MUST_CHECK int table_cache_open(const char *path, uint64_t max_bytes, struct diag *diag, struct table_cache **ret_cache);
void table_cache_free(struct table_cache *cache); /* takes NULL */
static inline void table_cache_freep(struct table_cache **cache)
{
	table_cache_free(*cache);
}
/* Loads the table of a file; `path`: as processes name it. Borrows the rules for the table's life. 0; -ENOENT: not in the cache or not
 * usable; -EXFULL: there may be no room for its rules; -ENOMEM. */
MUST_CHECK int table_cache_load(struct table_cache *cache, const struct elf_file *elf, const char *path, struct rule_table *rules,
				struct unwind_table **ret_table);
/* Stores a table, if it is worth it. Ignores errors. */
void table_cache_keep(struct table_cache *cache, const struct elf_file *elf, const char *path, const struct rule_table *rules,
		      const struct unwind_table *table);

#define TABLE_CACHE_INTERPRETERS 8

/* Notes that processes run the language interpreter in this file, so that the next recording can prepare for it before the first process
 * runs it. Only for files that may be cached; keeps the last TABLE_CACHE_INTERPRETERS. */
void table_cache_note_interpreter(struct table_cache *cache, const struct elf_file *elf, const char *path);
/* Calls `fn` with the path of each noted interpreter. 0, or the error of `fn`, which ends the loop. */
typedef int (*table_cache_path_fn)(void *arg, const char *path);
MUST_CHECK int table_cache_interpreters(const struct table_cache *cache, table_cache_path_fn fn, void *arg);
