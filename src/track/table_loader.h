/* SPDX-License-Identifier: Apache-2.0 */
/* table_loader: which files have their unwind tables in the kernel's memory, and where. There is a cap: where a table finds no room, those
 * of files that nobody maps are given up first, the least recently sampled before others, and then, for a table that a stack asks for,
 * those of mapped files. Stacks that come to a file whose table is not there end in SONDE_STOP_NOT_LOADED until somebody says that it is
 * needed. One thread. */
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

/* Tells the kernel of all processes that count as changed. 0 or an error that ends the run. */
typedef int (*table_loader_tell_fn)(void *arg);

struct table_loader;
/* Borrows all for its life. NULL: no memory. */
struct table_loader *table_loader_new(struct table_store *store, struct process_table *processes, struct account *account,
				      struct parser *parser, table_loader_tell_fn tell, void *arg);
/* Looks for tables on disk before it builds them, and keeps them there. Borrowed for the keeper's life. */
void table_loader_use_cache(struct table_loader *loader, struct table_cache *cache);
/* Before table_store_free. */
void table_loader_free(struct table_loader *loader);
/* Sees that a file's table is loaded, when it is not yet and there is room. Makes no room: what finds none waits for table_loader_settle. 0
 * or -ENOMEM. */
MUST_CHECK int table_loader_meet(struct table_loader *loader, uint32_t object);
bool table_loader_is_met(const struct table_loader *loader, uint32_t object); /* nothing is, at OBJECT_NONE */
bool table_loader_is_asked(const struct table_loader *loader, uint32_t object); /* it is being read: to be met again */
/* What the kernel is to know of a mapping of the file: fills in all but its pcs. */
void table_loader_fill(const struct table_loader *loader, uint32_t object, uint64_t load_bias, struct sonde_mapping *mapping);
/* The same for memory whose code runs on the frame of a piece of the file's code: it has the rule that holds in more than half of that;
 * else none. */
void table_loader_fill_compiled(const struct table_loader *loader, uint32_t object, const struct sonde_code_range *loop,
				struct sonde_mapping *mapping);
/* Makes room for what found none, at the cost of files that nobody maps. To be called when the kernel has been told of all changes. 0 or an
 * error that ends the run. */
MUST_CHECK int table_loader_settle(struct table_loader *loader);
/* A stack came to that file at that time. */
void table_loader_used(struct table_loader *loader, uint32_t object, uint64_t time_ns);
/* A stack ended because that file's table is not loaded: loads it, at the cost of files that were not used for a second, unless that
 * happens too often; *ret_loaded: it is there now, or there is none. To be called when the kernel has been told of all changes. 0 or an
 * error that ends the run. */
MUST_CHECK int table_loader_need(struct table_loader *loader, uint32_t object, uint64_t time_ns, bool *ret_loaded);
/* Gives up an eighth of all tables, for the mappings of processes. The same. */
MUST_CHECK int table_loader_yield(struct table_loader *loader);
/* Gives up tables of files that nobody maps, beyond an eighth of all. The same. */
MUST_CHECK int table_loader_trim(struct table_loader *loader);
/* The file is known no more, and mapped by none. An object_forgotten_fn; `arg` is the keeper. */
void table_loader_forget(void *arg, uint32_t object);
/* Fills in what the account says of tables. */
void table_loader_account(const struct table_loader *loader, struct account *account);
