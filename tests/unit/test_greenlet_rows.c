// SPDX-License-Identifier: Apache-2.0
/* Rules of the functions that start and switch greenlets' stacks, in a library with all its symbols and in one without local symbols
 * (tests/programs/greenlet_like.c). */
#include "unwind/greenlet_rows.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "elf/dynamic_symbol.h"
#include "unwind/unwind_table.h"

static const char *library, *stripped;
static struct rule_table *rules;

static void build(const char *path, struct elf_file **ret_elf, struct unwind_table **ret_table)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_file_open_fd(fd, NULL, ret_elf), 0);
	assert_int_equal(unwind_table_build(*ret_elf, rules, NULL, ret_table), 0);
}

/* The kind of the rule at the start or end of an exported function. */
static enum sonde_rule_kind kind_at(const struct elf_file *elf, const struct unwind_table *table, const char *name, bool at_end)
{
	struct dynamic_symbol symbol;
	const struct sonde_rule *all;
	uint32_t nr;

	assert_int_equal(dynamic_symbol_find(elf, name, &symbol), 0);
	all = rule_table_rules(rules, &nr);
	return all[unwind_table_find(table, symbol.elf_vaddr + (at_end ? symbol.size_bytes - 1 : 0))].kind;
}

static void check_kinds(const char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;

	build(path, &elf, &table);
	for (int at_end = 0; at_end < 2; at_end++) {
		assert_int_equal(kind_at(elf, table, "PyInit__greenlet", at_end), SONDE_RULE_KIND_STEP);
		assert_int_equal(kind_at(elf, table, "_ZN8greenlet12UserGreenlet13g_initialstubEPv", at_end), SONDE_RULE_KIND_STEP);
		assert_int_equal(kind_at(elf, table, "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object", at_end),
				 SONDE_RULE_KIND_END);
		assert_int_equal(kind_at(elf, table, "_ZN8greenlet8Greenlet13g_switchstackEv", at_end), SONDE_RULE_KIND_UNSUPPORTED);
	}
}

/* Checks the function that moves the stack, from the instruction that moves it. */
static void check_move(const char *path)
{
	static const uint8_t move[] = { 0x48, 0x01, 0xfc, 0x48, 0x01, 0xfd }; /* add %rdi,%rsp; add %rdi,%rbp */
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	CLEANUP(freep) void *text = NULL;
	const struct elf_section *section;
	const uint8_t *at;
	const struct sonde_rule *all;
	size_t size;
	uint32_t nr;
	uint64_t vaddr;

	build(path, &elf, &table);
	section = elf_file_find_section(elf, ".text");
	assert_non_null(section);
	assert_int_equal(elf_file_read_section(elf, section, 1 << 20, NULL, &text, &size), 0);
	at = memmem(text, size, move, sizeof(move));
	assert_non_null(at);
	vaddr = section->vaddr + (uint64_t)(at - (const uint8_t *)text);
	all = rule_table_rules(rules, &nr);
	for (uint64_t off = 0; vaddr + off <= section->vaddr + size; off++) {
		if (off && ((const uint8_t *)text)[vaddr + off - 1 - section->vaddr] == 0xc3) /* after its return */
			break;
		assert_int_equal(all[unwind_table_find(table, vaddr + off)].kind, SONDE_RULE_KIND_UNSUPPORTED);
	}
}

static void by_all_symbols(void **state)
{
	check_kinds(library);
	check_move(library);
}

static void by_exported_symbols_and_code(void **state)
{
	check_kinds(stripped);
	check_move(stripped);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_all_symbols),
		cmocka_unit_test(by_exported_symbols_and_code),
	};
	int failed;

	if (argc < 3)
		return 2;
	library = argv[1];
	stripped = argv[2];
	rules = rule_table_new(1000);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rule_table_free(rules);
	return failed;
}
