/* SPDX-License-Identifier: Apache-2.0 */
/* python_tables: how the data of CPython are laid out: by tables for 3.6 to 3.12, by what 3.13 and newer say of themselves. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/python.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "runtime/python/python_layout.h"

#define PYTHON_OLDEST_MINOR 6
#define PYTHON_NEWEST_MINOR 15

struct python_table {
	uint8_t minor;           /* of 3.x */
	uint8_t is_free_threaded;
	uint16_t type_basicsize; /* in PyTypeObject: tp_basicsize */
	uint16_t code_basicsize; /* what PyCode_Type's must be */
	uint16_t runtime_key;    /* in _PyRuntime: the pthread key that PyGILState_GetThisThreadState asks; 0: elsewhere */
	struct sonde_python python;
	struct python_layout layout;
};

/* The table of a minor version from 3.6 to 3.12. NULL: there is none. */
const struct python_table *python_table_of(uint32_t minor);
/* Reads the debug offsets (3.13 and newer) at `runtime_vaddr`, where _PyRuntime begins. 0; -ENOENT: there are none; -EOPNOTSUPP: they are
 * of another version, or make no sense: `reason` says so. */
MUST_CHECK int python_offsets_read(const struct elf_file *elf, uint64_t runtime_vaddr, uint32_t minor, struct python_table *ret_table,
				   char *reason, size_t reason_bytes);
/* Do the offsets of such a version fit together? `is_free_threaded` is told, what python_table_finish fills in is not looked at. */
bool python_offsets_fit(const struct python_table *table);
/* Could a file of that version have these offsets? Nothing in them is believed. */
bool python_tables_have(uint32_t minor, const struct sonde_python *python, const struct python_layout *layout);
/* Fills in what follows from the rest: the kinds, and how much of each struct is read. False: the offsets make no sense together. */
MUST_CHECK bool python_table_finish(struct python_table *table);
