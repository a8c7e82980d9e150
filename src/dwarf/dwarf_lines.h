/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_lines: finds the source line of an address and the functions inlined there, in an ELF file's DWARF (2 to 5, split, or shared by
 * dwz), by libdw. Lazy: a unit's table is made when its code is first looked up. When all tables take too much, the least recently used is
 * freed. One thread. The file is untrusted: counts, depths and lengths are capped. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

struct dwarf_lines;

struct dwarf_frame {
	/* As linked. Without a linkage name, the DWARF name, with its scopes for C++ and Rust. "" when not known. */
	const char *name;
	const char *file; /* full path as the compiler wrote it, without "./" and "//"; "" when not known */
	uint32_t line;	  /* 0 when not known */
	uint32_t start_line;
	uint64_t start_vaddr; /* start of the function that the code belongs to; the same in all frames */
};

struct dwarf_lines_counts {
	uint32_t nr_missing_dwo; /* units of split DWARF whose .dwo was not found: lines, but no functions */
	uint32_t nr_cut;	 /* units of which a part was left out: too large or too deep */
	/* 1: no lines at all, as the compression is unknown to libelf (here zstd) or the decompressed file would be too large. */
	uint32_t nr_packed;
};

/* What may be held at a time; 0: the built-in limit. The answers do not depend on it. */
struct dwarf_lines_limits {
	uint64_t max_table_bytes, max_libdw_bytes, max_page_bytes; /* unit tables; libdw's memory, about; the mapped file's, about */
	uint64_t max_unpacked_bytes;				   /* of a compressed file; a larger one counts in nr_packed */
};

/* `elf` has .debug_info (the program or its debug file) and is borrowed until dwarf_lines_free. `debug_dir` is where to look for dwz's
 * common files; NULL: /usr/lib/debug. `limits` may be NULL. 0, also when the lines cannot be decompressed, which is counted; -ENODATA:
 * there is no .debug_info; -EBADMSG: libdw rejects it; -ENOMEM. */
MUST_CHECK int dwarf_lines_open_limited(const struct elf_file *elf, const char *debug_dir, const struct dwarf_lines_limits *limits,
					struct diag *diag, struct dwarf_lines **ret_lines);
static inline MUST_CHECK int dwarf_lines_open(const struct elf_file *elf, const char *debug_dir, struct diag *diag,
					      struct dwarf_lines **ret_lines)
{
	return dwarf_lines_open_limited(elf, debug_dir, NULL, diag, ret_lines);
}
void dwarf_lines_free(struct dwarf_lines *lines); /* accepts NULL */
static inline void dwarf_lines_freep(struct dwarf_lines **lines)
{
	dwarf_lines_free(*lines);
}

/* Returns the functions inlined at the address, innermost first, then the function that the code belongs to. Of more than `max` (at least
 * 1), leaves out the outermost inlined ones. Texts are borrowed until dwarf_lines_free. 0; -ENOENT: not known; -ENOMEM. */
MUST_CHECK int dwarf_lines_find(struct dwarf_lines *lines, uint64_t elf_vaddr, struct dwarf_frame *frames, uint32_t max, uint32_t *ret_nr);
/* Narrows a range around an address that was looked up, from *start to below *end, to where dwarf_lines_find returns the same. */
void dwarf_lines_narrow(const struct dwarf_lines *lines, uint64_t elf_vaddr, uint64_t *start, uint64_t *end);
struct dwarf_lines_counts dwarf_lines_counts(const struct dwarf_lines *lines);
