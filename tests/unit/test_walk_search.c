// SPDX-License-Identifier: Apache-2.0
/* The searches of the kernel side's walk on the host, for the row of an address and the mapping of a pc: each against a linear search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "walk_host.h"

static struct walk w;
static uint64_t seed;

static uint64_t prng(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return seed >> 16 ^ seed << 41;
}

#define MAX_ROWS 4000

static struct host_row flat[MAX_ROWS];
static uint64_t flat_end; /* rel */

/* Makes random rows, from empty to crowded blocks, often across the end of a chunk. Returns their number. */
static uint32_t make_table(struct walk *walk)
{
	uint32_t nr = 1 + (uint32_t)(prng() % (prng() % 4 ? 60 : MAX_ROWS)), shift = SONDE_MIN_BLOCK_SHIFT;
	uint32_t most = 1 + (uint32_t)(prng() % 400);
	uint64_t rel = 0;

	for (uint32_t i = 0; i < nr; i++) {
		flat[i] = (struct host_row){ .rel = rel, .rule = (uint32_t)(prng() % 5) };
		rel += prng() % 8 ? 1 + prng() % most : 1 + prng() % (prng() % 8 ? 3000 : 100000);
	}
	flat_end = rel;
	shift += (uint32_t)(prng() % (SONDE_MAX_BLOCK_SHIFT - SONDE_MIN_BLOCK_SHIFT + 1));
	while (shift < SONDE_MAX_BLOCK_SHIFT && flat_end >> shift >= SONDE_MAX_BLOCKS)
		shift++;
	host_reset();
	host_used = SONDE_CHUNK_WORDS - 4 - (uint32_t)(prng() % 5000);
	host_table(flat, nr, flat_end, shift, &walk->mapping);
	return nr;
}

static uint32_t find_linear(uint32_t nr, uint64_t rel)
{
	uint32_t rule = SONDE_RULE_NONE;

	if (rel >= flat_end)
		return SONDE_RULE_NONE;
	for (uint32_t i = 0; i < nr && flat[i].rel <= rel; i++)
		rule = flat[i].rule;
	return rule;
}

static void check_rel(uint32_t nr, uint64_t rel)
{
	uint32_t got = walk_find_rule(&w, rel), want = find_linear(nr, rel);

	if (got != want)
		fail_msg("seed %llu, %u rows, rel %#llx: rule %u, should be %u", (unsigned long long)seed, nr, (unsigned long long)rel, got,
			 want);
}

static void test_row_search(void **state)
{
	for (uint64_t table = 1; table <= 3000; table++) {
		uint32_t nr;

		seed = table;
		nr = make_table(&w);
		for (uint32_t i = 0; i < 40; i++) {
			uint64_t edge = flat[prng() % nr].rel;

			check_rel(nr, edge);
			check_rel(nr, edge + 1);
			check_rel(nr, edge - 1); /* also below all rows: wraps */
			check_rel(nr, prng() % (flat_end + 10));
		}
		check_rel(nr, 0);
		check_rel(nr, flat_end - 1);
		check_rel(nr, flat_end);
		check_rel(nr, (1ULL << 32) + flat[0].rel); /* must not be cut to 32 bits */
		check_rel(nr, UINT64_MAX);
	}
}

static void check_mapping(const struct sonde_mapping *list, uint32_t nr, uint64_t pc)
{
	const struct sonde_mapping *want = NULL;
	int found;

	for (uint32_t i = 0; i < nr; i++) {
		if (pc >= list[i].start_pc && pc < list[i].end_pc)
			want = &list[i];
	}
	found = !walk_find_mapping(&w, pc); /* starts from the last mapping found */
	assert_int_equal(found, want != NULL);
	if (want)
		assert_memory_equal(&w.mapping, want, sizeof(*want));
}

static void test_mapping_search(void **state)
{
	static struct sonde_mapping list[SONDE_MAX_MAPPINGS];

	for (uint64_t table = 1; table <= 1500; table++) {
		uint64_t pc = 0x1000;
		uint32_t nr;

		seed = table;
		nr = table % 100 ? (uint32_t)(prng() % 20) : SONDE_MAX_MAPPINGS;
		for (uint32_t i = 0; i < nr; i++) {
			pc += prng() % 3 * 0x1000;
			list[i] = (struct sonde_mapping){ .start_pc = pc,
							  .end_pc = pc + (1 + prng() % 5) * 0x1000,
							  .base_pc = prng(),
							  .index_pos = (uint32_t)prng(),
							  .nr_blocks = (uint16_t)prng(),
							  .block_shift = (uint16_t)prng() };
			pc = list[i].end_pc;
		}
		host_reset();
		host_process(&w, list, nr);
		memset(&w.mapping, 0, sizeof(w.mapping));
		for (uint32_t i = 0; i < 30; i++) {
			const struct sonde_mapping *near = &list[nr ? prng() % nr : 0];

			check_mapping(list, nr, prng() % (pc + 0x2000));
			check_mapping(list, nr, near->start_pc);
			check_mapping(list, nr, near->start_pc - 1);
			check_mapping(list, nr, near->end_pc);
			check_mapping(list, nr, near->end_pc - 1);
		}
		check_mapping(list, nr, 0);
		check_mapping(list, nr, UINT64_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_row_search),
		cmocka_unit_test(test_mapping_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
