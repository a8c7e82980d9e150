/* SPDX-License-Identifier: Apache-2.0 */
/* beam_private: the parts of BEAM's folder. Layouts: erts/emulator/beam of that version: beam_code.h, atom.h, index.h, erl_process.h,
 * beam_ranges.c. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/beam.h"
#include "base/cleanup.h"
#include "runtime/runtime.h"

struct beam_row {
	uint8_t release;
	uint16_t current_process; /* in ErtsSchedulerData */
	uint8_t stop;             /* in Process */
	uint8_t functions, line_table; /* in BeamCodeHeader */
	uint8_t segments;         /* in IndexTable */
};

/* `naming` of the image: addresses as linked. */
struct beam_naming {
	uint64_t atoms;         /* erts_atom_table */
	uint64_t normal_exit;   /* beam_normal_exit: a pointer to code */
	uint64_t frame_layout;  /* erts_frame_layout: an int */
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
/* Finds the function that a pc is in, as bpf/runtimes/beam_code.h does. 0; -ENOENT: none; or as runtime_memory_fn. */
MUST_CHECK int beam_code_find(const struct beam_memory *of, uint64_t pc, struct beam_found *ret_found);
/* The line that a function's line table has for a pc, and that of its start; 0: not known. `ret_file`: the term of the file's name; 0: the
 * module's own file. */
MUST_CHECK int beam_code_line(const struct beam_memory *of, const struct beam_found *found, uint64_t pc, uint32_t *ret_line,
			      uint32_t *ret_start, uint64_t *ret_file);
/* Finds in process_main (beam_jit_main.cpp) where the assembler keeps the address of the code that it generated. 0, or -ENOENT. */
MUST_CHECK int beam_main_find(const struct elf_file *elf, uint64_t elf_vaddr, struct beam_naming *ret_naming);
/* Reads that code's range, and what it says. 0; -EAGAIN: it is not there yet; or as runtime_memory_fn. */
MUST_CHECK int beam_main_read(const struct beam_naming *naming, uint64_t load_bias, const struct runtime_memory *memory,
			      struct sonde_beam *beam);
/* As struct runtime's `describe`. */
MUST_CHECK int beam_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
			     const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
