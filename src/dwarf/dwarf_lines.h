/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_lines: from an address to the source line and to the functions that were inlined there, out of an ELF file's DWARF (2 to 5,
 * split, or shared by dwz) by libdw. Lazy: a unit's table is made at the first question about its code, and forgotten when all of them
 * take too much, the longest unused one first. One thread. The file is a stranger's: counts, depths and lengths are capped. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

struct dwarf_lines;

struct dwarf_frame {
	const char *name; /* as linked; without a linkage name the DWARF name, of C++ and Rust with its scopes; "" when not known */
	const char *file; /* full path as the compiler wrote it, without "./" and "//"; "" when not known */
	uint32_t line;	  /* 0 when not known */
	uint32_t start_line;
	uint64_t start_vaddr; /* where the function that the code belongs to starts; the same in all frames */
};

struct dwarf_lines_counts {
	uint32_t nr_missing_dwo; /* units of split DWARF whose .dwo was not found: lines, but no functions */
	uint32_t nr_cut;	 /* units of which a part was left out, for being too large or too deep */
	uint32_t
	    nr_packed; /* 1: compressed in a way that is not known (zstd, by this libelf), or too large for it unpacked: no lines at all */
};

/* What may be held at a time; 0: as the compiler has it. The answers are the same with any. */
struct dwarf_lines_limits {
	uint64_t max_table_bytes, max_libdw_bytes, max_page_bytes; /* tables of units; about libdw's; about the mapped file's */
	uint64_t max_unpacked_bytes;				   /* of a compressed file; more is counted in nr_packed */
};

/* `elf` carries .debug_info (the program or its debug file) and is borrowed until dwarf_lines_free. `debug_dir` is where dwz's common files
 * are looked for, /usr/lib/debug when NULL. `limits` may be NULL. 0, also where the lines cannot be unpacked, which is counted; -ENODATA:
 * there is no .debug_info; -EBADMSG: libdw refuses it; -ENOMEM. */
MUST_CHECK int dwarf_lines_open_limited(const struct elf_file *elf, const char *debug_dir, const struct dwarf_lines_limits *limits,
					struct diag *diag, struct dwarf_lines **ret_lines);
static inline MUST_CHECK int dwarf_lines_open(const struct elf_file *elf, const char *debug_dir, struct diag *diag,
					      struct dwarf_lines **ret_lines)
{
	return dwarf_lines_open_limited(elf, debug_dir, NULL, diag, ret_lines);
}
void dwarf_lines_free(struct dwarf_lines *lines); /* takes NULL */
static inline void dwarf_lines_freep(struct dwarf_lines **lines)
{
	dwarf_lines_free(*lines);
}

/* The functions inlined at the address, innermost first, then the one that the code belongs to; of more than `max` (at least 1) the
 * outermost inlined ones are left out. Texts are borrowed until dwarf_lines_free. 0; -ENOENT: not known; -ENOMEM. */
MUST_CHECK int dwarf_lines_find(struct dwarf_lines *lines, uint64_t elf_vaddr, struct dwarf_frame *frames, uint32_t max, uint32_t *ret_nr);
struct dwarf_lines_counts dwarf_lines_counts(const struct dwarf_lines *lines);
