// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_store.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/u64_map.h"

#define INDEX_ENTRY_WORDS (sizeof(struct sonde_block) / 4)
#define PROCESS_WORDS (sizeof(struct sonde_process) / 4)
#define MAPPING_WORDS (sizeof(struct sonde_mapping) / 4)
#define TABLE_SHARE(max_bytes) ((max_bytes) / 4 * 3) /* the rest is for the processes' blocks */

struct table_store {
	struct table_store_options options;
	struct chunk_pool *pool;
	struct rule_table *rules;
	struct sonde_rule *kernel_rules;  /* the memory of the map `rules` */
	size_t kernel_rules_bytes;
	uint64_t *generation;                   /* the memory of the map `table_generation` */
	uint64_t nr_settled;              /* of the pool, when rules were last freed */
	bool has_dropped;                 /* rules were dropped since then */
	struct u64_map process_pos;       /* tgid -> pos of its block */
	uint32_t serial;                  /* of the last block */
	uint64_t nr_rows, table_words;
};

static void table_store_freep(struct table_store **store)
{
	table_store_free(*store);
}

static void write_rules(struct table_store *store)
{
	uint32_t nr, first;
	const struct sonde_rule *rules = rule_table_rules(store->rules, &nr);

	rule_table_changed(store->rules, &first, &nr);
	memcpy(store->kernel_rules + first, rules + first, nr * sizeof(*rules));
}

/* Frees the rules that were dropped before the latest grace period. */
static void settle_rules(struct table_store *store)
{
	if (store->nr_settled == chunk_pool_nr_settled(store->pool))
		return;
	store->nr_settled = chunk_pool_nr_settled(store->pool);
	store->has_dropped = false;
	rule_table_settle(store->rules);
}

static int alloc(struct table_store *store, uint32_t min_words, uint32_t max_words, struct chunk_place *ret_location)
{
	int err = chunk_pool_alloc(store->pool, min_words, max_words, ret_location);

	settle_rules(store);
	return err;
}

/* The memory of a map, or our own memory. */
static int map_memory(int fd, size_t nr_bytes, struct diag *diag, void **ret_memory)
{
	void *memory = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return diag_errno(diag, errno, "cannot map memory of the BPF maps: %s", strerror(errno));
	*ret_memory = memory;
	return 0;
}

int table_store_new(const struct table_store_options *options, struct diag *diag, struct table_store **ret_store)
{
	CLEANUP(table_store_freep) struct table_store *store = calloc(1, sizeof(*store));
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	int err;

	if (!store)
		return -ENOMEM;
	store->options = *options;
	store->kernel_rules_bytes = (options->max_rules * sizeof(struct sonde_rule) + page_bytes - 1) / page_bytes * page_bytes;
	store->pool = chunk_pool_new(options->chunks_fd, options->max_bytes);
	store->rules = rule_table_new(options->max_rules);
	if (!store->pool || !store->rules)
		return -ENOMEM;
	err = map_memory(options->rules_fd, store->kernel_rules_bytes, diag, (void **)&store->kernel_rules)
		  ?: map_memory(options->table_generation_fd, sizeof(*store->generation), diag, (void **)&store->generation);
	if (err)
		return err;
	write_rules(store);
	*ret_store = MOVE(store);
	return 0;
}

void table_store_free(struct table_store *store)
{
	if (!store)
		return;
	if (store->kernel_rules)
		munmap(store->kernel_rules, store->kernel_rules_bytes);
	if (store->generation)
		munmap(store->generation, sizeof(*store->generation));
	chunk_pool_free(store->pool);
	rule_table_free(store->rules);
	u64_map_done(&store->process_pos);
	free(store);
}

struct rule_table *table_store_rules(struct table_store *store)
{
	if (store->has_dropped && rule_table_nr_used(store->rules) > store->options.max_rules / 8 * 7 && table_store_settle(store))
		store->has_dropped = false; /* then files get fewer rules than possible, which is counted */
	return store->rules;
}

int table_store_settle(struct table_store *store)
{
	int err = chunk_pool_settle(store->pool);

	settle_rules(store);
	return err;
}

int table_store_settle_rules(struct table_store *store)
{
	return rule_table_has_idle(store->rules) ? table_store_settle(store) : 0;
}

uint64_t table_store_known_ns(const struct table_store *store, uint32_t tgid)
{
	const uint32_t *pos = u64_map_find(&store->process_pos, tgid);
	const struct sonde_process *block = pos ? (const struct sonde_process *)chunk_pool_words(store->pool, *pos) : NULL;

	return block ? block->known_ns : 0;
}

const uint32_t *table_store_chunk(const struct table_store *store, uint32_t pos)
{
	return chunk_pool_words(store->pool, pos & ~(SONDE_CHUNK_WORDS - 1));
}

const struct sonde_rule *table_store_rule(const struct table_store *store, uint32_t number)
{
	return number < store->options.max_rules ? &store->kernel_rules[number] : NULL;
}

uint64_t table_store_bytes(const struct table_store *store)
{
	return chunk_pool_bytes(store->pool);
}

uint64_t table_store_used_bytes(const struct table_store *store)
{
	return chunk_pool_used_bytes(store->pool);
}

uint64_t table_store_table_bytes(const struct table_store *store)
{
	return store->table_words * 4;
}

uint64_t table_store_rows(const struct table_store *store)
{
	return store->nr_rows;
}

uint64_t table_store_bytes_of(const struct unwind_table *table)
{
	return table->nr_rows * sizeof(struct sonde_row) + table->nr_blocks * sizeof(struct sonde_block);
}

void table_store_bound(struct table_store *store, uint64_t max_bytes)
{
	store->options.max_bytes = max_bytes;
	chunk_pool_bound(store->pool, max_bytes);
}

uint64_t table_store_max_table_bytes(const struct table_store *store)
{
	return TABLE_SHARE(store->options.max_bytes);
}

/* A table that is being copied into chunks: its rows go into as few parts as possible. The rows of a block are in one part. */
struct row_copy {
	struct table_store *store;
	const struct unwind_table *table;
	struct sonde_block *index;
	struct table_location *place;
	uint32_t block;            /* next block to copy */
};

/* The rows that a look-up in the block needs: from the one that holds at its start, to its end. */
static void rows_of_block(const struct unwind_table *table, uint32_t block, uint32_t *ret_first, uint32_t *ret_end)
{
	*ret_first = table->blocks[block];
	*ret_end = table->blocks[block + 1];
	if (*ret_first == *ret_end || table->rows[*ret_first].low)
		--*ret_first; /* there is one: the first row is at the start of the first block */
}

static int add_part(struct row_copy *copy, uint32_t min_words, uint32_t max_words, struct chunk_place **ret_part)
{
	struct table_location *place = copy->place;
	struct chunk_place *parts = reallocarray(place->parts, place->nr_parts + 1, sizeof(*parts));
	int err;

	if (!parts)
		return -ENOMEM;
	place->parts = parts;
	err = alloc(copy->store, min_words, max_words, &parts[place->nr_parts]);
	if (err)
		return err == -E2BIG ? -EFBIG : err; /* a row for every address of the largest blocks: no compiler makes that */
	*ret_part = &parts[place->nr_parts++];
	return 0;
}

/* The last part, whose words cannot be mapped. */
static int drop_part(struct row_copy *copy)
{
	int err = -errno;

	chunk_pool_trim(copy->store->pool, &copy->place->parts[--copy->place->nr_parts], 0);
	return err;
}

/* Copies one part: as many blocks as fit. Pads its last unit with its last row, so the words alone tell which rules the part holds. */
static int copy_blocks(struct row_copy *copy)
{
	const struct unwind_table *table = copy->table;
	struct chunk_place *part;
	struct sonde_row *to;
	uint32_t start, first, end, nr;
	int err;

	rows_of_block(table, copy->block, &start, &end);
	err = add_part(copy, end - start, table->nr_rows - start, &part);
	if (err)
		return err;
	for (nr = 0; copy->block < table->nr_blocks; copy->block++) {
		rows_of_block(table, copy->block, &first, &end);
		if (end - start > part->nr_words)
			break;
		copy->index[copy->block] = (struct sonde_block){ .pos = part->pos + (first - start), .nr_rows = end - first };
		nr = end - start;
	}
	chunk_pool_trim(copy->store->pool, part, nr);
	to = (struct sonde_row *)chunk_pool_words(copy->store->pool, part->pos);
	if (!to)
		return drop_part(copy);
	memcpy(to, table->rows + start, nr * sizeof(*to));
	for (uint32_t i = nr; i < part->nr_words; i++)
		to[i] = to[nr - 1];
	rule_table_hold(copy->store->rules, to, part->nr_words);
	copy->place->nr_words += part->nr_words;
	return 0;
}

static int copy_index(struct row_copy *copy)
{
	uint32_t nr_words = (uint32_t)(copy->table->nr_blocks * INDEX_ENTRY_WORDS);
	struct chunk_place *part;
	uint32_t *words;
	int err = add_part(copy, nr_words, nr_words, &part);

	if (err)
		return err;
	words = chunk_pool_words(copy->store->pool, part->pos);
	if (!words)
		return drop_part(copy);
	memcpy(words, copy->index, nr_words * 4);
	copy->place->index_pos = part->pos;
	copy->place->nr_words += part->nr_words;
	return 0;
}

void table_location_done(struct table_location *place)
{
	free(place->parts);
	*place = (struct table_location){ 0 };
}

/* Rows that cannot be mapped keep their rules. */
static void drop_rows(struct table_store *store, const struct chunk_place *part)
{
	const uint32_t *rows = chunk_pool_words(store->pool, part->pos);

	if (rows)
		rule_table_drop(store->rules, (const struct sonde_row *)rows, part->nr_words);
}

/* The kernel has not seen it yet. */
static void undo(struct table_store *store, struct table_location *place)
{
	for (uint32_t i = 0; i < place->nr_parts; i++) { /* the index is missing, so all parts are rows */
		drop_rows(store, &place->parts[i]);
		chunk_pool_trim(store->pool, &place->parts[i], 0);
	}
	table_location_done(place);
}

int table_store_load(struct table_store *store, const struct unwind_table *table, struct table_location *ret_location)
{
	CLEANUP(freep) struct sonde_block *index = calloc(table->nr_blocks, sizeof(*index));
	struct table_location place = { .base_vaddr = table->base_vaddr,
					.nr_rows = table->nr_rows,
					.block_shift = (uint16_t)table->block_shift };
	struct row_copy copy = { .store = store, .table = table, .index = index, .place = &place };
	int err = index ? 0 : -ENOMEM;

	if (store->table_words * 4 + table_store_bytes_of(table) > TABLE_SHARE(store->options.max_bytes))
		return -ENOSPC;
	chunk_pool_rest(store->pool);
	write_rules(store);
	while (!err && copy.block < table->nr_blocks)
		err = copy_blocks(&copy);
	if (!err)
		err = copy_index(&copy);
	if (err) {
		undo(store, &place);
		return err;
	}
	place.nr_blocks = (uint16_t)table->nr_blocks;
	store->table_words += place.nr_words;
	store->nr_rows += table->nr_rows;
	*ret_location = place;
	return 0;
}

uint32_t table_store_find(const struct table_store *store, const struct table_location *place, uint64_t elf_vaddr, uint64_t *ret_end)
{
	uint64_t rel = elf_vaddr - place->base_vaddr, block = rel >> place->block_shift,
		 block_start = place->base_vaddr + (block << place->block_shift);
	const uint32_t *index;
	const struct sonde_block *entry;
	const struct sonde_row *rows;
	uint32_t i = 0;

	*ret_end = block_start + (1ULL << place->block_shift);
	index = block < place->nr_blocks ? chunk_pool_words(store->pool, place->index_pos) : NULL;
	if (!index)
		return SONDE_RULE_NONE;
	entry = (const struct sonde_block *)index + block;
	rows = (const struct sonde_row *)chunk_pool_words(store->pool, entry->pos);
	if (!rows)
		return SONDE_RULE_NONE;
	while (i + 1 < entry->nr_rows && block_start + rows[i + 1].low <= elf_vaddr)
		i++;
	if (i + 1 < entry->nr_rows)
		*ret_end = block_start + rows[i + 1].low;
	return rows[i].rule;
}

void table_store_unload(struct table_store *store, struct table_location *place)
{
	for (uint32_t i = 0; i < place->nr_parts; i++) {
		if (i + 1 < place->nr_parts) /* the last is the index */
			drop_rows(store, &place->parts[i]);
		chunk_pool_release(store->pool, place->parts[i]);
	}
	store->has_dropped |= place->nr_parts > 0;
	store->table_words -= place->nr_words;
	store->nr_rows -= place->nr_rows;
	table_location_done(place);
}

static uint32_t block_words(uint32_t nr_mappings)
{
	return (uint32_t)(PROCESS_WORDS + nr_mappings * MAPPING_WORDS);
}

/* Releases the words of the process's last block; not those of one that cannot be mapped, as it says itself how many they are. */
static void forget_block(struct table_store *store, uint32_t tgid)
{
	const uint32_t *known = u64_map_find(&store->process_pos, tgid);
	const struct sonde_process *block;
	uint32_t pos;

	if (!known)
		return;
	pos = *known;
	block = (const struct sonde_process *)chunk_pool_words(store->pool, pos);
	if (block)
		chunk_pool_release(store->pool, (struct chunk_place){ .pos = pos, .nr_words = block_words(block->nr_mappings) });
	u64_map_remove(&store->process_pos, tgid, pos);
}

static int set_block(struct table_store *store, const struct sonde_process *process, const struct sonde_mapping *mappings)
{
	uint32_t nr_words = block_words(process->nr_mappings);
	struct sonde_process *block;
	struct chunk_place place;
	int err = alloc(store, nr_words, nr_words, &place);

	if (err)
		return err;
	block = (struct sonde_process *)chunk_pool_words(store->pool, place.pos);
	if (!block) {
		err = -errno;
		chunk_pool_trim(store->pool, &place, 0);
		return err;
	}
	*block = *process;
	block->serial = ++store->serial;
	memcpy(block + 1, mappings, process->nr_mappings * sizeof(*mappings));
	err = chunk_pool_publish(store->pool);
	if (!err)
		err = bpf_map_update_elem(store->options.processes_fd, &process->tgid, &place.pos, BPF_ANY);
	if (!err) {
		forget_block(store, process->tgid);
		err = u64_map_add(&store->process_pos, process->tgid, place.pos);
	}
	if (err)
		chunk_pool_release(store->pool, place);
	return err;
}

int table_store_set_process(struct table_store *store, const struct sonde_process *process, const struct sonde_mapping *mappings)
{
	struct sonde_process known = *process;
	int err;

	if (!known.nr_mappings && !u64_map_find(&store->process_pos, known.tgid))
		return 0; /* it came and went between two readings */
	chunk_pool_rest(store->pool);
	if (known.nr_mappings > SONDE_MAX_MAPPINGS)
		known.nr_mappings = SONDE_MAX_MAPPINGS;
	err = known.nr_mappings ? set_block(store, &known, mappings) : 0;
	if (!known.nr_mappings || err) { /* the kernel's old entry would be wrong now */
		bpf_map_delete_elem(store->options.processes_fd, &known.tgid); /* may not exist */
		forget_block(store, known.tgid);
	}
	__atomic_fetch_add(store->generation, 1, __ATOMIC_SEQ_CST); /* after the change that it announces */
	return err == -E2BIG ? -ENOSPC : err; /* the map `processes` is full */
}
