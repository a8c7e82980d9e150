/* SPDX-License-Identifier: Apache-2.0 */
/* go_pclntab: the table of functions, frame sizes, files, lines and inlined calls that every Go program carries (section .gopclntab),
 * stripped ones too. Go 1.16 and later; no inlined calls of 1.16 and 1.17. The bytes are a stranger's: one pass checks the functions'
 * order, later reads are bounded, and no question costs more than the bytes of one function. Layouts: Go's src/runtime/symtab.go,
 * src/runtime/runtime2.go (_func), src/internal/abi/symtab.go, of the versions named. Immutable once read; any thread may ask. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "cfi/cfi.h"
#include "elf/elf_file.h"

/* abi.FuncFlag, 1.17 and later. */
enum { GO_FUNCTION_TOP_FRAME = 1, GO_FUNCTION_SP_WRITE = 2, GO_FUNCTION_ASM = 4 };

struct go_function {
	uint64_t start_vaddr, end_vaddr; /* the end is where the next one begins: padding belongs to it */
	const char *name;		 /* borrowed from the table */
	uint32_t start_line;		 /* 0: not known (1.20 and later tell) */
	uint8_t flags;			 /* GO_FUNCTION_* */
	/* Where its tables are; 0: none. For go_*.c. */
	uint32_t pcsp, pcfile, pcln, inline_index, unit;
	uint32_t inline_tree; /* offset behind go:func.*, UINT32_MAX: none */
};

/* A function at a place: the one that the code belongs to, or one that was inlined there. */
struct go_frame {
	const char *name, *file; /* borrowed; file "" when not known */
	uint32_t line;		 /* of the place, 0 when not known */
	uint32_t start_line;	 /* of the function */
	uint64_t start_vaddr;	 /* of the code, the same for all */
};

struct go_pclntab;
/* Borrows `elf` for the table's life. 0; -ENODATA when the file is not Go's (or of a version before 1.16); -EBADMSG; -EFBIG; -ENOMEM. */
MUST_CHECK int go_pclntab_read(const struct elf_file *elf, struct diag *diag, struct go_pclntab **ret_table);
void go_pclntab_free(struct go_pclntab *table); /* takes NULL */
static inline void go_pclntab_freep(struct go_pclntab **table)
{
	go_pclntab_free(*table);
}

uint32_t go_pclntab_nr_functions(const struct go_pclntab *table);
/* The i-th by address, i < nr_functions. False: its entry is damaged. */
MUST_CHECK bool go_pclntab_function(const struct go_pclntab *table, uint32_t i, struct go_function *ret_function);
/* The function at an address. 0; -ENOENT: none, or damaged. */
MUST_CHECK int go_pclntab_find(const struct go_pclntab *table, uint64_t elf_vaddr, struct go_function *ret_function);
/* Who stands at an address, the innermost inlined function first, the function of the code last: 1 to max_frames of them. Where there are
 * more, the outermost is kept. 0 or -ENOENT. */
MUST_CHECK int go_pclntab_frames(const struct go_pclntab *table, uint64_t elf_vaddr, struct go_frame *frames, uint32_t max_frames,
				 uint32_t *ret_nr);
/* The unwind rules of all functions, as cfi_walk gives them (no stats of damage: a damaged function has no rows). 0 or what `row` gave. */
MUST_CHECK int go_pclntab_walk(const struct go_pclntab *table, cfi_row_fn row, void *arg, struct cfi_stats *ret_stats);
