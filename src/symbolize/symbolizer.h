/* SPDX-License-Identifier: Apache-2.0 */
/* symbolizer: from an address to a name. Lazy: nothing is read before the first look-up that needs it, and each file is read once, however
 * many processes map it. One thread. Results are borrowed until symbolizer_free. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "dwarf/dwarf_lines.h"
#include "elf/elf_file.h"
#include "symbolize/jit_names.h"
#include "symbols/symbols.h"

struct symbolizer;

/* Code that has a name but no size in the kernel's list: a BPF program's function. */
struct kernel_code {
	uint64_t start, size_bytes;
	uint64_t since_ns; /* CLOCK_MONOTONIC; earlier, other code may have been there */
};

struct symbolizer_options {
	const char *kallsyms_path; /* NULL: /proc/kallsyms */
	const struct kernel_code *programs; /* BPF programs, sorted by start; borrowed */
	uint32_t nr_programs;
	const char *debug_dir;	   /* NULL: /usr/lib/debug */
	/* A debug file from elsewhere (debug_file_take), for the only file that is looked up; used after local ones. NULL: none.
	 * Borrowed. */
	const struct elf_file *fetched;
	/* All that will be looked up in files: then it takes a tenth of the time. NULL: any. Borrowed. */
	const struct symbol_addresses *addresses;
	/* Find source lines and inlined functions of files by their DWARF. Go programs have them without this. */
	bool lines;
};

struct symbol_name {
	const char *name;	 /* demangled */
	const char *system_name; /* as linked */
	/* First address of the symbol, in the same address space; for an inlined function: of the one it was inlined into. */
	uint64_t start;
	const char *file;	 /* source, "" when not known */
	uint32_t line;		 /* of the address, 0 when not known */
	uint32_t start_line;	 /* of the function's first line, 0 when not known */
};

struct symbolizer *symbolizer_new(const struct symbolizer_options *options); /* NULL options: all defaults. Returns NULL: no memory */
void symbolizer_free(struct symbolizer *symbolizer);

/* Looks up code of the kernel, its modules and BPF programs. Names of the latter two end in " [module]". 0; -ENOENT: no symbol; -EACCES:
 * the kernel hides its addresses (kptr_restrict). */
MUST_CHECK int symbolizer_kernel(struct symbolizer *symbolizer, uint64_t kaddr, struct symbol_name *ret_name);
/* As kallsyms_is_scheduler; false when nothing is known. */
bool symbolizer_is_scheduler(struct symbolizer *symbolizer, uint64_t kaddr);
/* Returns the entry in the options for the BPF program function that starts there; NULL: none. */
const struct kernel_code *symbolizer_program(const struct symbolizer *symbolizer, uint64_t start);
/* Returns the address to look up for a frame of a kernel stack other than the first: normally the byte before the return address, which is
 * in the call. But the stack also has the addresses that interrupts came upon, and the kernel does not mark them. Padding with a name of
 * its own (__pfx_, __cfi_) never calls. So an address right after padding is a function's first instruction, and is returned unchanged. */
uint64_t symbolizer_kernel_call(struct symbolizer *symbolizer, uint64_t kaddr);

/* Looks up an address in a file. `object` is the caller's number for it (the same file, the same number, for the symbolizer's life). `elf`
 * is borrowed until symbolizer_free. `path` may be NULL; debug links are looked for in its directory. Uses the file's own .symtab, else the
 * debug file's by build id or debug link (CRC checked), else .dynsym; for a Go program's own functions its .gopclntab. With `lines`, DWARF
 * (the file's, else the debug file's) adds inlined functions and lines; the function that the code belongs to keeps the name of its symbol.
 * Returns 1 to max_names names: the functions inlined at the address, innermost first, then the one that the code belongs to. 0; -ENOENT:
 * no symbol covers it; -ENODATA: the file has none at all. */
MUST_CHECK int symbolizer_object(struct symbolizer *symbolizer, uint32_t object, const struct elf_file *elf, const char *path,
				 uint64_t elf_vaddr, struct symbol_name *names, uint32_t max_names, uint32_t *ret_nr);

/* Addresses from `start` to below `end`. */
struct symbol_extent {
	uint64_t start, end;
};

/* The addresses around one that was looked up for which symbolizer_object says the same. */
struct symbol_extent symbolizer_extent(const struct symbolizer *symbolizer, uint32_t object, uint64_t elf_vaddr);

/* Would a debug file from elsewhere add names, or (with `lines`) lines, that neither the file nor a local debug file has? Looks at their
 * sections only. A Go program never needs one. */
bool symbolizer_wants_debug(const struct symbolizer *symbolizer, const struct elf_file *elf, const char *path);

/* What DWARF could not provide, for all files looked up. */
struct dwarf_lines_counts symbolizer_lines_counts(const struct symbolizer *symbolizer);

/* Looks up JIT code in its process's own files. The texts are borrowed from `jit` and the symbolizer. 0, -ENOENT or -ENOMEM. */
MUST_CHECK int symbolizer_jit(struct symbolizer *symbolizer, const struct jit_names *jit, uint64_t pc, struct symbol_name *ret_name);
