// SPDX-License-Identifier: Apache-2.0
/* The table store in real BPF maps. What it writes is read back by the kernel side's own search, compiled for the host, and compared
 * with unwind_table_find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>

#include "../unit/walk_host.h"
#include "need_bpf.h"
#include "unwind/table_store.h"

#define NR_RULES 1024
#define MAX_BYTES (16u << 20)

static struct table_store_options options = { .max_rules = NR_RULES };
static struct table_store *store;
static uint64_t seed;

static uint64_t prng(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return seed >> 33;
}

static int make_chunks(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, mmapable, .map_flags = BPF_F_MMAPABLE);
	LIBBPF_OPTS(bpf_map_create_opts, outer);
	int inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_chunk", 4, SONDE_CHUNK_BYTES, 1, &mmapable), fd;

	outer.inner_map_fd = (uint32_t)inner;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "chunks", 4, 4, SONDE_MAX_CHUNKS, &outer);
	close(inner);
	return fd;
}

static int set_up(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, mmapable, .map_flags = BPF_F_MMAPABLE);
	LIBBPF_OPTS(bpf_map_create_opts, lazy, .map_flags = BPF_F_NO_PREALLOC);

	options.chunks_fd = make_chunks();
	options.rules_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "rules", 4, sizeof(struct sonde_rule), NR_RULES, &mmapable);
	options.processes_fd = bpf_map_create(BPF_MAP_TYPE_HASH, "processes", 4, 4, 64, &lazy);
	options.table_generation_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "told", 4, 8, 1, &mmapable);
	options.max_bytes = MAX_BYTES;
	memset(host_chunks, 0, sizeof(host_chunks));
	seed = 1;
	return table_store_new(&options, NULL, &store);
}

static void forget_chunk(uint32_t number)
{
	if (host_chunks[number])
		munmap((void *)host_chunks[number], SONDE_CHUNK_BYTES);
	host_chunks[number] = NULL;
}

/* Maps the chunks that the kernel has, and no others. */
static void see_chunks(void)
{
	for (uint32_t i = 0; i < HOST_MAX_CHUNKS; i++) {
		uint32_t id = 0;
		int fd;

		forget_chunk(i); /* another may be in its place */
		if (bpf_map_lookup_elem(options.chunks_fd, &i, &id))
			continue;
		fd = bpf_map_get_fd_by_id(id);
		assert_true(fd >= 0);
		host_chunks[i] = mmap(NULL, SONDE_CHUNK_BYTES, PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
		assert_ptr_not_equal(host_chunks[i], MAP_FAILED);
	}
}

static int tear_down(void **state)
{
	for (uint32_t i = 0; i < HOST_MAX_CHUNKS; i++)
		forget_chunk(i);
	table_store_free(store);
	close(options.chunks_fd);
	close(options.rules_fd);
	close(options.processes_fd);
	close(options.table_generation_fd);
	return 0;
}

static uint16_t some_rule(void)
{
	return rule_table_number(table_store_rules(store),
				 &(struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_off = 8 * (int32_t)(prng() % 1000) }, 0);
}

/* Makes a table of random rows, at most `most` apart. */
static struct unwind_table make_table(uint32_t nr_rows, uint32_t most)
{
	struct unwind_table table = { .rows = calloc(nr_rows, sizeof(struct sonde_row)),
				      .nr_rows = nr_rows,
				      .block_shift = SONDE_MIN_BLOCK_SHIFT };
	uint32_t *rels = calloc(nr_rows, sizeof(*rels)), row = 0;

	assert_true(table.rows && rels);
	table.rules = table_store_rules(store);
	for (uint32_t i = 1; i < nr_rows; i++)
		rels[i] = rels[i - 1] + 1 + (uint32_t)(prng() % most);
	while (rels[nr_rows - 1] >> table.block_shift >= SONDE_MAX_BLOCKS)
		table.block_shift++;
	table.base_vaddr = (1 + prng() % 1000) << 16;
	table.nr_blocks = (rels[nr_rows - 1] >> table.block_shift) + 1;
	table.blocks = calloc(table.nr_blocks + 1, sizeof(*table.blocks));
	assert_non_null(table.blocks);
	for (uint32_t block = 0; block < table.nr_blocks; block++) {
		table.blocks[block] = row;
		for (; row < nr_rows && rels[row] >> table.block_shift == block; row++)
			table.rows[row] = (struct sonde_row){ .low = (uint16_t)(rels[row] & ((1u << table.block_shift) - 1)),
							      .rule = row + 1 < nr_rows ? some_rule() : SONDE_RULE_NONE };
	}
	table.blocks[table.nr_blocks] = nr_rows;
	rule_table_hold(table.rules, table.rows, nr_rows);
	free(rels);
	return table;
}

static void free_table(struct unwind_table *table)
{
	rule_table_drop(table->rules, table->rows, table->nr_rows);
	free(table->rows);
	free(table->blocks);
}

static void check_rel(struct walk *w, const struct unwind_table *table, uint64_t rel)
{
	uint32_t got = walk_find_rule(w, rel), want = unwind_table_find(table, table->base_vaddr + rel);

	if (got != want)
		fail_msg("%u rows, rel %#llx: rule %u, should be %u", table->nr_rows, (unsigned long long)rel, got, want);
}

/* Checks every row's first address and its neighbours. */
static void check_table(const struct unwind_table *table, const struct table_location *place)
{
	struct walk *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(place->base_vaddr, table->base_vaddr);
	w->mapping =
	    (struct sonde_mapping){ .index_pos = place->index_pos, .nr_blocks = place->nr_blocks, .block_shift = place->block_shift };
	for (uint32_t block = 0; block < table->nr_blocks; block++) {
		uint64_t start = (uint64_t)block << table->block_shift;

		check_rel(w, table, start);
		check_rel(w, table, start + (1u << table->block_shift) - 1);
		for (uint32_t row = table->blocks[block]; row < table->blocks[block + 1]; row++) {
			check_rel(w, table, start + table->rows[row].low);
			check_rel(w, table, start + table->rows[row].low + 1);
			if (start + table->rows[row].low)
				check_rel(w, table, start + table->rows[row].low - 1);
		}
	}
	check_rel(w, table, (uint64_t)table->nr_blocks << table->block_shift);
	free(w);
}

static int set_process(uint32_t tgid, uint32_t generation, const struct sonde_mapping *mappings, uint32_t nr_mappings)
{
	const struct sonde_process process = { .tgid = tgid, .generation = generation, .nr_mappings = nr_mappings, .known_ns = 1 };

	return table_store_set_process(store, &process, mappings);
}

/* Chunks reach the kernel with the first process that needs them. */
static void publish(void)
{
	const struct sonde_mapping mapping = { .start_pc = 0x1000, .end_pc = 0x2000 };

	assert_int_equal(set_process(1, 1, &mapping, 1), 0);
	see_chunks();
}

/* From tables that share a chunk to tables that need several. */
static void test_tables(void **state)
{
	static const struct {
		uint32_t nr_rows, most;
	} kinds[] = { { 1, 1 },	    { 2, 9000 },  { 300, 30 },	 { 5000, 12 },	  { 40000, 10 },   { 3000, 20000 }, { 200000, 12 },
		      { 65530, 6 }, { 65533, 6 }, { 131070, 6 }, { 700, 100000 }, { 4096 * 3, 1 }, { 70000, 3000 } };
	enum { NR_TABLES = 3 * sizeof(kinds) / sizeof(kinds[0]) };
	struct unwind_table tables[NR_TABLES];
	struct table_location places[NR_TABLES];

	for (uint32_t i = 0; i < NR_TABLES; i++) {
		tables[i] = make_table(kinds[i % (NR_TABLES / 3)].nr_rows, kinds[i % (NR_TABLES / 3)].most);
		assert_int_equal(table_store_load(store, &tables[i], &places[i]), 0);
	}
	publish();
	assert_true(table_store_bytes(store) > 4 * SONDE_CHUNK_BYTES);
	for (uint32_t i = 0; i < NR_TABLES; i++) {
		check_table(&tables[i], &places[i]);
		free_table(&tables[i]);
		table_location_done(&places[i]);
	}
}

/* Checks that no bytes are used any more, and only the predefined rules. */
static void check_all_free(void)
{
	uint32_t nr;

	assert_int_equal(table_store_settle(store), 0);
	assert_int_equal(table_store_used_bytes(store), 0);
	assert_true(table_store_bytes(store) <= SONDE_CHUNK_BYTES); /* the first one, as position 0 is never free */
	rule_table_rules(table_store_rules(store), &nr);
	assert_int_equal(rule_table_nr_used(table_store_rules(store)), SONDE_RULE_FIRST_FREE);
}

/* A stored table wastes little: about a twentieth, the rest is rows and index. */
static void test_little_waste(void **state)
{
	static const struct {
		uint32_t nr_rows, most;
	} kinds[] = { { 300, 30 }, { 5000, 90 }, { 28000, 90 }, { 372000, 80 }, { 900000, 60 } };

	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct unwind_table table = make_table(kinds[i].nr_rows, kinds[i].most);
		struct table_location place;
		uint64_t nr_words = table.nr_rows + table.nr_blocks * 2;

		assert_int_equal(table_store_load(store, &table, &place), 0);
		assert_true(table_store_table_bytes(store) >= nr_words * 4);
		if (place.nr_words > nr_words + nr_words / 20 + 16)
			fail_msg("%u rows in %u blocks take %u words", table.nr_rows, table.nr_blocks, place.nr_words);
		table_store_unload(store, &place);
		assert_int_equal(table_store_table_bytes(store), 0);
		free_table(&table);
	}
}

/* A row for each address, more in a block than a chunk holds: refused. The next tables are complete. */
static void test_crowded_block(void **state)
{
	struct unwind_table crowded = make_table(2, 1), plain = make_table(3000, 10);
	struct table_location place;

	rule_table_drop(crowded.rules, crowded.rows, crowded.nr_rows);
	free(crowded.rows);
	crowded.nr_rows = 70000;
	crowded.rows = calloc(crowded.nr_rows, sizeof(*crowded.rows));
	rule_table_hold(crowded.rules, crowded.rows, crowded.nr_rows);
	crowded.block_shift = SONDE_MAX_BLOCK_SHIFT;
	crowded.blocks[1] = crowded.nr_rows;
	assert_int_equal(table_store_load(store, &crowded, &place), -EFBIG);
	assert_int_equal(table_store_table_bytes(store), 0);
	assert_int_equal(table_store_load(store, &plain, &place), 0);
	publish();
	check_table(&plain, &place);
	free_table(&crowded);
	free_table(&plain);
	table_location_done(&place);
}

/* More tables than fit are added and removed at random, with processes, whose blocks lie between. What is stored is found complete. At
 * the end nothing is missing. */
static void test_tables_come_and_go(void **state)
{
	enum { NR_TABLES = 24 };
	struct unwind_table tables[NR_TABLES];
	struct table_location places[NR_TABLES] = { 0 };
	static struct sonde_mapping mappings[1600];
	uint32_t nr_loads = 0, nr_full = 0, nr_parts = 0;

	table_store_free(store);
	options.max_bytes = 8 * SONDE_CHUNK_BYTES;
	assert_int_equal(table_store_new(&options, NULL, &store), 0);
	for (uint32_t i = 0; i < NR_TABLES; i++)
		tables[i] = make_table(1 + (uint32_t)(prng() % (prng() % 3 ? 20000 : 200000)), 1 + (uint32_t)(prng() % 100));
	for (uint32_t turn = 0; turn < 300; turn++) {
		uint32_t i = (uint32_t)(prng() % NR_TABLES);

		if (prng() % 2) {
			int err = set_process(1 + (uint32_t)(prng() % 40), turn, mappings, (uint32_t)(prng() % 1600));

			assert_true(!err || err == -ENOSPC);
		}
		if (places[i].nr_blocks) {
			see_chunks();
			check_table(&tables[i], &places[i]);
			table_store_unload(store, &places[i]);
		} else {
			int err = table_store_load(store, &tables[i], &places[i]);

			assert_true(!err || err == -ENOSPC);
			publish();
			nr_full += err != 0;
			nr_loads += !err;
			nr_parts += places[i].nr_parts;
		}
		assert_true(table_store_bytes(store) <= options.max_bytes);
	}
	assert_true(nr_loads > 60 && nr_full > 20 && nr_parts > 3 * nr_loads); /* else the test proves nothing */
	for (uint32_t i = 0; i < NR_TABLES; i++) {
		if (places[i].nr_blocks)
			check_table(&tables[i], &places[i]);
		table_store_unload(store, &places[i]);
		free_table(&tables[i]);
	}
	for (uint32_t tgid = 1; tgid <= 40; tgid++)
		assert_int_equal(set_process(tgid, 1, NULL, 0), 0);
	assert_int_equal(table_store_table_bytes(store), 0);
	assert_int_equal(table_store_rows(store), 0);
	check_all_free();
}

/* At the cap tables are refused. Processes are still stored. */
static void test_cap(void **state)
{
	struct unwind_table table = make_table(100000, 12);
	struct sonde_mapping mappings[100] = { { 0 } };
	struct table_location place, first;
	uint32_t nr = 0, pos;
	int err;

	assert_int_equal(table_store_load(store, &table, &first), 0);
	while (!(err = table_store_load(store, &table, &place)))
		assert_true(nr++ < 1000 && (table_location_done(&place), true));
	assert_int_equal(err, -ENOSPC);
	assert_true(table_store_bytes(store) <= MAX_BYTES);
	for (uint32_t tgid = 1; tgid <= 60; tgid++)
		assert_int_equal(set_process(tgid, 1, mappings, 100), 0);
	for (uint32_t tgid = 61; tgid <= 200 && !err; tgid++)
		err = set_process(tgid, 1, mappings, 100);
	assert_int_equal(err, -ENOSPC); /* the map holds 64 */
	assert_int_not_equal(bpf_map_lookup_elem(options.processes_fd, &(uint32_t){ 199 }, &pos), 0);
	see_chunks();
	check_table(&table, &first);
	assert_true(table_store_bytes(store) <= MAX_BYTES);
	free_table(&table);
	table_location_done(&first);
}

static uint64_t nr_told(void)
{
	uint64_t nr = 0;

	assert_int_equal(bpf_map_lookup_elem(options.table_generation_fd, &(uint32_t){ 0 }, &nr), 0);
	return nr;
}

/* What the kernel side remembers of walks is valid while the generation is unchanged. Each change of a process's entry gives another
 * number, and nothing else does. */
static void test_told(void **state)
{
	struct sonde_mapping mappings[2] = { { 0 } };
	struct unwind_table table = make_table(1000, 12);
	struct table_location place;

	assert_int_equal(nr_told(), 0);
	assert_int_equal(set_process(7, 1, mappings, 2), 0);
	assert_int_equal(nr_told(), 1);
	assert_int_equal(set_process(7, 1, mappings, 2), 0);
	assert_int_equal(nr_told(), 2);
	assert_int_equal(table_store_load(store, &table, &place), 0);
	table_store_unload(store, &place);
	assert_int_equal(nr_told(), 2); /* no process uses it */
	assert_int_equal(set_process(7, 2, mappings, 0), 0);
	assert_int_equal(nr_told(), 3);
	free_table(&table);
}

static const struct sonde_process *block_of(uint32_t tgid)
{
	uint32_t pos;

	if (bpf_map_lookup_elem(options.processes_fd, &tgid, &pos))
		return NULL;
	see_chunks();
	assert_non_null(chunk_at(NULL, pos));
	return (const struct sonde_process *)&CHUNK_WORD(chunk_at(NULL, pos), pos);
}

/* Blocks are replaced thousands of times. Their words are freed, and nobody else's are written to. */
static void test_processes_come_and_go(void **state)
{
	static struct sonde_mapping mappings[40];
	uint32_t sizes[50] = { 0 }, generations[50] = { 0 }, serials[50] = { 0 }, serial = 0;

	for (uint32_t turn = 1; turn <= 20000; turn++) {
		uint32_t tgid = (uint32_t)(prng() % 50), nr = (uint32_t)(prng() % 41);

		for (uint32_t i = 0; i < nr; i++)
			mappings[i] = (struct sonde_mapping){ .start_pc = tgid * 1000 + i, .base_pc = turn };
		assert_int_equal(set_process(tgid, turn, mappings, nr), 0);
		sizes[tgid] = nr;
		generations[tgid] = turn;
		if (turn % 100)
			continue;
		for (tgid = 0; tgid < 50; tgid++) {
			const struct sonde_process *block = block_of(tgid);
			const struct sonde_mapping *list = (const void *)(block + 1);

			assert_int_equal(!!block, sizes[tgid] != 0);
			if (!block)
				continue;
			assert_int_equal(block->tgid, tgid);
			assert_int_equal(block->nr_mappings, sizes[tgid]);
			assert_int_equal(block->generation, generations[tgid]);
			assert_int_not_equal(block->serial, 0);
			if (serials[tgid] == block->serial)
				assert_true(block->serial <= serial);
			serials[tgid] = block->serial;
			serial = block->serial > serial ? block->serial : serial;
			for (uint32_t i = 0; i < sizes[tgid]; i++) {
				assert_int_equal(list[i].start_pc, tgid * 1000 + i);
				assert_int_equal(list[i].base_pc, generations[tgid]);
			}
		}
	}
	assert_true(table_store_bytes(store) <= 4 * SONDE_CHUNK_BYTES);
}

/* A process that finds no room any more is not left with its old mappings. */
static void test_no_room_for_a_process(void **state)
{
	struct sonde_mapping *mappings = calloc(SONDE_MAX_MAPPINGS, sizeof(*mappings));

	assert_non_null(mappings);
	table_store_free(store);
	options.max_bytes = SONDE_CHUNK_BYTES;
	assert_int_equal(table_store_new(&options, NULL, &store), 0);
	assert_int_equal(set_process(5, 1, mappings, 10), 0);
	assert_int_equal(block_of(5)->nr_mappings, 10);
	assert_int_equal(set_process(5, 2, mappings, SONDE_MAX_MAPPINGS), -ENOSPC);
	assert_null(block_of(5));
	assert_int_equal(set_process(5, 3, mappings, 10), 0);
	assert_int_equal(block_of(5)->generation, 3);
	free(mappings);
}

static void test_too_many_mappings(void **state)
{
	struct sonde_mapping *mappings = calloc(SONDE_MAX_MAPPINGS + 10, sizeof(*mappings));

	assert_non_null(mappings);
	assert_int_equal(set_process(5, 1, mappings, SONDE_MAX_MAPPINGS + 10), 0);
	assert_int_equal(block_of(5)->nr_mappings, SONDE_MAX_MAPPINGS);
	assert_int_equal(set_process(5, 2, NULL, 0), 0);
	assert_null(block_of(5));
	assert_int_equal(set_process(5, 2, NULL, 0), 0); /* no longer stored */
	free(mappings);
}

static void test_rules_reach_the_kernel(void **state)
{
	struct unwind_table table = make_table(10, 10);
	struct sonde_rule rule = { .kind = SONDE_RULE_KIND_STEP, .cfa_off = 4711 }, seen;
	uint32_t number = rule_table_number(table_store_rules(store), &rule, 0);
	struct table_location place;

	assert_int_equal(table_store_load(store, &table, &place), 0);
	assert_int_equal(bpf_map_lookup_elem(options.rules_fd, &number, &seen), 0);
	assert_memory_equal(&seen, &rule, sizeof(rule));
	free_table(&table);
	table_location_done(&place);
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_tables),
		test(test_little_waste),
		test(test_crowded_block),
		test(test_tables_come_and_go),
		test(test_cap),
		test(test_told),
		test(test_processes_come_and_go),
		test(test_no_room_for_a_process),
		test(test_too_many_mappings),
		test(test_rules_reach_the_kernel),
	};

	need_bpf();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
