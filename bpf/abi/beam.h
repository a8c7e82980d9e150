/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* beam: what the kernel side knows about a process with Erlang's BEAM, x86-64, with its JIT (BeamAsm). Erlang code runs on the Erlang
 * process's own stack, in its heap; C functions that it calls run on the thread's stack, at a fixed place: below the scheduler's registers
 * (struct ErtsSchedulerRegisters_, erl_process.h), which process_main keeps there.
 *
 * A frame's `code`: the function's name as atoms: module, and in the high half the function. `where`: the pc, the arity, and what it is
 * (enum sonde_beam_code). `cookie`: of where the function's code is; of a name that does not need that code any more. */
#pragma once
#include "runtime.h"

enum sonde_beam_code {
	SONDE_BEAM_FUNCTION = 1,
	SONDE_BEAM_SHARED,    /* code that all modules share, or a module's way to it */
	SONDE_BEAM_MAIN,      /* process_main: chooses the Erlang process that runs next */
};

#define SONDE_BEAM_PC_MASK ((1ULL << 48) - 1)
#define SONDE_BEAM_ARITY_SHIFT 48
#define SONDE_BEAM_EXACT (1ULL << 56) /* an interrupted instruction */
#define SONDE_BEAM_CODE_SHIFT 60
#define SONDE_BEAM_INFO_MFA 16        /* ErtsCodeInfo, before a function's code: module, function, arity */
#define SONDE_BEAM_INFO_BYTES 40
#define SONDE_BEAM_RANGES_BYTES 32    /* struct ranges (beam_ranges.c): Range *modules; Sint n; ...; a Range: start, end */
#define SONDE_BEAM_CODE_INDICES 3

struct sonde_beam {
	struct sonde_runtime_process process; /* `root`: the thread's ErtsSchedulerData */
	struct sonde_code_range main; /* process_main's code, which the JIT generated */
	__u64 ranges;           /* address of r[], the ranges of modules' code */
	__u64 active_index;     /* address of the_active_code_index */
	__u64 normal_exit;      /* where the outermost function of a process returns to */
	__u64 main_function;    /* process_main in the file, which jumps to that code */
	__u32 main_bytes;       /* stack that process_main takes before it aligns it to 64: the registers' size and 64 */
	__u16 current_process;  /* in ErtsSchedulerData */
	__u8 functions;         /* in a module's header: table of pointers to functions' ErtsCodeInfo; its size is the first word */
	__u8 stop;              /* in a process: the top of its stack, while C code runs */
	__u8 registers;         /* from the start of the scheduler's registers to where rbx points */
	__u8 has_frames;        /* rbp links the Erlang frames (+JPfp) */
	__u16 caller_frame;     /* of process_main's caller: from sp behind the call to where rbp points; 0: it uses no rbp */
	__u8 pad[4];            /* zero */
};
_Static_assert(sizeof(struct sonde_beam) == 48 + 16 + 32 + 16, "layout changed: bump SONDE_ABI_VERSION");

static inline __u32 sonde_beam_cookie(__u64 module, __u64 info, __u64 next)
{
	__u64 hash = (module ^ info * 3) * 0x9e3779b97f4a7c15ULL;

	hash = (hash ^ hash >> 32 ^ next) * 0x9e3779b97f4a7c15ULL;
	return (__u32)(hash >> 32);
}
