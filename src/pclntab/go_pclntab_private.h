/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read .gopclntab share. */
#pragma once
#include "base/reader.h"
#include "pclntab/go_pclntab.h"

enum go_layout { GO_LAYOUT_116, GO_LAYOUT_118, GO_LAYOUT_120 }; /* by the header's magic */

struct go_pclntab {
	const struct elf_file *elf; /* borrowed */
	void *bytes;
	size_t size;
	uint64_t vaddr;		     /* where the bytes are linked */
	uint64_t text_vaddr;	     /* runtime.text: what entries count from (1.18 and later) */
	uint64_t go_func_vaddr;	     /* go:func.*, 0: not known */
	size_t names, units, files;  /* offsets in bytes of the parts, all within size */
	size_t values, functions;
	uint32_t nr_functions;
	enum go_layout layout;
};

/* A reader from an offset to the end of the bytes; a failed one behind the end. */
static inline struct reader go_reader_at(const struct go_pclntab *table, uint64_t part, uint64_t off)
{
	struct reader r = reader_of(table->bytes, table->size);

	if (part > table->size || off > table->size - part)
		reader_fail(&r);
	else
		r.pos += part + off;
	return r;
}

/* One of a function's varint tables: pieces of addresses, each with a value. */
struct go_pcvalue {
	struct reader r;
	uint64_t vaddr, end_vaddr; /* of the next piece; of the function */
	int32_t value;
	bool is_begun;
};
/* `table_off` is the function's pcsp, pcfile, pcln or inline_index. */
struct go_pcvalue go_pcvalue_of(const struct go_pclntab *table, const struct go_function *function, uint32_t table_off);
/* The next piece: from *ret_start up to values->vaddr. False: that was the last, or the rest is damaged. */
MUST_CHECK bool go_pcvalue_next(struct go_pcvalue *values, uint64_t *ret_start);
/* The value at an address; `fallback` when there is none. */
int32_t go_pcvalue_at(const struct go_pclntab *table, const struct go_function *function, uint32_t table_off, uint64_t elf_vaddr,
		      int32_t fallback);

/* "" when it does not end within the bytes. */
const char *go_text(const struct go_pclntab *table, size_t part, uint64_t off);

/* What the kernel calls as the return address of a signal handler: its first byte is a return address then, and belongs to it. */
bool go_is_signal_return(const char *name);

/* Finds the table: its place, then its bytes. 0; -ENODATA; -EFBIG; -ENOMEM; or what the read gave. */
MUST_CHECK int go_section_read(const struct elf_file *elf, struct diag *diag, struct go_pclntab *table);
/* Fills in text_vaddr and go_func_vaddr from runtime.firstmoduledata. 0 or -ENODATA. */
MUST_CHECK int go_module_read(struct go_pclntab *table, uint64_t *ret_text_vaddr, uint64_t *ret_go_func_vaddr);
/* Reads words as the process will see them, once it has been relocated. 0; -EBADMSG: they are not all in the file. */
MUST_CHECK int go_read_words(const struct elf_file *elf, uint64_t vaddr, uint64_t *words, uint32_t nr);
/* Where the bytes of `vaddr` stand in the file, and how many follow in the same segment. 0 or -ENOENT. */
MUST_CHECK int go_file_off(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_file_off, uint64_t *ret_size);
