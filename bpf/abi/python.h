/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel side knows of a CPython process. A frame's `code` is the PyCodeObject (or PyFrameObject's f_code); `where` is the byte offset of the instruction from the first one
 * of the code, as co_lines() counts; `cookie` is co_firstlineno ^ co_flags << 16 ^ co_argcount << 8 ^ co_kwonlyargcount << 4. */
#pragma once
#include "runtime.h"

enum sonde_python_kind {
	SONDE_PYTHON_FRAMES,      /* up to 3.10: PyFrameObject, each with an activation of the loop of its own */
	SONDE_PYTHON_CFRAMES,     /* 3.11: _PyInterpreterFrame; a run ends where is_entry is set, its _PyCFrame is on the native stack */
	SONDE_PYTHON_SHIMS,       /* 3.12 and newer: a run ends in a shim frame that is itself on the native stack */
};

struct sonde_python { /* byte offsets */
	struct sonde_runtime_process process; /* root: the thread's PyThreadState, or what leads to it */
	__u64 current_pc;         /* up to 3.11: address of _PyRuntime.gilstate.tstate_current (3.6: _PyThreadState_Current): of the thread that holds the GIL, right also for
	                           * subinterpreters, when its thread_id is the thread pointer; 0: none */
	__u16 tstate_frame;       /* in PyThreadState: frame, cframe or current_frame */
	__u16 tstate_thread_id;   /* pthread_self() of its thread */
	__u16 cframe_frame;       /* in _PyCFrame: current_frame; 0xffff: there are no cframes */
	__u16 cframe_previous;
	__u16 frame_code, frame_back, frame_position; /* f_code or f_executable; f_back or previous; f_lasti, prev_instr or instr_ptr */
	__u16 frame_owner;        /* owner, or is_entry of 3.11 */
	__u16 frame_bytes;        /* so many from its begin on hold all of these */
	__u16 code_firstlineno, code_flags, code_argcount, code_kwonlyargcount;
	__u16 code_code;          /* co_code_adaptive; the instructions of 3.11 and newer */
	__u16 code_bytes;         /* so many from its begin on hold what the cookie is made of */
	__u16 frame_tlbc, code_tlbc; /* free-threaded: which copy of the bytecode the frame runs; 0xffff: none */
	__u8 kind;                /* enum sonde_python_kind */
	__u8 position_unit;       /* position is: 0: bytes, 1: units of two bytes, 2: the address of the instruction */
	__u8 shim_owner;          /* a frame with this owner or a greater one is a shim */
	__u8 cstack_mask;         /* bits of a code pointer that are no part of it: 3 with _PyStackRef, else 0 */
	struct sonde_code_range loops[SONDE_MAX_LOOPS]; /* FRAMES: of _PyEval_EvalFrameDefault */
};
