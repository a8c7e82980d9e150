/* SPDX-License-Identifier: Apache-2.0 */
/* table_store: unwind tables and process mappings in the BPF maps, in the form of abi/unwind.h. Chunks are made as they are needed. Words
 * that are given up are used again only after the kernel cannot be reading them. One thread. */
#pragma once
#include <stdint.h>

#include "abi/unwind.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "unwind/chunk_pool.h"
#include "unwind/rule_table.h"
#include "unwind/unwind_table.h"

struct table_store_options {
	int chunks_fd, rules_fd, processes_fd, table_generation_fd; /* borrowed for the store's life; all -1: for walks in user space only
								       (deferred_walk.h), in our own memory */
	uint32_t max_rules;                    /* entries of the map `rules` */
	uint64_t max_bytes;                    /* of all chunks together */
};

/* Where an object's table lies. nr_blocks 0: it has none. */
struct table_location {
	uint64_t base_vaddr;
	uint32_t index_pos;
	uint16_t nr_blocks, block_shift;
	uint32_t nr_rows, nr_words;  /* nr_words: all that it takes */
	uint32_t nr_parts;
	struct chunk_place *parts;   /* owned: those of the rows, then the index */
};

struct table_store;
MUST_CHECK int table_store_new(const struct table_store_options *options, struct diag *diag, struct table_store **ret_store);
void table_store_free(struct table_store *store);
/* Rules for unwind_table_build; those that are new reach the kernel with table_store_load. Borrowed. */
struct rule_table *table_store_rules(struct table_store *store);
/* Copies a table, built with table_store_rules, into chunks; it may be freed then. 0; -ENOSPC: no room: the tables' part of max_bytes is
 * reached, or what is free is too scattered; -EFBIG: more rows in a block than a chunk holds; -ENOMEM. */
MUST_CHECK int table_store_load(struct table_store *store, const struct unwind_table *table, struct table_location *ret_place);
/* Gives a table's words and rules back and empties its place. No process that the kernel knows of has a mapping with it any more. */
void table_store_unload(struct table_store *store, struct table_location *place);
/* Frees the place of a table without giving back what it names: for the end, before or after table_store_free. */
void table_location_done(struct table_location *place);
/* What a table will take, without what is rounded up. */
uint64_t table_store_bytes_of(const struct unwind_table *table);
/* How many bytes of rows and indexes there can be. */
uint64_t table_store_max_table_bytes(const struct table_store *store);
/* Says what a process has mapped now, sorted by start_pc; beyond SONDE_MAX_MAPPINGS they are left out. None: forgets the process. Its
 * serial is filled in. 0; -ENOSPC: no room for it, then the kernel knows nothing of the process; -ENOMEM or what bpf(2) gave. */
MUST_CHECK int table_store_set_process(struct table_store *store, const struct sonde_process *process,
				       const struct sonde_mapping *mappings);
/* Up to when what the kernel was told last of a process is true; 0: it was told nothing. */
uint64_t table_store_known_ns(const struct table_store *store, uint32_t tgid);
/* The number of the rule at an address of a table that is loaded. *ret_end: where the next row may begin. */
uint32_t table_store_find(const struct table_store *store, const struct table_location *place, uint64_t elf_vaddr, uint64_t *ret_end);
/* The words of the chunk that `pos` lies in, and a rule, as the kernel side sees them; NULL when there is none. */
const uint32_t *table_store_chunk(const struct table_store *store, uint32_t pos);
const struct sonde_rule *table_store_rule(const struct table_store *store, uint32_t number);
/* Waits until what was given back can be used again, which else happens when it is needed. 0 or what bpf(2) gave. */
MUST_CHECK int table_store_settle(struct table_store *store);
/* The same of rules, if any were given back. */
MUST_CHECK int table_store_settle_rules(struct table_store *store);
uint64_t table_store_bytes(const struct table_store *store);       /* kernel memory of the chunks */
uint64_t table_store_used_bytes(const struct table_store *store);  /* of them, what is not free */
uint64_t table_store_table_bytes(const struct table_store *store); /* rows and indexes */
uint64_t table_store_rows(const struct table_store *store);
