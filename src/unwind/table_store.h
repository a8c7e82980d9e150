/* SPDX-License-Identifier: Apache-2.0 */
/* table_store: unwind tables and process mappings in the BPF maps, in the layout of abi/unwind.h. Creates chunks as needed. Reuses released
 * words only when the kernel cannot still be reading them. One thread. */
#pragma once
#include <stdint.h>

#include "abi/unwind.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "unwind/chunk_pool.h"
#include "unwind/rule_table.h"
#include "unwind/unwind_table.h"

struct table_store_options {
	/* Borrowed for the store's life. All -1: only for walks in user space (deferred_walk.h), in our own memory. */
	int chunks_fd, rules_fd, processes_fd, table_generation_fd;
	uint32_t max_rules;                    /* entries of the map `rules` */
	uint64_t max_bytes;                    /* of all chunks together */
};

/* Location of an object's table. nr_blocks 0: none. */
struct table_location {
	uint64_t base_vaddr;
	uint32_t index_pos;
	uint16_t nr_blocks, block_shift;
	uint32_t nr_rows, nr_words;  /* nr_words: total size */
	uint32_t nr_parts;
	struct chunk_place *parts;   /* owned: the parts of the rows, then the index */
};

struct table_store;
MUST_CHECK int table_store_new(const struct table_store_options *options, struct diag *diag, struct table_store **ret_store);
void table_store_free(struct table_store *store);
/* Rules for unwind_table_build. New ones reach the kernel with table_store_load. Borrowed. */
struct rule_table *table_store_rules(struct table_store *store);
/* Copies a table, built with table_store_rules, into chunks; the caller may free it afterwards. 0; -ENOSPC: no room: the tables' share of
 * max_bytes is used up, or free words are too scattered; -EFBIG: more rows in a block than a chunk holds; -ENOMEM. */
MUST_CHECK int table_store_load(struct table_store *store, const struct unwind_table *table, struct table_location *ret_location);
/* Releases a table's words and rules and empties its location. No process in the kernel's map may have a mapping with it. */
void table_store_unload(struct table_store *store, struct table_location *place);
/* Frees the memory of a location without releasing the table. For the end, before or after table_store_free. */
void table_location_done(struct table_location *place);
/* Another bound on all chunks together, at most that of table_store_new. What is beyond it stays until tables are unloaded. */
void table_store_bound(struct table_store *store, uint64_t max_bytes);
/* Size that a table will take, without rounding. */
uint64_t table_store_bytes_of(const struct unwind_table *table);
/* Maximum bytes of rows and indexes. */
uint64_t table_store_max_table_bytes(const struct table_store *store);
/* Sets the mappings of a process, sorted by start_pc; those beyond SONDE_MAX_MAPPINGS are ignored. No mappings: removes the process. Fills
 * in the serial. 0; -ENOSPC: no room, then the kernel has no entry for the process; -ENOMEM or the error of bpf(2). */
MUST_CHECK int table_store_set_process(struct table_store *store, const struct sonde_process *process,
				       const struct sonde_mapping *mappings);
/* Until when the process's entry in the kernel is valid; 0: there is no entry. */
uint64_t table_store_known_ns(const struct table_store *store, uint32_t tgid);
/* Number of the rule at an address of a loaded table. *ret_end: where the next row may begin. */
uint32_t table_store_find(const struct table_store *store, const struct table_location *place, uint64_t elf_vaddr, uint64_t *ret_end);
/* The words of the chunk that contains `pos`, and a rule, as the kernel side sees them; NULL: there is none. The words are valid until the
 * next table_store_load or table_store_set_process. */
const uint32_t *table_store_chunk(const struct table_store *store, uint32_t pos);
const struct sonde_rule *table_store_rule(const struct table_store *store, uint32_t number);
/* Waits until released words can be reused; else this happens when they are needed. 0 or the error of bpf(2). */
MUST_CHECK int table_store_settle(struct table_store *store);
/* The same for rules, if any were released. */
MUST_CHECK int table_store_settle_rules(struct table_store *store);
uint64_t table_store_bytes(const struct table_store *store);       /* kernel memory of the chunks */
uint64_t table_store_used_bytes(const struct table_store *store);  /* without free words */
uint64_t table_store_table_bytes(const struct table_store *store); /* rows and indexes */
uint64_t table_store_rows(const struct table_store *store);
