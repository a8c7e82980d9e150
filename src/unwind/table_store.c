// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_store.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/u64_map.h"
#include "unwind/chunk_pool.h"

#define MIN_RUN_WORDS 64 /* the end of a chunk is not worth less */
#define BUCKET_WORDS (sizeof(struct sonde_bucket) / 4)
#define PROCESS_WORDS (sizeof(struct sonde_process) / 4)
#define MAPPING_WORDS (sizeof(struct sonde_mapping) / 4)


struct table_store {
	struct table_store_options options;
	struct chunk_pool *pool;
	struct rule_table *rules;
	struct sonde_rule *kernel_rules;  /* the memory of the map `rules` */
	size_t kernel_rules_bytes;
	uint32_t nr_written_rules;
	struct u64_map process_pos;       /* tgid -> pos of its block */
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

/* Rows on their way into chunks: they fill runs of words, and a bucket that does not fit in the rest of a run goes on, as another, in the next. */
struct row_copy {
	struct table_store *store;
	struct sonde_bucket *index;  /* as it will stand in the kernel */
	uint32_t nr_entries;
	uint32_t rows_left;          /* not yet in a run */
	uint32_t run_pos, run_left;
};

static int begin_run(struct row_copy *copy)
{
	uint32_t room = chunk_pool_room(copy->store->pool), size = copy->rows_left;

	if (room < MIN_RUN_WORDS)
		room = SONDE_CHUNK_WORDS - 4; /* what even the first chunk has */
	if (size > room)
		size = room;
	copy->run_left = size;
	copy->rows_left -= size;
	copy->store->table_words += size;
	return chunk_pool_cut(copy->store->pool, size, &copy->run_pos);
}

static int copy_bucket(struct row_copy *copy, const struct unwind_table *table, const struct sonde_bucket *bucket)
{
	const struct sonde_row *rows = table->rows + bucket->rows_pos;

	for (uint32_t done = 0; done < bucket->nr_rows;) {
		uint32_t nr = bucket->nr_rows - done;
		struct sonde_row *to;

		if (!copy->run_left) {
			int err = begin_run(copy);

			if (err)
				return err;
		}
		if (nr > copy->run_left)
			nr = copy->run_left;
		to = (struct sonde_row *)chunk_pool_words(copy->store->pool, copy->run_pos);
		for (uint32_t i = 0; i < nr; i++)
			to[i] = (struct sonde_row){ .low = (uint16_t)(rows[done + i].low - rows[done].low), .rule = rows[done + i].rule };
		copy->index[copy->nr_entries++] = (struct sonde_bucket){
			.start_rel = bucket->start_rel + rows[done].low,
			.rows_pos = copy->run_pos,
			.nr_rows = nr,
		};
		copy->run_pos += nr;
		copy->run_left -= nr;
		done += nr;
	}
	return 0;
}

int table_store_load(struct table_store *store, const struct unwind_table *table, struct table_place *ret_place)
{
	uint32_t max_entries = table->nr_buckets + table->nr_rows / MIN_RUN_WORDS + 3, index_pos, index_words;
	CLEANUP(freep) struct sonde_bucket *index = calloc(max_entries, sizeof(*index));
	struct row_copy copy = { .store = store, .index = index, .rows_left = table->nr_rows };
	int err;

	if (!index)
		return -ENOMEM;
	write_rules(store);
	for (uint32_t i = 0; i < table->nr_buckets; i++) {
		err = copy_bucket(&copy, table, &table->buckets[i]);
		if (err)
			return err;
	}
	index[copy.nr_entries] = (struct sonde_bucket){ .start_rel = table->buckets[table->nr_buckets].start_rel };
	index_words = (copy.nr_entries + 1) * BUCKET_WORDS;
	err = chunk_pool_cut(store->pool, index_words, &index_pos);
	if (err)
		return err;
	memcpy(chunk_pool_words(store->pool, index_pos), index, index_words * 4);
	store->table_words += index_words;
	store->nr_rows += table->nr_rows;
	*ret_place = (struct table_place){ .base_vaddr = table->base_vaddr, .index_pos = index_pos, .nr_buckets = copy.nr_entries };
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

int table_store_set_process(struct table_store *store, uint32_t tgid, uint32_t generation, const struct sonde_mapping *mappings,
			    uint32_t nr_mappings)
{
	uint32_t nr = nr_mappings < SONDE_MAX_MAPPINGS ? nr_mappings : SONDE_MAX_MAPPINGS, pos;
	struct sonde_process *block;
	int err;

	if (!nr) {
		bpf_map_delete_elem(store->options.processes_fd, &tgid); /* may not be there */
		forget_block(store, tgid);
		return 0;
	}
	err = chunk_pool_alloc(store->pool, block_words(nr), &pos);
	if (err)
		return err;
	block = (struct sonde_process *)chunk_pool_words(store->pool, pos);
	*block = (struct sonde_process){ .tgid = tgid, .nr_mappings = nr, .generation = generation };
	memcpy(block + 1, mappings, nr * sizeof(*mappings));
	err = chunk_pool_publish(store->pool);
	if (!err)
		err = bpf_map_update_elem(store->options.processes_fd, &tgid, &pos, BPF_ANY);
	if (!err) {
		forget_block(store, tgid);
		err = u64_map_add(&store->process_pos, tgid, pos);
	}
	if (err)
		chunk_pool_release(store->pool, pos, block_words(nr));
	return err;
}
