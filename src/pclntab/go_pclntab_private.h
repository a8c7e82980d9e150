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
	uint64_t vaddr;		     /* address as linked */
	uint64_t text_vaddr;	     /* runtime.text: base of function addresses (1.18 and later) */
	uint64_t go_func_vaddr;	     /* go:func.*, 0: not known */
	size_t names, units, files;  /* byte offsets of the parts, all within size */
	size_t values, functions;
	uint32_t nr_functions;
	enum go_layout layout;
};

/* Returns a reader from an offset to the end of the bytes; a failed one when the offset is outside. */
static inline struct reader go_reader_at(const struct go_pclntab *table, uint64_t part, uint64_t off)
{
	struct reader r = reader_of(table->bytes, table->size);

	if (part > table->size || off > table->size - part)
		reader_fail(&r);
	else
		r.pos += part + off;
	return r;
}

/* Iterator over one of a function's varint tables: address ranges, each with a value. */
struct go_pcvalue {
	struct reader r;
	uint64_t vaddr, end_vaddr; /* start of the next range; end of the function */
	int32_t value;
	bool is_begun;
};
/* `table_off` is the function's pcsp, pcfile, pcln or inline_index. */
struct go_pcvalue go_pcvalue_of(const struct go_pclntab *table, const struct go_function *function, uint32_t table_off);
/* Advances to the next range: from *ret_start up to values->vaddr. False: there is none, or the rest is damaged. */
MUST_CHECK bool go_pcvalue_next(struct go_pcvalue *values, uint64_t *ret_start);
/* Returns the value at an address; `fallback` when there is none. */
int32_t go_pcvalue_at(const struct go_pclntab *table, const struct go_function *function, uint32_t table_off, uint64_t elf_vaddr,
		      int32_t fallback);

/* Returns "" when the text does not end within the bytes. */
const char *go_text(const struct go_pclntab *table, size_t part, uint64_t off);

/* Is it the function whose start the kernel sets as a signal handler's return address? A return address is looked up one byte before: here
 * that byte counts as part of this function. */
bool go_is_signal_return(const char *name);

/* Finds the table and reads its bytes. 0; -ENODATA; -EFBIG; -ENOMEM; or the error of the read. */
MUST_CHECK int go_section_read(const struct elf_file *elf, struct diag *diag, struct go_pclntab *table);
/* Reads text_vaddr and go_func_vaddr from runtime.firstmoduledata. 0 or -ENODATA. */
MUST_CHECK int go_module_read(struct go_pclntab *table, uint64_t *ret_text_vaddr, uint64_t *ret_go_func_vaddr);
/* Reads words as they are in the process after relocation. 0; -EBADMSG: not all are in the file. */
MUST_CHECK int go_read_words(const struct elf_file *elf, uint64_t vaddr, uint64_t *words, uint32_t nr);
/* Returns the file offset of `vaddr`, and how many bytes follow in the same segment. 0 or -ENOENT. */
MUST_CHECK int go_file_off(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_file_off, uint64_t *ret_size);
