/* SPDX-License-Identifier: Apache-2.0 */
/* python_tables: the data layout of CPython: by tables for 3.6 to 3.12, by the debug offsets of 3.13 and newer. */
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
	uint16_t code_basicsize; /* expected value in PyCode_Type */
	uint16_t runtime_key;    /* in _PyRuntime: the pthread key that PyGILState_GetThisThreadState uses; 0: elsewhere */
	struct sonde_python python;
	struct python_layout layout;
};

/* The table of a minor version from 3.6 to 3.12. NULL: there is none. */
const struct python_table *python_table_of(uint32_t minor);
/* Reads the debug offsets (3.13 and newer) at `runtime_vaddr`, the address of _PyRuntime. 0; -ENOENT: there are none; -EOPNOTSUPP: they are
 * of another version or inconsistent: `reason` says so. */
MUST_CHECK int python_offsets_read(const struct elf_file *elf, uint64_t runtime_vaddr, uint32_t minor, struct python_table *ret_table,
				   char *reason, size_t reason_bytes);
/* True: the offsets of such a version are consistent. `is_free_threaded` must be set; fields that python_table_finish fills in are
 * ignored. */
bool python_offsets_fit(const struct python_table *table);
/* True: a file of that version could have these offsets, which are untrusted. */
bool python_tables_have(uint32_t minor, const struct sonde_python *python, const struct python_layout *layout);
/* Fills in what follows from the rest: the kinds, and the size to read of each struct. False: the offsets are inconsistent. */
MUST_CHECK bool python_table_finish(struct python_table *table);
