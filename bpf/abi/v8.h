/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* v8: what the kernel side knows about a process with V8. Offsets come from V8's own constants (v8dbg_*, src/runtime/v8/v8_layout.c), those
 * that it does not state from tables. Pointers to objects have the lowest bit set; all offsets here are from the object's start.
 *
 * A frame's `code` and `where` depend on what it is (enum sonde_v8_code, the top byte of `where`); the rest of `where`:
 *   BYTECODE     code: the SharedFunctionInfo; offset of the bytecode that is run or has called
 *   BASELINE     code: the SharedFunctionInfo; pc, with SONDE_V8_EXACT at an interrupted instruction
 *   OPTIMIZED    likewise
 *   BUILTIN      code: 0; offset of the pc in the builtins' code; likewise
 *   OTHER        code: 0; the code's kind (bytecode handlers, regular expressions, ...)
 *   FUNCTION     code: the SharedFunctionInfo; the position is not known
 *   marks: WASM, UNKNOWN
 * `cookie`: of what says which function it is, and which code (sonde_v8_cookie); else 0. */
#pragma once
#include "runtime.h"

enum sonde_v8_code {
	SONDE_V8_BYTECODE = 1,
	SONDE_V8_BASELINE,
	SONDE_V8_OPTIMIZED,
	SONDE_V8_BUILTIN,
	SONDE_V8_OTHER,
	SONDE_V8_FUNCTION,
	SONDE_V8_WASM,
	SONDE_V8_UNKNOWN, /* a function that has no frame now, or moved: its caller is known, it is not */
};

#define SONDE_V8_CODE_SHIFT 56
#define SONDE_V8_EXACT (1ULL << 55)
#define SONDE_V8_TAG 1
#define SONDE_V8_ENTRIES 7      /* builtins whose frame is a function's, interpreted or of baseline code */
#define SONDE_V8_LEAVES 6       /* of these: it removes the frame of baseline code that has jumped to it */
#define SONDE_V8_BARE 9         /* builtins that call a function by a jump: none has a frame while its return address is at sp */
#define SONDE_V8_COPIES 2       /* of the builtins that are found at once: the file's own, and one near a heap's code */
#define SONDE_V8_OBJECT_BYTES 128 /* what is read of one object is less */
#define SONDE_V8_KIND_MASK 15   /* of a code object's flags */

struct sonde_v8_entry {
	__u32 start, end; /* offsets in the builtins; both 0: none */
};

struct sonde_v8 {
	struct sonde_runtime_process process;
	struct sonde_code_range builtins[SONDE_V8_COPIES];
	__u64 table;             /* address of V8's table of the places of builtins; each begins with its offset and its size */
	__u32 nr_builtins, table_stride;
	struct sonde_v8_entry entries[SONDE_V8_ENTRIES], bare[SONDE_V8_BARE];
	__u32 handlers;          /* offset in the builtins: the bytecodes' handlers follow, to the end */
	__u32 wasm_marker;       /* of WebAssembly's frames, in place of a context */
	__u16 code_type;         /* instance type of the object that contains instructions */
	__u16 bytecodes_type;    /* of a BytecodeArray */
	__u16 script_type;       /* of a Script */
	__u16 map_type;          /* offset of a map's instance type */
	__u8 function_shared;    /* JSFunction */
	__u8 shared_name, shared_script, shared_flags; /* SharedFunctionInfo; the function's number in its script is behind the flags */
	__u8 script_id;
	__u8 code_bytes;         /* from the start of the object that contains instructions to these */
	__u8 has_code;           /* that object only points to the one that describes the code; else it is this one */
	__u8 code_start;         /* in that one: address of the instructions; if has_code */
	__u8 code_flags, code_size, code_data; /* code_data: deoptimization data, or the bytecodes */
	__u8 data_id;            /* in deoptimization data: the number of the compilation */
	__u8 kind_baseline;      /* of the flags' kinds; those up to kind_last are optimized */
	__u8 kind_last;
	__u8 bytecode_data;      /* offset of the bytecodes in their array */
	__u8 has_wrapper;        /* what is behind data_id, the function that was compiled: by an object that leads to it */
};
_Static_assert(sizeof(struct sonde_v8) == 48 + 32 + 16 + 56 + 72 + 32, "layout changed: bump SONDE_ABI_VERSION");

/* What tells a function, and a piece of its code, from later ones at the same address. A script's id and a compilation's are never used
 * twice in an isolate; the addresses tell isolates apart. */
struct sonde_v8_identity {
	__u64 map, name, script, script_id, number; /* of the SharedFunctionInfo */
	__u64 code, data, compilation;              /* of the code; 0: interpreted */
};

static inline __u32 sonde_v8_cookie(const struct sonde_v8_identity *of)
{
	const __u64 *words = &of->map;
	__u64 hash = 0;

	for (unsigned long i = 0; i < sizeof(*of) / sizeof(*words); i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return (__u32)hash;
}
