/* SPDX-License-Identifier: Apache-2.0 */
/* table_loader: loads the files' unwind tables into the kernel's memory, and knows where they are. Their size is capped. When a table finds
 * no room, those of files that no process maps are evicted first, least recently sampled first; then, for a table that a stack needs, those
 * of mapped files. A stack that reaches a file without its table ends in SONDE_STOP_NOT_LOADED until table_loader_need loads it. One
 * thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/runtime.h"
#include "base/cleanup.h"
#include "model/account.h"
#include "parse/parser.h"
#include "process/process_table.h"
#include "unwind/table_cache.h"
#include "unwind/table_store.h"

/* Informs the kernel of all processes that are marked as changed. 0 or an error that ends the run. */
typedef int (*table_loader_tell_fn)(void *arg);

struct table_loader;
/* Borrows all arguments for its life. NULL: no memory. */
struct table_loader *table_loader_new(struct table_store *store, struct process_table *processes, struct account *account,
				      struct parser *parser, table_loader_tell_fn tell, void *arg);
/* Looks for tables on disk before it builds them, and stores them there. Borrowed for the loader's life. */
void table_loader_use_cache(struct table_loader *loader, struct table_cache *cache);
/* Call before table_store_free. */
void table_loader_free(struct table_loader *loader);
/* Loads the file's table if it is not loaded yet and there is room. Makes no room: a table that finds none waits for table_loader_settle. 0
 * or -ENOMEM. */
MUST_CHECK int table_loader_meet(struct table_loader *loader, uint32_t object);
bool table_loader_is_met(const struct table_loader *loader, uint32_t object); /* true for OBJECT_NONE */
bool table_loader_is_asked(const struct table_loader *loader, uint32_t object); /* being read: call table_loader_meet again */
/* Fills in the kernel's entry for a mapping of the file, all but its pcs. */
void table_loader_fill(const struct table_loader *loader, uint32_t object, uint64_t load_bias, struct sonde_mapping *mapping);
/* The same for memory whose code runs on the frame of a piece of the file's code: takes the rule of more than half of that piece; otherwise
 * leaves the entry as it is. */
void table_loader_fill_compiled(const struct table_loader *loader, uint32_t object, const struct sonde_code_range *loop,
				struct sonde_mapping *mapping);
/* Makes room for the tables that found none, by evicting those of files that no process maps. Call once the kernel knows all changes. 0 or
 * an error that ends the run. */
MUST_CHECK int table_loader_settle(struct table_loader *loader);
/* A stack passed through that file at that time. */
void table_loader_used(struct table_loader *loader, uint32_t object, uint64_t time_ns);
/* A stack ended because that file's table is not loaded: loads it, and may evict tables of files that were not used for a second. Does
 * nothing if that happens too often. *ret_loaded: it is loaded now, or there is none. Call once the kernel knows all changes. 0 or an error
 * that ends the run. */
MUST_CHECK int table_loader_need(struct table_loader *loader, uint32_t object, uint64_t time_ns, bool *ret_loaded);
/* Evicts an eighth of all tables, to make room for the mappings of processes. The same conditions. */
MUST_CHECK int table_loader_yield(struct table_loader *loader);
/* Another bound on the memory of tables and mappings, as of table_store_bound: evicts tables, the least recently used first, until what is
 * left takes no more. The same conditions. */
MUST_CHECK int table_loader_bound(struct table_loader *loader, uint64_t max_bytes);
/* Evicts tables of files that no process maps, beyond an eighth of the room. The same conditions. */
MUST_CHECK int table_loader_trim(struct table_loader *loader);
/* The file number is no longer in use, and no process maps the file. An object_forgotten_fn; `arg` is the loader. */
void table_loader_forget(void *arg, uint32_t object);
/* Fills in the account's figures on tables. */
void table_loader_account(const struct table_loader *loader, struct account *account);
