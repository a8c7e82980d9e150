/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ruby: what the kernel side knows about a process that runs Ruby (CRuby). A frame's `code` is its iseq and `where` the number of
 * instruction words before its pc, or SONDE_RUBY_NO_POSITION; or, for a method written in C, `code` is its method entry with
 * SONDE_RUBY_CODE_C. `cookie` is ruby_cookie below.
 *
 * Layouts: vm_core.h, method.h, internal/imemo.h of Ruby 2.7 to 3.4. What differs between versions is in struct sonde_ruby. */
#pragma once
#include "runtime.h"

#define SONDE_RUBY_NO_POSITION (~0ULL)
#define SONDE_RUBY_CODE_C 1 /* a method entry is 8-byte aligned */

/* rb_execution_context_t: vm_stack, vm_stack_size in words, cfp; machine, at an offset that differs: where the native stack begins
 * (its highest address), a word, its size in bytes */
#define SONDE_RUBY_EC_BYTES 192
#define SONDE_RUBY_MACHINE_SIZE 16
#define SONDE_RUBY_MAX_STACK_WORDS (1ULL << 30)
/* rb_control_frame_t */
#define SONDE_RUBY_CFP_PC 0
#define SONDE_RUBY_CFP_ISEQ 16
#define SONDE_RUBY_CFP_EP 32
#define SONDE_RUBY_CFP_MAX_BYTES 64
/* below and at ep: the method entry (or what holds it), a word, the flags */
#define SONDE_RUBY_EP_ME 16
#define SONDE_RUBY_FRAME_FINISH 0x20  /* called from C: has its own activation of rb_vm_exec */
#define SONDE_RUBY_FRAME_C 0x80       /* has no iseq */
#define SONDE_RUBY_FRAME_MASK 0x7fff0001
#define SONDE_RUBY_FRAME_CFUNC 0x55550001
/* rb_iseq_t; its body up to the label */
#define SONDE_RUBY_ISEQ_BODY 16
#define SONDE_RUBY_BODY_ENCODED 8
#define SONDE_RUBY_BODY_PATH 64
#define SONDE_RUBY_BODY_LABEL 80
#define SONDE_RUBY_BODY_BYTES 88
/* objects in general; rb_callable_method_entry_t; struct vm_svar */
#define SONDE_RUBY_TYPE_MASK 0x1f
#define SONDE_RUBY_T_IMEMO 0x1a
#define SONDE_RUBY_IMEMO_SHIFT 12
#define SONDE_RUBY_IMEMO_MASK 15
#define SONDE_RUBY_IMEMO_SVAR 2
#define SONDE_RUBY_IMEMO_ME 6
#define SONDE_RUBY_SVAR_ME 8
#define SONDE_RUBY_ME_DEF 16
#define SONDE_RUBY_ME_CALLED_ID 24
#define SONDE_RUBY_ME_BYTES 32

struct sonde_ruby {
	struct sonde_runtime_process process; /* root: the thread's rb_execution_context_t */
	struct sonde_code_range loops[SONDE_MAX_LOOPS]; /* rb_vm_exec */
	struct sonde_code_range core; /* vm_exec_core, which that calls to run instructions; both 0: it is a part of rb_vm_exec */
	__u32 cfp_bytes, ec_machine;
	__u32 cfp_jit_return; /* 0: there is none */
	__u32 pad;            /* zero */
	__u64 gc_count;       /* address of the number of the garbage collector's last run; 0: what frames' code says is not kept */
	__u64 gc_flags;       /* of a byte whose lowest bits say what it does now */
};
#define SONDE_RUBY_GC_MODE_MASK 3
#define SONDE_RUBY_GC_NONE 0
#define SONDE_RUBY_GC_SWEEPING 2
#define SONDE_RUBY_GC_COMPACTS 0x40 /* it moves what it does not free */

/* Tells code at the same address apart: by its body, instructions and label; a method entry by its definition and name. */
static inline __u32 ruby_cookie(__u64 a, __u64 b, __u64 c)
{
	__u64 hash = ((a * 31 ^ b) * 31 ^ c) * 0x9e3779b97f4a7c15ULL;

	return (__u32)(hash >> 32);
}
