// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_store.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/u64_map.h"
#include "unwind/chunk_pool.h"

#define MIN_RUN_WORDS 64 /* the end of a chunk is not worth less */
#define PROCESS_WORDS (sizeof(struct sonde_process) / 4)
#define MAPPING_WORDS (sizeof(struct sonde_mapping) / 4)
#define TABLE_SHARE(max_bytes) ((max_bytes) / 4 * 3) /* tables leave the rest to the processes' blocks */

struct table_store {
	struct table_store_options options;
	struct chunk_pool *pool;
	struct rule_table *rules;
	struct sonde_rule *kernel_rules;  /* the memory of the map `rules` */
	size_t kernel_rules_bytes;
	uint32_t nr_written_rules;
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
	uint32_t nr;
	const struct sonde_rule *rules = rule_table_rules(store->rules, &nr);

	memcpy(store->kernel_rules + store->nr_written_rules, rules + store->nr_written_rules,
	       (nr - store->nr_written_rules) * sizeof(*rules));
	store->nr_written_rules = nr;
}

int table_store_new(const struct table_store_options *options, struct diag *diag, struct table_store **ret_store)
{
	CLEANUP(table_store_freep) struct table_store *store = calloc(1, sizeof(*store));
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	if (!store)
		return -ENOMEM;
	store->options = *options;
	store->kernel_rules_bytes = (options->max_rules * sizeof(struct sonde_rule) + page_bytes - 1) / page_bytes * page_bytes;
	store->pool = chunk_pool_new(options->chunks_fd, options->max_bytes);
	store->rules = rule_table_new(options->max_rules);
	if (!store->pool || !store->rules)
		return -ENOMEM;
	store->kernel_rules = mmap(NULL, store->kernel_rules_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, options->rules_fd, 0);
	if (store->kernel_rules == MAP_FAILED) {
		store->kernel_rules = NULL;
		return diag_errno(diag, errno, "cannot map the unwind rules: %s", strerror(errno));
	}
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
	chunk_pool_free(store->pool);
	rule_table_free(store->rules);
	u64_map_done(&store->process_pos);
	free(store);
}

struct rule_table *table_store_rules(struct table_store *store)
{
	return store->rules;
}

uint64_t table_store_known_ns(const struct table_store *store, uint32_t tgid)
{
	const uint32_t *pos = u64_map_find(&store->process_pos, tgid);

	return pos ? ((const struct sonde_process *)chunk_pool_words(store->pool, *pos))->known_ns : 0;
}
const uint32_t *table_store_chunk(const struct table_store *store, uint32_t pos)
{
	uint32_t start = pos & ~(SONDE_CHUNK_WORDS - 1);

	return start / SONDE_CHUNK_WORDS < chunk_pool_bytes(store->pool) / SONDE_CHUNK_BYTES ? chunk_pool_words(store->pool, start) : NULL;
}

const struct sonde_rule *table_store_rule(const struct table_store *store, uint32_t number)
{
	return number < store->options.max_rules ? &store->kernel_rules[number] : NULL;
}

uint64_t table_store_bytes(const struct table_store *store)
{
	return chunk_pool_bytes(store->pool);
}

uint64_t table_store_table_bytes(const struct table_store *store)
{
	return store->table_words * 4;
}

uint64_t table_store_rows(const struct table_store *store)
{
	return store->nr_rows;
}

/* A table on its way into chunks. Its rows lie in one run of words per chunk; every run but the last fills its chunk to the end, and every one begins with the
 * row that holds there. */
struct row_copy {
	struct table_store *store;
	const struct unwind_table *table;
	uint32_t *index;    /* pos of each block's first row, as it will stand in the kernel */
	uint32_t pos;       /* of the next row */
	uint32_t room;      /* words left in the run */
};

static struct sonde_row *row_at(struct row_copy *copy, uint32_t pos)
{
	return (struct sonde_row *)chunk_pool_words(copy->store->pool, pos);
}

/* Takes the rest of the chunk that is being filled, or what the rest of the table needs of it; at least what the next block needs. A
 * word is left over at the table's end, so that empty blocks there need no run of their own. */
static int begin_run(struct row_copy *copy, uint32_t nr_next, uint32_t nr_left, struct sonde_row before)
{
	uint32_t room = chunk_pool_room(copy->store->pool), size = nr_left + 2;
	int err;

	if (room < MIN_RUN_WORDS || room < nr_next + 1) /* the next chunk: all of it, so that the run ends where the chunk does */
		room = chunk_pool_bytes(copy->store->pool) ? SONDE_CHUNK_WORDS : SONDE_CHUNK_WORDS - CHUNK_POOL_FIRST_WORDS;
	if (size > room)
		size = room;
	err = chunk_pool_cut(copy->store->pool, size, &copy->pos);
	if (err)
		return err;
	*row_at(copy, copy->pos++) = (struct sonde_row){ .low = 0, .rule = before.rule };
	copy->room = size - 1;
	copy->store->table_words += size;
	return 0;
}

/* Rows go by blocks: those of one are never parted. What is left of a run is filled with rows that nobody finds. */
static int copy_block(struct row_copy *copy, uint32_t block)
{
	const struct unwind_table *table = copy->table;
	uint32_t first = table->blocks[block], nr = table->blocks[block + 1] - first;
	struct sonde_row before = first ? table->rows[first - 1] : (struct sonde_row){ .rule = SONDE_RULE_NONE };

	if (nr > copy->room || !copy->room) {
		struct sonde_row filler = { .low = UINT16_MAX, .rule = before.rule };
		int err;

		for (; copy->room; copy->room--)
			*row_at(copy, copy->pos++) = filler;
		err = begin_run(copy, nr, table->nr_rows - first, before);
		if (err)
			return err;
		if (nr > copy->room)
			return -EFBIG; /* a row for every address of the largest blocks: no compiler makes that */
	}
	copy->index[block] = copy->pos;
	if (nr)
		memcpy(row_at(copy, copy->pos), table->rows + first, nr * sizeof(*table->rows));
	copy->pos += nr;
	copy->room -= nr;
	return 0;
}

int table_store_load(struct table_store *store, const struct unwind_table *table, struct table_place *ret_place)
{
	CLEANUP(freep) uint32_t *index = calloc(table->nr_blocks + 1, sizeof(*index));
	struct row_copy copy = { .store = store, .table = table, .index = index };
	uint32_t index_pos;
	int err = index ? 0 : -ENOMEM;

	if (chunk_pool_bytes(store->pool) + ((uint64_t)table->nr_rows + table->nr_blocks) * 4 > TABLE_SHARE(store->options.max_bytes))
		return -ENOSPC;
	write_rules(store);
	for (uint32_t block = 0; !err && block < table->nr_blocks; block++)
		err = copy_block(&copy, block);
	if (!err)
		err = chunk_pool_cut(store->pool, table->nr_blocks + 1, &index_pos);
	if (err)
		return err;
	index[table->nr_blocks] = copy.pos;
	memcpy(chunk_pool_words(store->pool, index_pos), index, (table->nr_blocks + 1) * sizeof(*index));
	store->table_words += table->nr_blocks + 1;
	store->nr_rows += table->nr_rows;
	*ret_place = (struct table_place){
		.base_vaddr = table->base_vaddr,
		.index_pos = index_pos,
		.nr_blocks = (uint16_t)table->nr_blocks,
		.block_shift = (uint16_t)table->block_shift,
	};
	return 0;
}

static uint32_t block_words(uint32_t nr_mappings)
{
	return (uint32_t)(PROCESS_WORDS + nr_mappings * MAPPING_WORDS);
}

/* Gives the words of the process's last block back. */
static void forget_block(struct table_store *store, uint32_t tgid)
{
	const uint32_t *known = u64_map_find(&store->process_pos, tgid);
	const struct sonde_process *block;
	uint32_t pos;

	if (!known)
		return;
	pos = *known;
	block = (const struct sonde_process *)chunk_pool_words(store->pool, pos);
	chunk_pool_release(store->pool, pos, block_words(block->nr_mappings));
	u64_map_remove(&store->process_pos, tgid, pos);
}

static int set_block(struct table_store *store, const struct sonde_process *process, const struct sonde_mapping *mappings)
{
	struct sonde_process *block;
	uint32_t pos;
	int err = chunk_pool_alloc(store->pool, block_words(process->nr_mappings), &pos);

	if (err)
		return err;
	block = (struct sonde_process *)chunk_pool_words(store->pool, pos);
	*block = *process;
	block->serial = ++store->serial;
	memcpy(block + 1, mappings, process->nr_mappings * sizeof(*mappings));
	err = chunk_pool_publish(store->pool);
	if (!err)
		err = bpf_map_update_elem(store->options.processes_fd, &process->tgid, &pos, BPF_ANY);
	if (!err) {
		forget_block(store, process->tgid);
		err = u64_map_add(&store->process_pos, process->tgid, pos);
	}
	if (err)
		chunk_pool_release(store->pool, pos, block_words(process->nr_mappings));
	return err;
}

int table_store_set_process(struct table_store *store, const struct sonde_process *process, const struct sonde_mapping *mappings)
{
	struct sonde_process known = *process;
	int err;

	if (known.nr_mappings > SONDE_MAX_MAPPINGS)
		known.nr_mappings = SONDE_MAX_MAPPINGS;
	err = known.nr_mappings ? set_block(store, &known, mappings) : 0;
	if (!known.nr_mappings || err) { /* what the kernel knew of it before would be wrong now */
		bpf_map_delete_elem(store->options.processes_fd, &known.tgid); /* may not be there */
		forget_block(store, known.tgid);
	}
	return err == -E2BIG ? -ENOSPC : err; /* the map `processes` is full */
}
