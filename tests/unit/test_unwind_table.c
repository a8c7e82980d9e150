// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "elf_image.h"
#include "unwind/spans.h"
#include "unwind/unwind_table.h"

#define EH_FRAME_VADDR 0x1000u

static struct bytes image, eh_frame, debug_frame;
static struct rule_table *rules;
static size_t cie;

static int set_up(void **state)
{
	rules = rule_table_new(SONDE_MAX_RULES);
	eh_frame.size = debug_frame.size = 0;
	cie = put_gcc_cie(&eh_frame);
	return !rules;
}

static int tear_down(void **state)
{
	rule_table_free(rules);
	return 0;
}

/* An FDE with one row: CFA = sp + cfa_off. */
static void put_fde(uint64_t start_vaddr, uint32_t size, uint8_t cfa_off)
{
	const uint8_t program[] = { 0x0e, cfa_off };

	put_gcc_fde(&eh_frame, EH_FRAME_VADDR, cie, start_vaddr, size, program, sizeof(program));
}

static int build_sections(const struct image_section *sections, size_t nr, struct unwind_table **ret_table)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;

	image_make(&image, NULL, 0, sections, nr);
	assert_int_equal(elf_file_open_memory(image.data, image.size, NULL, &elf), 0);
	return unwind_table_build(elf, rules, NULL, ret_table);
}

static int build(struct unwind_table **ret_table)
{
	const struct image_section section = { ".eh_frame", SHT_PROGBITS, EH_FRAME_VADDR, eh_frame.data, eh_frame.size };

	return build_sections(&section, 1, ret_table);
}

/* Checks what the kernel side relies on. */
static void check_form(const struct unwind_table *table)
{
	uint32_t nr_rules, block_size = 1u << table->block_shift;

	rule_table_rules(rules, &nr_rules);
	assert_in_range(table->block_shift, SONDE_MIN_BLOCK_SHIFT, SONDE_MAX_BLOCK_SHIFT);
	assert_in_range(table->nr_blocks, 1, SONDE_MAX_BLOCKS);
	assert_int_equal(table->base_vaddr % block_size, 0);
	assert_int_equal(table->rows[0].low, 0);
	assert_int_equal(table->rows[table->nr_rows - 1].rule, SONDE_RULE_NONE);
	assert_int_equal(table->blocks[0], 0);
	assert_int_equal(table->blocks[table->nr_blocks], table->nr_rows);
	for (uint32_t block = 0; block < table->nr_blocks; block++) {
		assert_true(table->blocks[block] <= table->blocks[block + 1]);
		for (uint32_t row = table->blocks[block]; row < table->blocks[block + 1]; row++) {
			assert_true(table->rows[row].rule < nr_rules);
			assert_true(table->rows[row].low < block_size);
			assert_true(row == table->blocks[block] || table->rows[row].low > table->rows[row - 1].low);
			assert_true(!row || table->rows[row].rule != table->rows[row - 1].rule);
		}
	}
}

/* The rules from `start` to `end` as text, one part per change: "2000:16 2010:- 2020:24". */
static const char *text_of(const struct unwind_table *table, uint64_t start, uint64_t end)
{
	static char text[4096];
	size_t size = 0;
	uint32_t nr_rules, last = UINT32_MAX;
	const struct sonde_rule *all = rule_table_rules(rules, &nr_rules);

	check_form(table);
	text[0] = '\0';
	for (uint64_t vaddr = start; vaddr < end; vaddr++) {
		uint16_t number = unwind_table_find(table, vaddr);
		char what[16] = "-";

		if (number == last)
			continue;
		last = number;
		if (number >= SONDE_RULE_FIRST_FREE)
			snprintf(what, sizeof(what), "%d", all[number].cfa_off);
		else if (number)
			snprintf(what, sizeof(what), "#%u", number);
		size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%llx:%s", size ? " " : "", (unsigned long long)vaddr, what);
		assert_true(size < sizeof(text));
	}
	return text;
}

static void fdes_are_sorted_and_gaps_are_rows(void **state)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;

	put_fde(0x3000, 0x10, 32);
	put_fde(0x2000, 0x10, 16);
	put_fde(0x2020, 0x10, 24);
	assert_int_equal(build(&table), 0);
	assert_int_equal(table->base_vaddr, 0x2000);
	assert_int_equal(table->nr_rows, 6);
	assert_string_equal(text_of(table, 0x1ff0, 0x3020), "1ff0:- 2000:16 2010:- 2020:24 2030:- 3000:32 3010:-");
}

static void equal_neighbours_are_one_row(void **state)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	uint32_t nr_rules;

	put_fde(0x2000, 0x10, 16);
	put_fde(0x2010, 0x10, 16);
	put_fde(0x2020, 0x10, 24);
	put_fde(0x2030, 0x10, 16);
	assert_int_equal(build(&table), 0);
	assert_int_equal(table->nr_rows, 4);
	assert_string_equal(text_of(table, 0x2000, 0x2041), "2000:16 2020:24 2030:16 2040:-");
	rule_table_rules(rules, &nr_rules);
	assert_int_equal(nr_rules, SONDE_RULE_FIRST_FREE + 2);
}

static void the_earlier_of_overlapping_fdes_wins(void **state)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;

	put_fde(0x2010, 0x10, 16); /* cuts the next in two */
	put_fde(0x2000, 0x40, 24);
	put_fde(0x2030, 0x20, 32); /* splits the next one */
	put_fde(0x2044, 0x04, 40); /* loses its start */
	put_fde(0x2000, 0x08, 48); /* also loses all, at an equal start */
	assert_int_equal(build(&table), 0);
	assert_string_equal(text_of(table, 0x2000, 0x2051), "2000:24 2010:16 2020:24 2040:32 2050:-");
}

static void dropped_fdes_leave_no_trace(void **state)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;

	put_fde(0x2000, 0x10, 16);
	put_fde(0x2010, 0, 24);
	put_fde(EH_FRAME_VADDR + eh_frame.size + 8, 0x10, 24); /* a pcrel of 0 */
	put_fde(0, 0x10, 24);
	assert_int_equal(build(&table), 0);
	assert_int_equal(table->nr_rows, 2);
	assert_int_equal(table->base_vaddr, 0x2000);
}

static void a_damaged_fde_is_one_unsupported_row(void **state)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;

	put_fde(0x2000, 0x10, 16);
	put_gcc_fde(&eh_frame, EH_FRAME_VADDR, cie, 0x2010, 0x10, "\x41\x0e\x20\x41\x0e\x28\x41\x3f", 8);
	put_fde(0x2020, 0x10, 16);
	assert_int_equal(build(&table), 0);
	assert_int_equal(table->nr_bad_fdes, 1);
	assert_int_equal(table->nr_unsupported, 1);
	assert_string_equal(text_of(table, 0x2000, 0x2031), "2000:16 2010:#3 2020:16 2030:-");
}

static void blocks_index_rows_by_address(void **state)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;

	for (uint32_t i = 0; i < 600; i++)
		put_fde(0x2010 + i * 16, 16, i % 2 ? 16 : 24);
	put_fde(0x20000, 0x100000, 32); /* one row that spans many blocks */
	put_fde(0x120000, 0x10, 24);
	assert_int_equal(build(&table), 0);
	check_form(table);
	assert_int_equal(table->base_vaddr, 0x2000);
	assert_int_equal(table->nr_rows, 1 + 600 + 1 + 1 + 1 + 1); /* before, the small ones, a gap, the long one, the last, after */
	assert_int_equal(table->nr_blocks, 0x11f);
	assert_int_equal(table->blocks[1], 1 + 255);
	assert_int_equal(table->blocks[0x1f], table->blocks[0x11e]); /* no row starts in between */
	assert_int_equal(unwind_table_find(table, 0x200f), SONDE_RULE_NONE);
	assert_int_equal(unwind_table_find(table, 0x20000), unwind_table_find(table, 0x11ffff));
	assert_int_not_equal(unwind_table_find(table, 0x20000), unwind_table_find(table, 0x120000));
	for (uint32_t i = 0; i < 600; i++)
		assert_int_equal(unwind_table_find(table, 0x2010 + i * 16 + 15), unwind_table_find(table, 0x2010 + i % 2 * 16));
}

static void blocks_grow_with_the_file(void **state)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;

	put_fde(0x2000, 0x10, 16);
	put_fde(0x38000000, 0x10, 24); /* 0.9 GiB farther */
	assert_int_equal(build(&table), 0);
	check_form(table);
	assert_int_equal(table->block_shift, 15);
	assert_int_equal(unwind_table_find(table, 0x37ffffff), SONDE_RULE_WIDE);
	assert_int_not_equal(unwind_table_find(table, 0x38000000), SONDE_RULE_NONE);
	assert_int_equal(unwind_table_find(table, 0x38000010), SONDE_RULE_NONE);
}

static void put_debug_frame(uint64_t start_vaddr, uint64_t size)
{
	static const uint8_t body[] = { 3, 0, 1, 0x78, 16, 0x0c, 7, 48, 0x90, 1 };
	size_t start = debug_frame.size;

	put_u32(&debug_frame, 0);
	put_u32(&debug_frame, UINT32_MAX);
	put(&debug_frame, body, sizeof(body));
	close_entry(&debug_frame, start);
	put_u32(&debug_frame, 20);
	put_u32(&debug_frame, (uint32_t)start);
	put_u64(&debug_frame, start_vaddr);
	put_u64(&debug_frame, size);
}

static void debug_frame_fills_in(void **state)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	struct image_section sections[] = {
		{ ".eh_frame", SHT_PROGBITS, EH_FRAME_VADDR, eh_frame.data, 0 },
		{ ".debug_frame", SHT_PROGBITS, 0, debug_frame.data, 0 },
	};

	put_fde(0x2000, 0x10, 16);
	put_debug_frame(0x2008, 0x18);
	sections[0].size = eh_frame.size;
	sections[1].size = debug_frame.size;
	assert_int_equal(build_sections(sections, 2, &table), 0);
	assert_string_equal(text_of(table, 0x2000, 0x2021), "2000:16 2010:48 2020:-");
	unwind_table_free(MOVE(table));

	sections[0].type = SHT_NOBITS; /* a separate debug file */
	assert_int_equal(build_sections(sections, 2, &table), 0);
	assert_string_equal(text_of(table, 0x2000, 0x2021), "2000:- 2008:48 2020:-");
	unwind_table_free(MOVE(table));

	sections[0].type = SHT_PROGBITS; /* damage to the second does not affect the first */
	sections[1].size--;
	assert_int_equal(build_sections(sections, 2, &table), 0);
	assert_string_equal(text_of(table, 0x2000, 0x2021), "2000:16 2010:-");
}

static void without_section_headers_the_header_leads(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	const uint64_t hdr_vaddr = EH_FRAME_VADDR + IMAGE_CONTENT_OFF;
	struct bytes *content = &debug_frame;
	Elf64_Phdr phdrs[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = EH_FRAME_VADDR },
		{ .p_type = PT_GNU_EH_FRAME, .p_offset = IMAGE_CONTENT_OFF, .p_vaddr = hdr_vaddr, .p_filesz = 8 },
	};
	struct image_section section = { ".rodata", SHT_PROGBITS, 0, content->data, 0 };
	Elf64_Ehdr header;

	/* .eh_frame_hdr of eight bytes, then .eh_frame, here pcrel to hdr_vaddr + 8, without a terminator, then other data */
	put(content, "\x01\x1b\xff\xff\x04\0\0\0", 8);
	eh_frame.size = 0;
	cie = put_gcc_cie(&eh_frame);
	put_gcc_fde(&eh_frame, hdr_vaddr + 8, cie, 0x2000, 0x10, "\x0e\x10", 2);
	put(content, eh_frame.data, eh_frame.size);
	put(content, "\xee\xee\xee\x7f, and so on", 14);
	section.size = content->size;
	phdrs[0].p_filesz = phdrs[0].p_memsz = IMAGE_CONTENT_OFF + content->size;
	image_make(&image, phdrs, 2, &section, 1);
	memcpy(&header, image.data, sizeof(header));
	header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	memcpy(image.data, &header, sizeof(header));
	assert_int_equal(elf_file_open_memory(image.data, image.size, NULL, &elf), 0);
	assert_int_equal(unwind_table_build(elf, rules, NULL, &table), 0);
	assert_string_equal(text_of(table, 0x1fff, 0x2011), "1fff:- 2000:16 2010:-");
}

static void what_cannot_be_built_says_why(void **state)
{
	struct unwind_table *table = NULL;
	struct image_section text = { ".text", SHT_PROGBITS, 0x2000, "code", 4 };

	assert_int_equal(build(&table), -ENODATA); /* a CIE and no FDE */
	assert_int_equal(build_sections(&text, 1, &table), -ENODATA);
	put_fde(0x2000, 0x10, 16);
	eh_frame.data[eh_frame.size - 19] ^= 0x40; /* the length of the FDE, its first byte */
	assert_int_equal(build(&table), -EBADMSG);
	eh_frame.size = 0;
	cie = put_gcc_cie(&eh_frame);
	put_fde(0x2000, 0x10, 16);
	put_fde(0x60000000, 0x1fffffff, 16);
	assert_int_equal(build(&table), 0);
	unwind_table_free(MOVE(table));
	put_fde(0xf0000000u - 0x100000000, 0x10, 16); /* more than 2 GiB away from the others */
	assert_int_equal(build(&table), -EFBIG);
	assert_null(table);
}

struct span_model {
	uint64_t start;
	uint32_t size, nr_rows;
	uint32_t offs[8];
	uint16_t numbers[8];
};

static uint32_t random_below(uint64_t *seed, uint32_t bound)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*seed >> 33) % bound;
}

static struct span_model give_random_span(struct spans *spans, uint64_t *seed)
{
	struct span_model model = { .start = 1000 + random_below(seed, 300), .size = 1 + random_below(seed, 60) };

	for (uint32_t off = 0; off < model.size && model.nr_rows < 8; off += 1 + random_below(seed, 12)) {
		struct sonde_rule rule = { .kind = SONDE_RULE_KIND_STEP, .cfa_off = (int32_t)random_below(seed, 4) };

		model.offs[model.nr_rows] = off;
		model.numbers[model.nr_rows++] = rule_table_number(rules, &rule, 0);
		assert_int_equal(spans_take_row(spans, model.start + off, &rule), 0);
	}
	assert_int_equal(spans_take_row(spans, model.start + model.size, NULL), 0);
	return model;
}

struct painting {
	uint64_t at;
	uint32_t nr_rows;
	uint16_t rule, rules[512];
};

static void paint_to(struct painting *painting, uint64_t vaddr)
{
	assert_true(vaddr >= painting->at && vaddr < 1512);
	while (painting->at < vaddr)
		painting->rules[painting->at++ - 1000] = painting->rule;
}

static int paint(void *arg, const struct span_piece *piece)
{
	struct painting *painting = arg;

	for (uint32_t i = 0; i < piece->nr_rows; i++) {
		paint_to(painting, i ? piece->base_vaddr + piece->rows[i].off : piece->from_vaddr);
		painting->rule = piece->rows[i].rule;
		painting->nr_rows++;
	}
	return 0;
}

static void any_overlap_agrees_with_a_painting(void **state)
{
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		CLEANUP(spans_done) struct spans spans = { .rules = rules };
		struct painting got = { .at = 1000 };
		uint16_t want[512] = { 0 };
		struct span_model models[16];
		uint32_t nr = 1 + (uint32_t)seed % 16;
		uint64_t random = seed, start, end;

		for (uint32_t i = 0; i < nr; i++)
			models[i] = give_random_span(&spans, &random);
		for (uint32_t i = nr; i-- > 0;) {
			for (uint32_t row = 0, off = 0; off < models[i].size; off++) {
				if (row + 1 < models[i].nr_rows && models[i].offs[row + 1] == off)
					row++;
				want[models[i].start + off - 1000] = models[i].numbers[row];
			}
		}
		spans_range(&spans, &start, &end);
		assert_int_equal(spans_each(&spans, paint, &got), 0);
		assert_true(got.nr_rows <= spans_max_rows(&spans));
		paint_to(&got, end);
		assert_memory_equal(got.rules, want, sizeof(want));
	}
}

static void rules_are_numbered_once(void **state)
{
	struct rule_table *table = rule_table_new(SONDE_RULE_FIRST_FREE + 100);
	uint32_t nr;

	for (int round = 0; round < 2; round++) {
		for (int32_t i = 0; i < 100; i++) {
			struct sonde_rule rule = { .kind = SONDE_RULE_KIND_STEP, .cfa_off = i / 2, .bp_off = i % 2 };

			assert_int_equal(rule_table_number(table, &rule, 0), SONDE_RULE_FIRST_FREE + i);
		}
	}
	assert_int_equal(rule_table_nr_refused(table), 0);
	assert_int_equal(rule_table_number(table, &(struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .ra_off = 1 }, 0),
			 SONDE_RULE_UNSUPPORTED);
	assert_int_equal(rule_table_nr_refused(table), 1);
	assert_int_equal(rule_table_number(table, &(struct sonde_rule){ .kind = SONDE_RULE_KIND_NONE }, 0), SONDE_RULE_NONE);
	assert_int_equal(rule_table_number(table, &(struct sonde_rule){ .kind = SONDE_RULE_KIND_END }, 0), SONDE_RULE_END);
	assert_int_equal(rule_table_number(table, &(struct sonde_rule){ .kind = SONDE_RULE_KIND_SIGNAL }, 0), SONDE_RULE_SIGNAL);
	assert_int_equal(rule_table_number(table, &(struct sonde_rule){ .kind = SONDE_RULE_KIND_UNSUPPORTED }, 0), SONDE_RULE_UNSUPPORTED);
	assert_int_equal(rule_table_rules(table, &nr)[SONDE_RULE_FIRST_FREE + 99].cfa_off, 49);
	assert_int_equal(nr, SONDE_RULE_FIRST_FREE + 100);
	rule_table_free(table);
}

/* Rules are added and released with rows at random, next to a model of the holders. A number that is held or not settled yet keeps its
 * rule. Equal rules have one number. Rules without a holder make room. */
static void rules_come_and_go(void **state)
{
	enum { NR_KINDS = 60, ROOM = 40, NR_HOLDERS = 8, NR_ROWS = 5 };
	struct rule_table *table = rule_table_new(SONDE_RULE_FIRST_FREE + ROOM);
	struct sonde_row rows[NR_HOLDERS][NR_ROWS] = { 0 };
	int32_t wanted[NR_HOLDERS][NR_ROWS] = { 0 };
	uint32_t nr, nr_refused = 0;
	uint64_t seed = 1;

	for (uint32_t turn = 0; turn < 20000; turn++) {
		uint32_t holder = random_below(&seed, NR_HOLDERS);

		rule_table_drop(table, rows[holder], NR_ROWS);
		for (uint32_t i = 0; i < NR_ROWS; i++) {
			struct sonde_rule rule = { .kind = SONDE_RULE_KIND_STEP, .cfa_off = 8 * (int32_t)random_below(&seed, NR_KINDS) };

			rows[holder][i].rule = rule_table_number(table, &rule, 0);
			wanted[holder][i] = rule.cfa_off;
		}
		rule_table_hold(table, rows[holder], NR_ROWS);
		if (!random_below(&seed, 4))
			rule_table_settle(table);
		for (uint32_t i = 0; i < NR_HOLDERS * NR_ROWS; i++) {
			uint16_t number = rows[i / NR_ROWS][i % NR_ROWS].rule;
			const struct sonde_rule *rule = &rule_table_rules(table, &nr)[number];

			if (number < SONDE_RULE_FIRST_FREE)
				continue;
			assert_int_equal(rule->kind, SONDE_RULE_KIND_STEP);
			assert_int_equal(rule->cfa_off, wanted[i / NR_ROWS][i % NR_ROWS]);
			assert_int_equal(rule_table_number(table, rule, 0), number);
		}
	}
	nr_refused = rule_table_nr_refused(table);
	assert_true(nr_refused && nr_refused < 20000);
	for (uint32_t holder = 0; holder < NR_HOLDERS; holder++)
		rule_table_drop(table, rows[holder], NR_ROWS);
	rule_table_settle(table);
	assert_int_equal(rule_table_nr_used(table), SONDE_RULE_FIRST_FREE);
	for (int32_t i = 0; i < ROOM; i++)
		rule_table_number(table, &(struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .bp_off = i }, 0);
	assert_int_equal(rule_table_nr_refused(table), nr_refused); /* all numbers are free again */
	rule_table_free(table);
}

/* A user has a share, all users together have another, root has the rest. Numbers given back are available again. */
static void users_have_shares(void **state)
{
	enum { MAX = 8000, OF_USER = MAX / 8 * 3, OF_USERS = MAX / 4 * 3 };
	struct rule_table *table = rule_table_new(MAX);
	struct sonde_row rows[OF_USER];

	assert_int_equal(rule_table_room(table, 1000).of_user, OF_USER);
	assert_int_equal(rule_table_room(table, 1000).of_table, OF_USERS);
	for (int32_t i = 0; i < OF_USER; i++)
		rows[i].rule = rule_table_number(table, &(struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_off = i }, 1000);
	rule_table_hold(table, rows, OF_USER);
	/* already there: another user's */
	rule_table_number(table, &(struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_off = 1 }, 1001);
	assert_int_equal(rule_table_room(table, 1000).of_user, 0);
	assert_int_equal(rule_table_room(table, 1001).of_user, OF_USER);
	assert_int_equal(rule_table_room(table, 1001).of_table, OF_USERS - OF_USER);
	assert_int_equal(rule_table_room(table, 0).of_table, MAX - SONDE_RULE_FIRST_FREE - OF_USER);
	assert_false(rule_table_has_idle(table));
	rule_table_drop(table, rows, OF_USER);
	assert_true(rule_table_has_idle(table));
	assert_int_equal(rule_table_room(table, 1000).of_user, 0);
	rule_table_settle(table);
	assert_int_equal(rule_table_room(table, 1000).of_user, OF_USER);
	assert_int_equal(rule_table_room(table, 1001).of_table, OF_USERS);
	rule_table_free(table);
}

static void all_65536_rules_fit(void **state)
{
	struct rule_table *table = rule_table_new(UINT32_MAX);
	uint32_t nr;

	for (int32_t i = 0; i < SONDE_MAX_RULES; i++)
		rule_table_number(table, &(struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_off = i * 8 }, 0);
	assert_int_equal(rule_table_nr_refused(table), SONDE_RULE_FIRST_FREE);
	assert_int_equal(rule_table_number(table, &(struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_off = 80 }, 0),
			 SONDE_RULE_FIRST_FREE + 10);
	rule_table_rules(table, &nr);
	assert_int_equal(nr, SONDE_MAX_RULES);
	rule_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fdes_are_sorted_and_gaps_are_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(equal_neighbours_are_one_row, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_earlier_of_overlapping_fdes_wins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(dropped_fdes_leave_no_trace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_damaged_fde_is_one_unsupported_row, set_up, tear_down),
		cmocka_unit_test_setup_teardown(blocks_index_rows_by_address, set_up, tear_down),
		cmocka_unit_test_setup_teardown(blocks_grow_with_the_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(debug_frame_fills_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_section_headers_the_header_leads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_built_says_why, set_up, tear_down),
		cmocka_unit_test_setup_teardown(any_overlap_agrees_with_a_painting, set_up, tear_down),
		cmocka_unit_test(rules_are_numbered_once),
		cmocka_unit_test(rules_come_and_go),
		cmocka_unit_test(users_have_shares),
		cmocka_unit_test(all_65536_rules_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
