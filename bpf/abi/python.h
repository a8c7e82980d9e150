/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* python: what the kernel side knows about a CPython process. A frame's `code` is the PyCodeObject (or PyFrameObject's f_code). `where` is
 * the byte offset of the instruction from the first one of the code, as co_lines() counts. `cookie` is sonde_python_cookie: code from
 * exec() or eval() is freed at once, and the next code may be at the same address. From 3.12 on code objects are numbered (co_version), so
 * the cookie identifies one object. Before, it is built from the addresses of the object's parts, which the next code often has, too, and
 * from the hash of its name, which the compiler computes when it interns co_name. */
#pragma once
#include "runtime.h"

enum sonde_python_kind {
	/* up to 3.10: PyFrameObject, each with its own activation of the loop (3.10: and its CFrame on the native stack) */
	SONDE_PYTHON_FRAMES,
	SONDE_PYTHON_CFRAMES, /* 3.11: _PyInterpreterFrame; a run ends where is_entry is set, its _PyCFrame is on the native stack */
	SONDE_PYTHON_SHIMS,   /* 3.12 and newer: a run ends in a shim frame that is itself on the native stack */
};

enum sonde_python_position { /* the unit of a frame's position */
	SONDE_PYTHON_BYTES,
	SONDE_PYTHON_UNITS,       /* of two bytes */
	SONDE_PYTHON_ADDRESS,     /* of the instruction */
};

#define SONDE_PYTHON_NONE 0xffff      /* instead of an offset: no such field */
#define SONDE_PYTHON_MAX_BYTES 504    /* read this much of each struct, so all offsets lie in it */

struct sonde_python { /* byte offsets */
	/* root: the PyThreadState that PyGILState_GetThisThreadState gives, also while the thread does not hold the GIL */
	struct sonde_runtime_process process;
	/* The running PyThreadState. Tried first, as it is right for subinterpreters too. Up to 3.11 GLOBAL: that of the thread that holds
	 * the GIL, which is this thread if its thread_id is the thread pointer. 3.12 and newer: the thread's own, 0 if it does not hold the
	 * GIL. */
	struct sonde_tls current;
	__u64 code_type;          /* PyCode_Type, the type of every code object; 0: not known */
	__u16 tstate_frame;       /* in PyThreadState: frame, cframe or current_frame */
	__u16 tstate_cframe;      /* likewise; NONE: there are no cframes */
	__u16 tstate_thread_id;   /* pthread_self() of its thread */
	__u16 tstate_bytes;
	__u16 cframe_frame;       /* in the cframe: current_frame; NONE: tstate_frame leads to the frame itself */
	__u16 cframe_previous;
	__u16 frame_code, frame_back, frame_position; /* f_code or f_executable; f_back or previous; f_lasti, prev_instr or instr_ptr */
	__u16 frame_owner;        /* owner, or is_entry of 3.11 */
	__u16 frame_tlbc;         /* free-threaded 3.14: which copy of the bytecode the frame runs */
	__u16 frame_bytes;
	__u16 code_type_off;      /* ob_type */
	__u16 code_linetable;     /* co_linetable, co_lnotab */
	__u16 code_firstlineno, code_flags, code_argcount, code_kwonlyargcount;
	__u16 code_name;          /* co_qualname, before 3.11 co_name */
	__u16 code_filename;
	__u16 code_version;       /* NONE before 3.12 */
	__u16 code_code;          /* co_code_adaptive; the instructions of 3.11 and newer */
	__u16 code_tlbc;          /* co_tlbc: the copies of the bytecode */
	__u16 code_bytes;
	__u8 kind;                /* enum sonde_python_kind */
	__u8 position;            /* enum sonde_python_position */
	__u8 shim_owner;          /* a frame with this owner or a higher one is a shim */
	__u8 code_tags;           /* bits of a code pointer to mask off: 3 with _PyStackRef, else 0 */
	/* In PyInterpreterState: the number that the next code object gets (func_state.next_version); 0: not known. */
	__u32 interpreter_made;
	/* of _PyEval_EvalFrameDefault: FRAMES are paired by these if there are no cframes */
	struct sonde_code_range loops[SONDE_MAX_LOOPS];
};
_Static_assert(sizeof(struct sonde_python) == 48 + 32 + 8 + 48 + 8 + 64, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_python_code {
	__u64 linetable, name, filename; /* addresses */
	__u32 firstlineno, flags, argcount, kwonlyargcount;
	__u32 version;                   /* 0: none */
	__u64 name_hash;                 /* of co_name; 0: not read, there is a version */
};

#define SONDE_PYTHON_HASH_OFF 16 /* in str, from ob_type on: `length`, then `hash` (PyASCIIObject) */

static inline __u32 sonde_python_cookie(const struct sonde_python_code *code)
{
	__u32 cookie = code->version ^ (__u32)(code->linetable >> 4);

	cookie = cookie * 0x9e3779b1 ^ (__u32)(code->name >> 4);
	cookie = cookie * 0x9e3779b1 ^ (__u32)(code->filename >> 4);
	cookie = cookie * 0x9e3779b1 ^ (__u32)(code->name_hash ^ code->name_hash >> 32);
	return cookie * 0x9e3779b1 ^ code->firstlineno ^ code->flags << 16 ^ code->argcount << 8 ^ code->kwonlyargcount << 4;
}
