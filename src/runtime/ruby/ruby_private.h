/* SPDX-License-Identifier: Apache-2.0 */
/* ruby_private: the parts of Ruby's folder. Layouts: vm_core.h, iseq.h, method.h, symbol.c, include/ruby/internal/core/rstring.h and
 * rarray.h of that version. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/ruby.h"
#include "base/cleanup.h"
#include "runtime/runtime.h"

struct ruby_row {
	uint8_t major, minor;
	uint16_t cfp_bytes, cfp_jit_return, ec_machine; /* cfp_jit_return 0: there is none */
	/* in rb_iseq_constant_body: first_lineno (an integer as an object); insns_info.body, .size and .succ_index_table; parent_iseq */
	uint16_t body_first_line, body_lines, body_nr_lines, body_index, body_parent;
	uint16_t line_bytes;     /* of struct iseq_insn_info_entry */
	uint16_t def_id;         /* in rb_method_definition_t: original_id */
	/* The length of a String is a word, and its contents, if embedded, are behind that; the first line is an int, not an object. */
	bool has_plain_lengths;
};

/* `naming` of the image. */
struct ruby_naming {
	uint64_t symbols;        /* of global_symbols: its last_id; as linked */
	uint64_t last_operator;  /* tLAST_OP_ID: ids up to it are not shifted */
	uint64_t vm;             /* as linked: ruby_current_vm_ptr, or a pointer to it; 0: not known */
	uint32_t vm_objspace;    /* in rb_vm_t: a pointer to rb_objspace_t */
	uint32_t count, flags;   /* in that: how often the collector ran; flags */
	uint32_t is_pointer;     /* `vm` is */
};

const struct ruby_row *ruby_row_of(uint32_t major, uint32_t minor); /* NULL: none */
/* Finds rb_vm_exec, and the function that it calls to run instructions, vm_exec_core; that one both 0: it has become a part of
 * rb_vm_exec. 0, -ENOENT or -ENOMEM. */
MUST_CHECK int ruby_loops_find(const struct elf_file *elf, struct sonde_code_range *ret_exec, struct sonde_code_range *ret_core);
/* 0, or -ENOENT. */
MUST_CHECK int ruby_symbols_find(const struct elf_file *elf, struct ruby_naming *ret_naming);
/* Finds where the garbage collector counts its runs; where not, `vm` is 0. */
void ruby_gc_find(const struct elf_file *elf, struct ruby_naming *naming);
MUST_CHECK int ruby_root_find(const struct elf_file *elf, struct sonde_tls *ret_root);
/* As struct runtime's `describe`. */
MUST_CHECK int ruby_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
			     const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
