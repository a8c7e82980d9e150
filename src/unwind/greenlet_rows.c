// SPDX-License-Identifier: Apache-2.0
/* Sources: src/greenlet/TUserGreenlet.cpp, TGreenlet.cpp and platform/ of greenlet 2.0 to 3.5; greenlet.c of 0.4 and 1.1. */
#include "unwind/greenlet_rows.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "cfi/code_end.h"
#include "elf/dynamic_symbol.h"
#include "symbols/symbol_list.h"

/* Runs only in a new greenlet, which never returns from it: the outermost function of its stack. */
#define BEGIN "inner_bootstrap"
/* During a switch sp, the memory above it and the interpreter's frames belong to two greenlets. */
static const char *const switches[] = { "slp_switch", "g_switchstack" };
#define MAX_TEXT_BYTES ((size_t)4 << 20)
#define MOVE_BYTES 6
/* Called by the code that starts a greenlet. Before 2.0, which has no other function for that, also the outermost function of the new
 * greenlet. */
#define STUB "g_initialstub"

static bool defines_module(const struct elf_file *elf)
{
	struct dynamic_symbol symbol;

	return !dynamic_symbol_find(elf, "PyInit__greenlet", &symbol) || !dynamic_symbol_find(elf, "PyInit_greenlet", &symbol);
}

/* Also matches the parts that compilers split functions into, and C++ names. */
static bool has_name(const struct symbol_list *list, const struct raw_symbol *symbol, const char *name)
{
	return strstr(list->strings.data + symbol->name, name) != NULL;
}

static bool has_any(const struct symbol_list *list, const char *name)
{
	for (size_t i = 0; i < list->nr; i++) {
		if (has_name(list, &list->symbols[i], name))
			return true;
	}
	return false;
}

static enum sonde_rule_kind kind_of(const struct symbol_list *list, const struct raw_symbol *symbol, bool has_begin)
{
	if (has_name(list, symbol, BEGIN))
		return SONDE_RULE_KIND_END;
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
		if (has_name(list, symbol, switches[i]))
			return SONDE_RULE_KIND_UNSUPPORTED;
	}
	return !has_begin && has_name(list, symbol, STUB) ? SONDE_RULE_KIND_UNSUPPORTED : SONDE_RULE_KIND_NONE;
}

static int give_row(uint64_t start_vaddr, uint64_t end_vaddr, enum sonde_rule_kind kind, cfi_row_fn row, void *arg)
{
	const struct sonde_rule rule = { .kind = kind };
	int err = row(arg, start_vaddr, &rule);

	return err ? err : row(arg, end_vaddr, NULL);
}

/* add %r,%rsp; add %r,%rbp: no other code moves both. */
static bool moves_stack(const uint8_t *code)
{
	return (code[0] & 0xfb) == 0x48 && code[1] == 0x01 && (code[2] & 0xc7) == 0xc4 && code[3] == code[0] && code[4] == 0x01 &&
	       code[5] == (code[2] | 1);
}

/* slp_switch has no name in files without local symbols, but the instructions that move the stack identify it. */
static int give_move(const struct elf_file *elf, cfi_row_fn row, void *arg)
{
	const struct elf_section *text = elf_file_find_section(elf, ".text");
	CLEANUP(freep) void *bytes = NULL;
	size_t size = 0;
	int err;

	if (!text || elf_file_machine(elf) != EM_X86_64)
		return 0;
	err = elf_file_read_section(elf, text, MAX_TEXT_BYTES, NULL, &bytes, &size);
	if (err)
		return err == -ENOMEM ? err : 0;
	for (size_t at = 0; at + MOVE_BYTES <= size; at++) {
		const uint8_t *code = (const uint8_t *)bytes + at;

		if (moves_stack(code))
			return give_row(text->vaddr + at, text->vaddr + at + code_end_find(EM_X86_64, code, size - at),
					SONDE_RULE_KIND_UNSUPPORTED, row, arg);
	}
	return 0;
}

int greenlet_walk(const struct elf_file *elf, cfi_row_fn row, void *arg)
{
	CLEANUP(symbol_list_done) struct symbol_list list = SYMBOL_LIST_INIT(NULL);
	bool has_begin;
	int err;

	if (!defines_module(elf))
		return 0;
	err = symbol_list_add(&list, elf, SHT_SYMTAB, NULL);
	if (err && err != -ENOMEM)
		err = symbol_list_add(&list, elf, SHT_DYNSYM, NULL);
	if (err)
		return err == -ENOMEM ? err : 0;
	has_begin = has_any(&list, BEGIN);
	for (uint32_t i = 0; !err && i < list.nr; i++) {
		enum sonde_rule_kind kind = kind_of(&list, &list.symbols[i], has_begin);

		if (kind != SONDE_RULE_KIND_NONE && list.symbols[i].start < list.symbols[i].end)
			err = give_row(list.symbols[i].start, list.symbols[i].end, kind, row, arg);
	}
	return err || has_any(&list, switches[0]) ? err : give_move(elf, row, arg);
}
