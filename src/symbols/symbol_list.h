/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_list: the input of symbols.c: the function symbols of one or more symbol tables and the stubs of the PLT, each with its extent.
 * Private to symbols.c and greenlet_rows.c, which needs only a name and an extent. Hostile input: capped and checked. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "elf/elf_file.h"
#include "symbols/plt_names.h"
#include "symbols/symbol_focus.h"

enum symbol_rank { SYMBOL_GLOBAL, SYMBOL_WEAK, SYMBOL_LOCAL };

struct raw_symbol {
	uint64_t start, end;  /* end == start: not known */
	uint64_t section_end; /* 0: not known */
	uint32_t name;	      /* offset in the list's strings */
	uint8_t rank;	      /* enum symbol_rank */
	bool is_label;	      /* STT_NOTYPE */
};

struct symbol_list {
	struct raw_symbol *symbols;
	uint32_t nr, capacity;
	struct buffer strings; /* each name ends in NUL */
	struct symbol_focus *focus; /* keep only what decides about its addresses; NULL: all. Borrowed */
	struct plt_names plt;	    /* the stubs to be added */
	bool has_function, has_local, has_plt; /* one was met, kept or not */
};

#define SYMBOL_LIST_INIT(of) { .strings = BUFFER_INIT((size_t)1 << 30), .focus = (of) } /* so that offsets fit 32 bits */
void symbol_list_done(struct symbol_list *list);
/* Adds the first symbol table of a type (SHT_SYMTAB, SHT_DYNSYM). 0; -ENODATA: there is none, or no table so far has a function; -EBADMSG;
 * -EFBIG; -ENOMEM. */
MUST_CHECK int symbol_list_add(struct symbol_list *list, const struct elf_file *elf, uint32_t type, struct diag *diag);
/* Reads the stubs of the running file, before the first symbol table. 0 or -ENOMEM; a damaged PLT counts as none. */
MUST_CHECK int symbol_list_read_plt(struct symbol_list *list, const struct elf_file *elf);
/* Sorts by start, of one start the best alias last, and adds the stubs. 0 or -ENOMEM. */
MUST_CHECK int symbol_list_add_plt(struct symbol_list *list);
/* Gives each symbol of a sorted list its end; `elf` has the code. A symbol to be left out keeps end == start. 0 or -ENOMEM. */
MUST_CHECK int symbol_list_settle(struct symbol_list *list, const struct elf_file *elf);
