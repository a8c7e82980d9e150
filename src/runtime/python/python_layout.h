/* SPDX-License-Identifier: Apache-2.0 */
/* python_layout: where CPython keeps what frames are named by: the part of a layout that the kernel side does not need. Byte offsets in the
 * struct named; of each version from its own headers (Include/cpython/code.h, unicodeobject.h, bytesobject.h), DWARF, or what 3.13 and
 * newer say of themselves (Include/internal/pycore_debug_offsets.h). */
#pragma once
#include <stdint.h>

enum python_lines {
	PYTHON_LINES_LNOTAB, /* up to 3.9: co_lnotab, pairs of unsigned bytes and signed lines (Objects/lnotab_notes.txt) */
	PYTHON_LINES_310,    /* co_linetable of 3.10: the same pairs, -128 for none, ranges instead of points */
	PYTHON_LINES_311,    /* co_linetable of 3.11 and newer (Objects/locations.md) */
};

struct python_layout {
	/* PyCodeObject */
	uint16_t code_type_off;  /* of ob_type, in every object */
	uint16_t code_argcount, code_kwonlyargcount, code_flags, code_firstlineno;
	uint16_t code_filename, code_name, code_qualname; /* pointers to str; qualname 0: there is none (before 3.11) */
	uint16_t code_linetable; /* pointer to bytes: co_linetable or co_lnotab */
	uint16_t code_version;   /* co_version; 0: there is none (before 3.12) */
	uint16_t code_code;	 /* where the instructions are (3.11: inside of the code object), or the pointer to the bytes that hold them
				    (before) */
	uint16_t code_tlbc;      /* free-threaded 3.14 and newer: co_tlbc; 0: there is none */
	/* PyUnicodeObject */
	uint16_t unicode_length, unicode_state, unicode_ascii_bytes,
	    unicode_compact_bytes; /* the last two: sizes of PyASCIIObject, PyCompactUnicodeObject: data begin there */
	/* PyBytesObject */
	uint16_t bytes_size, bytes_data;
	uint8_t lines;           /* enum python_lines */
	uint8_t minor;           /* of 3.x; 7 of 2.7 is not supported */
	uint16_t pad;            /* zero: layouts are compared whole */
	uint64_t code_type;      /* as linked: PyCode_Type, what ob_type of every code object is; 0: not known */
};
