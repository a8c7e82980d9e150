/* SPDX-License-Identifier: Apache-2.0 */
/* symbolizer: from an address to a name. Lazy: nothing is read before the first question that needs it, and each file is read once
 * however many processes map it. One thread. Answers are borrowed until symbolizer_free. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "dwarf/dwarf_lines.h"
#include "elf/elf_file.h"
#include "symbolize/jit_names.h"

struct symbolizer;

/* Code that the kernel's list names without a size: a BPF program's function. */
struct kernel_code {
	uint64_t start, size_bytes;
	uint64_t since_ns; /* CLOCK_MONOTONIC; before, other code may have stood there */
};

struct symbolizer_options {
	const char *kallsyms_path; /* NULL: /proc/kallsyms */
	const struct kernel_code *programs; /* BPF programs, by start. Borrowed */
	uint32_t nr_programs;
	const char *debug_dir;	   /* NULL: /usr/lib/debug */
	const struct elf_file *fetched; /* a debug file from elsewhere (debug_file_take) for the one file that is asked about, after local
					   ones; NULL: none. Borrowed */
	bool lines;		   /* source lines and inlined functions of files by their DWARF; Go's own are told without */
};

struct symbol_name {
	const char *name;	 /* demangled */
	const char *system_name; /* as linked */
	uint64_t
	    start; /* first address of the symbol, in the space of the question; of an inlined function: of the one it was inlined into */
	const char *file;	 /* source, "" when not known */
	uint32_t line;		 /* of the address, 0 when not known */
	uint32_t start_line;	 /* of the function's first line, 0 when not known */
};

struct symbolizer *symbolizer_new(const struct symbolizer_options *options); /* NULL options: all defaults. NULL: no memory */
void symbolizer_free(struct symbolizer *symbolizer);

/* Kernel, its modules and BPF programs (whose names in kallsyms end in [module]; it stands in the name as "name [module]"). 0;
 * -ENOENT: no symbol; -EACCES: the kernel hides its addresses (kptr_restrict). */
MUST_CHECK int symbolizer_kernel(struct symbolizer *symbolizer, uint64_t kaddr, struct symbol_name *ret_name);
/* As kallsyms_is_scheduler; false where nothing is known. */
bool symbolizer_is_scheduler(struct symbolizer *symbolizer, uint64_t kaddr);
/* What the options say of the BPF program's function that begins there. NULL: of none. */
const struct kernel_code *symbolizer_program(const struct symbolizer *symbolizer, uint64_t start);
/* Where to look for a frame of a kernel stack that is not its first: at the call, which is before the address that it returns to. Only that
 * what an interrupt came upon stands among them, too, and the kernel does not say where: an address with padding before it, which has a
 * name of its own
 * (__pfx_, __cfi_) and never calls, is a function's first instruction and not the one behind a call. */
uint64_t symbolizer_kernel_call(struct symbolizer *symbolizer, uint64_t kaddr);

/* A file, known by the caller's number `object` (the same file, the same number, for the symbolizer's life). `elf` is borrowed until
 * symbolizer_free; `path` is where debug links are looked for beside it, and may be NULL. Its own .symtab, else the debug file's
 * by build id or debug link (CRC checked), else .dynsym; a Go program's own functions by its .gopclntab. With
 * `lines`, DWARF (the file's, else the debug file's) adds what was inlined, and lines; the function that the code belongs to keeps the name
 * of its symbol. Gives 1 to max_names names: functions that were inlined at the address, innermost first, and then the one that the code
 * belongs to. 0; -ENOENT: no symbol covers it; -ENODATA: the file has none at all. */
MUST_CHECK int symbolizer_object(struct symbolizer *symbolizer, uint32_t object, const struct elf_file *elf, const char *path,
				 uint64_t elf_vaddr, struct symbol_name *names, uint32_t max_names, uint32_t *ret_nr);

/* Would a debug file from elsewhere tell more of this file: names, or (with `lines`) lines, that neither it nor a local debug file has? By
 * their sections; a Go program tells all itself. */
bool symbolizer_wants_debug(const struct symbolizer *symbolizer, const struct elf_file *elf, const char *path);

/* What DWARF could not tell, of all files asked about. */
struct dwarf_lines_counts symbolizer_lines_counts(const struct symbolizer *symbolizer);

/* JIT code by the files in which its process names it. The answer's texts are borrowed from `jit` and the symbolizer. 0, -ENOENT or
 * -ENOMEM. */
MUST_CHECK int symbolizer_jit(struct symbolizer *symbolizer, const struct jit_names *jit, uint64_t pc, struct symbol_name *ret_name);
