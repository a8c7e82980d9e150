/* SPDX-License-Identifier: Apache-2.0 */
/* python_layout: the part of CPython's data layout that only resolving frames needs. Byte offsets in the named struct, from each version's
 * headers (Include/cpython/code.h, unicodeobject.h, bytesobject.h), from DWARF, or from the debug offsets of 3.13 and newer
 * (Include/internal/pycore_debug_offsets.h). */
#pragma once
#include <stdint.h>

enum python_lines {
	PYTHON_LINES_LNOTAB, /* up to 3.9: co_lnotab, pairs of unsigned bytes and signed lines (Objects/lnotab_notes.txt) */
	PYTHON_LINES_310,    /* co_linetable of 3.10: the same pairs for ranges instead of points, -128: no line */
	PYTHON_LINES_311,    /* co_linetable of 3.11 and newer (Objects/locations.md) */
};

struct python_layout {
	/* PyCodeObject */
	uint16_t code_type_off;  /* ob_type, in every object */
	uint16_t code_argcount, code_kwonlyargcount, code_flags, code_firstlineno;
	uint16_t code_filename, code_name, code_qualname; /* pointers to str; qualname 0: there is none (before 3.11) */
	uint16_t code_linetable; /* pointer to bytes: co_linetable or co_lnotab */
	uint16_t code_version;   /* co_version; 0: there is none (before 3.12) */
	uint16_t code_code;	 /* the instructions (3.11 and newer: in the code object); before, a pointer to bytes with them */
	uint16_t code_tlbc;      /* free-threaded 3.14 and newer: co_tlbc; 0: there is none */
	/* PyUnicodeObject */
	uint16_t unicode_length, unicode_state, unicode_ascii_bytes,
	    unicode_compact_bytes; /* the last two: sizes of PyASCIIObject and PyCompactUnicodeObject; the data follow */
	/* PyBytesObject */
	uint16_t bytes_size, bytes_data;
	uint8_t lines;           /* enum python_lines */
	uint8_t minor;           /* of 3.x */
	uint16_t pad;            /* zero: layouts are compared whole */
	uint64_t code_type;      /* as linked: PyCode_Type, the ob_type of every code object; 0: not known */
};
