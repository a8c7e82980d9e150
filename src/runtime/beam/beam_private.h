/* SPDX-License-Identifier: Apache-2.0 */
/* beam_private: the parts of BEAM's folder. Layouts: erts/emulator/beam of that version: beam_code.h, atom.h, index.h, erl_process.h,
 * beam_ranges.c. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/beam.h"
#include "base/cleanup.h"
#include "runtime/runtime.h"
#include "runtime/x86_instruction.h"

struct beam_row {
	uint8_t release;
	uint16_t current_process; /* in ErtsSchedulerData */
	uint8_t stop;             /* in Process */
	uint8_t functions, line_table; /* in BeamCodeHeader */
	uint8_t has_binaries;     /* an atom's text is a binary term */
};

/* `naming` of the image: addresses as linked. */
struct beam_naming {
	uint64_t atoms;         /* erts_atom_table.seg_table: a pointer */
	uint64_t assembler;     /* pointer to the BeamGlobalAssembler */
	uint64_t labels;        /* in it: the std::unordered_map of its labels' addresses; in the high half: process_main's label */
};

/* A process's memory, and what is known of it. */
struct beam_memory {
	const struct runtime_memory *memory;
	const struct sonde_beam *beam;
	const struct beam_row *row;
};

struct beam_found {
	uint64_t header;        /* of the module */
	uint64_t number;        /* of the function in it */
	uint64_t info, next;
	uint64_t mfa[3];        /* module, function, arity */
};

const struct beam_row *beam_row_of(uint32_t release); /* NULL: none */
MUST_CHECK int beam_read(const struct beam_memory *of, uint64_t from, void *to, size_t size);
/* Finds the function that a pc is in, as bpf/runtimes/beam/beam_code.h does. 0; -ENOENT: none; or as runtime_memory_fn. */
MUST_CHECK int beam_code_find(const struct beam_memory *of, uint64_t pc, struct beam_found *ret_found);
/* The line that a function's line table has for a pc, and that of its start; 0: not known. `ret_file`: the term of the file's name; 0: the
 * module's own file. */
MUST_CHECK int beam_code_line(const struct beam_memory *of, const struct beam_found *found, uint64_t pc, uint32_t *ret_line,
			      uint32_t *ret_start, uint64_t *ret_file);
/* Finds in process_main (beam_jit_main.cpp) where the assembler keeps the address of the code that it generated. A file that does not
 * export it: the only function that does the same. And the frame of its caller. 0, or -ENOENT. */
MUST_CHECK int beam_main_find(const struct elf_file *elf, struct sonde_beam *ret_beam, struct beam_naming *ret_naming);
/* Reads that code's range, and what it says; and beam_normal_exit, which is behind all of the shared code. 0; -EAGAIN: it is not there yet;
 * -EOPNOTSUPP: other code; or as runtime_memory_fn. */
MUST_CHECK int beam_main_read(const struct beam_memory *of, const struct beam_naming *naming, struct sonde_beam *beam);
/* Finds the table of modules' code, by erts_lookup_function_info's instructions, which must read a module's header as the row says; in a
 * file that does not export it: the only function that does. 0, or -ENOENT. */
MUST_CHECK int beam_lookup_find(const struct elf_file *elf, const struct beam_row *row, struct sonde_beam *ret_beam);
/* The begin of a function, as linked. */
struct beam_code {
	uint64_t start;
	size_t at, size;
	uint8_t bytes[1024];
};

/* Decodes the next instruction. 0, or -ENOENT: the function ends, or it is not known. */
MUST_CHECK int beam_code_next(struct beam_code *code, struct x86_instruction *ret_instruction);
/* A function that a file exports, or (name NULL, or not exported) the only one with a shape: `test` returns 0 for one that has it, and then
 * gives its result in `arg`. */
typedef int beam_shape_fn(const struct elf_file *elf, struct beam_code *code, void *arg);
/* 0, or -ENOENT: no function, or several. */
MUST_CHECK int beam_function_find(const struct elf_file *elf, const char *name, beam_shape_fn *test, void *arg, uint64_t *ret_vaddr);
/* Appends an atom's text. `atoms`: the table's segments, in the process. */
MUST_CHECK int beam_append_atom(const struct beam_memory *of, uint64_t atoms, uint64_t term, char *to, size_t size);
/* As struct runtime's `describe`. */
MUST_CHECK int beam_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
			     const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
