/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_focus: the addresses for which a symbol table is read, and where the symbols around each begin and end. With it, of a file's
 * symbols only those are kept that decide what an address is called: reading a table takes one search for each symbol, and no sort of all
 * of them. First all symbols are seen, then each is asked for again. Private to symbols.c and symbol_list.c. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct symbol_place {
	uint64_t elf_vaddr;
	uint64_t start; /* the last start of a symbol at or before it; 0: none */
	uint64_t past;  /* the last end of one with a size, at or before it; 0: none */
	uint64_t next;  /* the first start after it; UINT64_MAX: none */
};

struct symbol_focus {
	struct symbol_place *places; /* ascending, each once */
	uint32_t nr;
};

/* 0 or -ENOMEM. */
MUST_CHECK int symbol_focus_init(struct symbol_focus *focus, const uint64_t *elf_vaddrs, size_t nr);
void symbol_focus_done(struct symbol_focus *focus);
/* One more address, which is not seen as a neighbour by the symbols before. 0 or -ENOMEM. */
MUST_CHECK int symbol_focus_add(struct symbol_focus *focus, uint64_t elf_vaddr);
/* Is there an address from `start` to below `end`? */
bool symbol_focus_has(const struct symbol_focus *focus, uint64_t start, uint64_t end);
/* Would seeing it change anything? end == start: its size is not known. */
bool symbol_focus_matters(const struct symbol_focus *focus, uint64_t start, uint64_t end);
void symbol_focus_see(struct symbol_focus *focus, uint64_t start, uint64_t end);
/* After the last symbol of a table was seen. */
void symbol_focus_settle(struct symbol_focus *focus);
/* May the symbol decide what one of the addresses is called? It covers one, is the last to start before one, or the last to end; or its
 * size is not known, which few are. */
bool symbol_focus_keeps(const struct symbol_focus *focus, uint64_t start, uint64_t end);
/* Returns where the next symbol starts, if one that starts at `start` is the last before one of the addresses; else `start`. */
uint64_t symbol_focus_next(const struct symbol_focus *focus, uint64_t start);
/* NULL: it is none of the addresses. */
const struct symbol_place *symbol_focus_find(const struct symbol_focus *focus, uint64_t elf_vaddr);
