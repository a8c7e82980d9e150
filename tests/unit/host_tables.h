/* SPDX-License-Identifier: Apache-2.0 */
/* host_tables: the unwind tables and mappings of a process, for a walk of its stacks on the host (walk_host.h). */
#pragma once
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "abi/runtime.h"
#include "process/process_table.h"
#include "unwind/unwind_table.h"
#include "walk_host.h"

#define HOST_MAX_OBJECTS 256
#define HOST_MAX_SHARED_RULES 16384

/* Called for each mapped file, which may have no contents that can be read. */
typedef void (*host_file_fn)(const struct elf_file *elf, uint64_t load_bias);

struct host_object {
	struct sonde_mapping place;
	uint64_t base_vaddr;
	bool is_known;
};

/* The enum sonde_runtime whose code all code without an ELF file is; 0: none. */
static uint32_t host_owner;
/* The part of a file's code that is that runtime's, too; `look` sets it for each mapping. */
static struct sonde_code_range host_owned_part;

struct host_tables {
	struct process_table *processes;
	struct rule_table *rules;
	struct host_object objects[HOST_MAX_OBJECTS];
	struct walk *walk;
	host_file_fn look; /* or NULL */
};

static inline long host_read_process(pid_t pid, void *to, __u32 size, __u64 from)
{
	struct iovec local = { to, size }, remote = { (void *)from, size };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

static inline void host_load_object(struct host_tables *tables, const struct object *object, struct host_object *known)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	CLEANUP(freep) struct host_row *rows = NULL;

	known->is_known = true;
	if (!object->elf || unwind_table_build(object->elf, tables->rules, NULL, &table))
		return;
	rows = calloc(table->nr_rows, sizeof(*rows));
	assert_non_null(rows);
	for (uint32_t block = 0; block < table->nr_blocks; block++) {
		for (uint32_t i = table->blocks[block]; i < table->blocks[block + 1]; i++)
			rows[i] = (struct host_row){ .rel = ((uint64_t)block << table->block_shift) + table->rows[i].low,
						     .rule = table->rows[i].rule };
	}
	host_table(rows, table->nr_rows - 1, rows[table->nr_rows - 1].rel, table->block_shift, &known->place);
	known->base_vaddr = table->base_vaddr;
}

static inline void host_take_mapping(struct host_tables *tables, const struct process_mapping *mapping, struct sonde_mapping *to)
{
	const struct object *object;
	struct host_object *known;

	*to = (struct sonde_mapping){ .start_pc = mapping->start_pc, .end_pc = mapping->end_pc };
	object = mapping->object == OBJECT_NONE ? NULL : object_table_at(process_table_objects(tables->processes), mapping->object);
	if (host_owner && (!object || !object->elf)) {
		to->index_pos = host_owner;
		to->block_shift = SONDE_OWNED;
		return;
	}
	if (!object)
		return;
	assert_true(mapping->object < HOST_MAX_OBJECTS);
	known = &tables->objects[mapping->object];
	if (!known->is_known)
		host_load_object(tables, object, known);
	to->index_pos = known->place.index_pos;
	to->nr_blocks = known->place.nr_blocks;
	to->block_shift = known->place.block_shift;
	to->base_pc = mapping->load_bias + known->base_vaddr;
	if (tables->look && object->elf)
		tables->look(object->elf, mapping->load_bias);
}

/* Splits a mapping around host_owned_part. Returns how many there are now. */
static inline uint32_t host_split(struct sonde_mapping *at)
{
	const struct sonde_code_range *part = &host_owned_part;
	struct sonde_mapping whole = *at;
	uint32_t nr = 0;

	if (part->start_pc >= part->end_pc || part->start_pc < whole.start_pc || part->end_pc > whole.end_pc)
		return 1;
	if (part->start_pc > whole.start_pc) {
		at[nr] = whole;
		at[nr++].end_pc = part->start_pc;
	}
	at[nr++] = (struct sonde_mapping){ .start_pc = part->start_pc, .end_pc = part->end_pc, .base_pc = part->start_pc,
					   .index_pos = host_owner, .block_shift = SONDE_OWNED };
	if (part->end_pc < whole.end_pc) {
		at[nr] = whole;
		at[nr++].start_pc = part->end_pc;
	}
	return nr;
}

static inline int host_take_mappings(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr)
{
	struct host_tables *tables = arg;
	CLEANUP(freep) struct sonde_mapping *list = calloc(3u * nr, sizeof(*list));
	uint32_t used = 0;

	assert_non_null(list);
	for (uint32_t i = 0; i < nr; i++) {
		host_take_mapping(tables, &mappings[i], &list[used]);
		used += host_split(&list[used]);
	}
	host_process(tables->walk, list, used);
	return 0;
}

static inline void host_tables_load(struct host_tables *tables, struct walk *walk, pid_t pid, host_file_fn look)
{
	const struct sonde_rule *all;
	uint32_t nr;

	host_reset();
	*tables = (struct host_tables){ .processes = process_table_new(NULL), .rules = rule_table_new(HOST_MAX_SHARED_RULES),
					.walk = walk, .look = look };
	assert_true(tables->rules && tables->processes);
	assert_int_equal(process_table_scan(tables->processes, (uint32_t)pid, 1, NULL), 0);
	assert_int_equal(process_table_changes(tables->processes, host_take_mappings, tables), 0);
	all = rule_table_rules(tables->rules, &nr);
	memcpy(host_rules, all, nr * sizeof(*all));
	nr_host_rules = nr;
}

static inline void host_tables_free(struct host_tables *tables)
{
	process_table_free(tables->processes);
	rule_table_free(tables->rules);
}
