/* SPDX-License-Identifier: Apache-2.0 */
/* go_pclntab: the table of functions, frame sizes, files, lines and inlined calls that every Go program has (section .gopclntab), even a
 * stripped one. Go 1.16 and later; no inlined calls for 1.16 and 1.17. The bytes are untrusted: one pass checks the functions' order, later
 * reads are bounded, and no look-up costs more than the bytes of one function. Layouts: Go's src/runtime/symtab.go, src/runtime/runtime2.go
 * (_func), src/internal/abi/symtab.go, of the versions named. Immutable once read; any thread may use it. */
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
	uint64_t start_vaddr, end_vaddr; /* end: start of the next function, so padding is included */
	const char *name;		 /* borrowed from the table */
	uint32_t start_line;		 /* 0: not known (1.20 and later have it) */
	uint8_t flags;			 /* GO_FUNCTION_* */
	/* Offsets of its tables; 0: none. For go_*.c. */
	uint32_t pcsp, pcfile, pcln, inline_index, unit;
	uint32_t inline_tree; /* offset from go:func.*; UINT32_MAX: none */
};

/* A function at an address: the one that the code belongs to, or one inlined there. */
struct go_frame {
	const char *name, *file; /* borrowed; file "" when not known */
	uint32_t line;		 /* of the address; 0 when not known */
	uint32_t start_line;	 /* of the function */
	uint64_t start_vaddr;	 /* of the code's function; the same in all frames */
};

struct go_pclntab;
/* Borrows `elf` for the table's life. 0; -ENODATA: not a Go file (or before 1.16); -EBADMSG; -EFBIG; -ENOMEM. */
MUST_CHECK int go_pclntab_read(const struct elf_file *elf, struct diag *diag, struct go_pclntab **ret_table);
void go_pclntab_free(struct go_pclntab *table); /* accepts NULL */
static inline void go_pclntab_freep(struct go_pclntab **table)
{
	go_pclntab_free(*table);
}

uint32_t go_pclntab_nr_functions(const struct go_pclntab *table);
/* Returns the i-th function by address, i < nr_functions. False: its entry is damaged. */
MUST_CHECK bool go_pclntab_function(const struct go_pclntab *table, uint32_t i, struct go_function *ret_function);
/* Finds the function at an address. 0; -ENOENT: none, or damaged. */
MUST_CHECK int go_pclntab_find(const struct go_pclntab *table, uint64_t elf_vaddr, struct go_function *ret_function);
/* Returns the functions at an address, the innermost inlined one first, the one that the code belongs to last: 1 to max_frames. If there
 * are more, keeps the outermost. 0 or -ENOENT. */
MUST_CHECK int go_pclntab_frames(const struct go_pclntab *table, uint64_t elf_vaddr, struct go_frame *frames, uint32_t max_frames,
				 uint32_t *ret_nr);
/* The addresses around elf_vaddr, from *ret_start to below *ret_end, for which go_pclntab_frames says the same. False: it is in no
 * function. */
bool go_pclntab_extent(const struct go_pclntab *table, uint64_t elf_vaddr, uint64_t *ret_start, uint64_t *ret_end);
/* Calls `row` with the unwind rows of all functions, as cfi_walk does. A damaged function has no rows and counts in nr_bad_fdes. 0, -ENOMEM
 * or what `row` returned. */
MUST_CHECK int go_pclntab_walk(const struct go_pclntab *table, cfi_row_fn row, void *arg, struct cfi_stats *ret_stats);
