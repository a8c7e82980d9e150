/* SPDX-License-Identifier: Apache-2.0 */
/* v8_layout: where V8's objects have their fields. V8 states most of it in constants for debuggers (v8dbg_*, made by its
 * tools/gen-postmortem-metadata.py), the rest is in a table by version. Read from the file alone. */
#pragma once
#include <stdbool.h>

#include "abi/v8.h"
#include "runtime/runtime.h"
#include "runtime/v8/v8_file.h"

/* What resolving frames needs besides what the kernel side knows. Offsets of fields; `index`: of elements of an array. */
struct v8_layout {
	uint64_t builtins, builtins_bytes;   /* their code, as linked */
	uint64_t metadata;                   /* struct BuiltinMetadata[]; place adds the load bias to this */
	uint16_t not_string;                 /* instance types: mask that is 0 for strings */
	uint16_t type_scope, type_shared;
	uint8_t script_name, script_source, script_line_ends;
	uint8_t string_length, string_one, string_two, cons_first, cons_second, sliced_parent, sliced_offset, thin_actual, external_data;
	uint8_t array_data;                  /* FixedArray and the like: its elements; the length is before them */
	uint8_t bytecode_positions, code_positions;
	uint8_t scope_locals, scope_first;   /* index of the number of local variables, of their names */
	uint8_t data_literals, data_inlined; /* index in deoptimization data */
	uint8_t version;                     /* number of the version in the table */
	uint8_t position_bits;               /* below an offset of code in a table of positions */
	uint8_t pad[5];
};

/* What is known of a process: the kernel side's part first. */
struct v8_process {
	struct sonde_v8 v8;
	struct v8_layout layout;
};
_Static_assert(sizeof(struct v8_process) <= sizeof(union sonde_runtime_known), "no room");

/* Fills in all that constants and the table say. 0; -EOPNOTSUPP: *ret_why says why. */
MUST_CHECK int v8_layout_read(const struct v8_file *file, const uint8_t version[3], struct v8_process *process, const char **ret_why);
/* True: v8_layout_read could have made it. */
bool v8_layout_is_sound(const struct v8_process *process);
