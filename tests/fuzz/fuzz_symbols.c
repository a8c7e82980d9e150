// SPDX-License-Identifier: Apache-2.0
/* Any bytes as an ELF file: its symbols' ranges must agree with a look-up, and the demangler must accept their names. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/symbols.h"
#include "symbolize/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct symbol_table *table, uint64_t elf_vaddr)
{
	struct symbol symbol, again;

	if (symbol_table_find(table, elf_vaddr, &symbol))
		return;
	if (elf_vaddr - symbol.elf_vaddr >= symbol.size_bytes || !symbol.name[0])
		abort(); /* it does not cover the address */
	if (symbol_table_find(table, symbol.elf_vaddr, &again) || again.elf_vaddr != symbol.elf_vaddr)
		abort(); /* nothing that starts later can cover its first byte */
	free(demangle(symbol.name));
}

/* The same of a table for some addresses. */
static void ask_few(const struct elf_file *elf, const uint8_t *data, size_t size)
{
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	uint64_t elf_vaddrs[8] = { 0 }, start, end;
	size_t bytes = size < sizeof(elf_vaddrs) ? size : sizeof(elf_vaddrs);
	struct symbol symbol;

	memcpy(elf_vaddrs, data + size - bytes, bytes);
	if (symbol_table_read(elf, &(struct symbol_addresses){ elf_vaddrs, 8 }, NULL, &table))
		return;
	for (size_t i = 0; i < 8; i++) {
		if (!symbol_table_find(table, elf_vaddrs[i], &symbol) && elf_vaddrs[i] - symbol.elf_vaddr >= symbol.size_bytes)
			abort();
		symbol_table_extent(table, elf_vaddrs[i], &start, &end);
		if (elf_vaddrs[i] < start || (elf_vaddrs[i] >= end && end != UINT64_MAX))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;

	if (elf_file_open_memory(data, size, NULL, &elf))
		return 0;
	ask_few(elf, data, size);
	if (symbol_table_read(elf, NULL, NULL, &table))
		return 0;
	if (symbol_table_size(table) == 0)
		abort();							      /* must be -ENODATA */
	for (uint64_t at = 0; at + sizeof(uint64_t) <= size && at < 65536; at += 4) { /* numbers in the file: addresses among them */
		uint64_t elf_vaddr;

		memcpy(&elf_vaddr, data + at, sizeof(elf_vaddr));
		ask(table, elf_vaddr);
		ask(table, elf_vaddr + 1);
	}
	return 0;
}
