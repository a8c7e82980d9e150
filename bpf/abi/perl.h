/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* perl: what the kernel side knows about a Perl process, and what its frames contain.
 *
 * Code and files of Perl may be freed a moment later (string evals, closures), and each instance of a closure has a CV of its own. So a
 * frame refers to what lasts, and carries the rest:
 *
 *   code    the location of the sub's name: its GV; with SONDE_PERL_CODE_CV its CV (CvNAMED: the name is in the CV itself, which is then no
 *           closure); or one of SONDE_PERL_CODE_*
 *   where   bits 0 to 47: cop_file, the address of the file's name (without threads cop_filegv, a GV), or SONDE_PERL_FILE_*; from bit 48
 *           on: the low 16 bits of the line
 *   cookie  bits 0 to 3: bits 16 to 19 of the line; bits 4 to 23: for an anonymous sub, the line of its first statement; bits 24 to 31:
 *           SONDE_PERL_CHECK of the file's name
 *
 * A line is 0 if it is not known or is 1 << 20 or more.
 *
 * Struct layouts (cop.h, cv.h, sv.h, op.h of 5.32, 5.36, 5.40 and 5.42; tools/perl_layout.c asserts them) have not changed since 5.32,
 * except for the offsets in the interpreter. */
#pragma once
#include "runtime.h"

#define SONDE_PERL_CODE_MAIN 0    /* the main program */
#define SONDE_PERL_CODE_EVAL 8    /* the text of a string eval */
#define SONDE_PERL_CODE_FILE 16   /* a file's own code: require, do, use */
#define SONDE_PERL_CODE_CV 1      /* a bit */

#define SONDE_PERL_FILE_UNKNOWN 0
/* "(eval 12)", for any number: Perl counts evals, and the text of each is at an address of its own */
#define SONDE_PERL_FILE_EVAL 1

#define SONDE_PERL_FILE_MASK ((1ULL << 48) - 1)
#define SONDE_PERL_MAX_LINE ((1U << 20) - 1)

/* Of the first bytes of a file's name, zero-padded. */
#define SONDE_PERL_CHECK(text) ((__u32)((text) * 0x9e3779b97f4a7c15ULL >> 56))

#define SONDE_PERL_SI_CXSTACK 8
#define SONDE_PERL_SI_PREV 16
#define SONDE_PERL_SI_CXIX 32
#define SONDE_PERL_SI_TYPE 44
#define SONDE_PERL_SI_BYTES 48
#define SONDE_PERL_SI_IS_MAIN 1       /* PERLSI_MAIN, ... */
#define SONDE_PERL_SI_IS_SORT 3
#define SONDE_PERL_SI_IS_MULTICALL 10

#define SONDE_PERL_CX_BYTES 104
#define SONDE_PERL_CX_OLDCOP 16
#define SONDE_PERL_CX_RETOP 48
#define SONDE_PERL_CX_CV 72           /* of a sub or format */
#define SONDE_PERL_CX_TYPE_MASK 15
#define SONDE_PERL_CX_NULL 0
#define SONDE_PERL_CX_BLOCK 2
#define SONDE_PERL_CX_SUB 9
#define SONDE_PERL_CX_FORMAT 10
#define SONDE_PERL_CX_EVAL 11
#define SONDE_PERL_CX_EVAL_TEXT 0x20  /* CXp_REAL, of EVAL */
#define SONDE_PERL_CX_EVAL_BLOCK 0x40 /* CXp_EVALBLOCK, of EVAL: also of C code that catches errors */
#define SONDE_PERL_CX_SUB_RE 0x40     /* CXp_SUB_RE, of SUB: code in a regular expression */
#define SONDE_PERL_CX_SUB_FAKE 0x80   /* CXp_SUB_RE_FAKE, likewise: of a sub that is already there */

#define SONDE_PERL_OP_TYPE 32         /* a 9-bit number in struct op */
#define SONDE_PERL_OP_TYPE_MASK 511
#define SONDE_PERL_COP_LINE 36
#define SONDE_PERL_COP_FILE 48

#define SONDE_PERL_SV_ANY 0
#define SONDE_PERL_SV_FLAGS 12
#define SONDE_PERL_SV_U 16
#define SONDE_PERL_SV_TYPE_MASK 255
#define SONDE_PERL_SVT_GV 9
#define SONDE_PERL_SVT_HV 12
#define SONDE_PERL_SVT_CV 13
#define SONDE_PERL_SVT_FM 14

#define SONDE_PERL_XPVCV_STASH 32
#define SONDE_PERL_XPVCV_START 40
#define SONDE_PERL_XPVCV_GV 56        /* or, with NAMED, a HEK */
#define SONDE_PERL_XPVCV_FLAGS 92
#define SONDE_PERL_CV_ANON 0x80
#define SONDE_PERL_CV_ISXSUB 0x8
#define SONDE_PERL_CV_NAMED 0x8000
#define SONDE_PERL_CV_LEXICAL 0x10000

#define SONDE_PERL_INTERPRETER_BYTES 256 /* its first bytes, which hold op, curcop and curstackinfo */

struct sonde_perl {
	struct sonde_runtime_process process; /* root: the thread's struct interpreter; kind NONE: built without threads */
	__u64 op_pc, curcop_pc, curstackinfo_pc, top_env_pc; /* without threads: addresses of PL_op, ... */
	__u16 interpreter_op, interpreter_curcop, interpreter_curstackinfo,
	    interpreter_top_env;  /* with threads: byte offsets in struct interpreter; top_env 0: not known */
	__u16 op_nextstate;       /* number of this operation; the next is OP_DBSTATE */
	__u16 interpreter_cop_seqmax; /* in struct interpreter: a u32 that grows with each block that is compiled; 0: not known */
	__u16 interpreter_bytes;  /* of struct interpreter, which holds PL_compiling; 0: not known */
	__u16 pad;                /* zero */
	struct sonde_code_range loops[SONDE_MAX_LOOPS]; /* Perl_runops_standard, Perl_runops_debug */
};
