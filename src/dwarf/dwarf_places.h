/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_places: what a probe needs of a program's DWARF, by libdw: where a source line's code is, and the arguments of a function at its
 * entry. For files that the user names: the file is read in this process, as libbpf does it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define DWARF_MAX_PLACES 64

/* The first instruction of a line in each function that has code of it, and in each copy of an inlined one. `source`: "main.c", or with
 * folders. ret_file_offs: bytes in the file, DWARF_MAX_PLACES at most. 0; -ENODATA: no DWARF; -ENOENT: no such source, or no code at that
 * line: diag has the next line with code; -E2BIG: more places. */
MUST_CHECK int dwarf_line_places(const char *path, const char *source, uint32_t line, struct diag *diag, uint64_t *ret_file_offs,
				 uint32_t *ret_nr);

#define DWARF_ARGS	6 /* in registers */
#define DWARF_ARG_BYTES 48

struct dwarf_args {
	struct {
		char name[DWARF_ARG_BYTES], type[DWARF_ARG_BYTES];
		uint8_t number; /* of the register: arguments of floating point have others */
		uint8_t bytes;
		bool is_signed, is_text; /* is_text: the address of one */
	} list[DWARF_ARGS];
	uint32_t nr; /* up to the first that is not in a register of its own: a struct, or what is on the stack */
	uint8_t result_bytes; /* of what it returns, a number or an address; 0: not known */
	bool result_is_signed, result_is_address;
};

/* By a function's name, as linked or as DWARF has it. No arguments: it has none, or where they are is not known: the language is not C's
 * kin, the compiler has changed the call, or several functions have the name. 0; -ENODATA: no DWARF, or it does not have the function. */
MUST_CHECK int dwarf_function_args(const char *path, const char *function, struct dwarf_args *ret_args);
