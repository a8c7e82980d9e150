/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* php: what the kernel side knows about a PHP process. A frame's `code` is the zend_function; `where` is the line (0: not known) with flags
 * above; `cookie` is php_cookie below.
 *
 * The layouts here are the same from PHP 7.4 to 8.5 (Zend/zend_compile.h, zend_types.h; tools/php_layout.c asserts them against the headers
 * of a version). The other offsets are in struct sonde_php. */
#pragma once
#include "runtime.h"

/* zend_execute_data */
#define SONDE_PHP_EX_OPLINE 0
#define SONDE_PHP_EX_RETURN 16    /* return_value; in a generator's code: the zend_generator */
#define SONDE_PHP_EX_FUNC 24
#define SONDE_PHP_EX_THIS 32      /* a zval: value, u32 type_info, u32 number of arguments */
#define SONDE_PHP_EX_PREV 48
#define SONDE_PHP_EX_BYTES 56     /* its first bytes, which hold all of these */
/* This.type_info */
#define SONDE_PHP_TYPE_MASK 0xff
#define SONDE_PHP_IS_OBJECT 8
#define SONDE_PHP_CALL_CODE (1u << 16)  /* the code of a file or eval outside of functions */
#define SONDE_PHP_CALL_TOP (1u << 17)   /* called from C: PHP code then has its own activation of execute_ex */
#define SONDE_PHP_CALL_GENERATOR (1u << 24)
/* zend_generator: flags is a byte */
#define SONDE_PHP_GENERATOR_RUNS 1
/* zend_function: type is a byte at 0 */
#define SONDE_PHP_FN_FLAGS 4
#define SONDE_PHP_FN_NAME 8
#define SONDE_PHP_FN_SCOPE 16
#define SONDE_PHP_FN_BYTES 24
#define SONDE_PHP_INTERNAL 1      /* written in C */
#define SONDE_PHP_USER 2
#define SONDE_PHP_EVAL 4
#define SONDE_PHP_FN_TRAMPOLINE (1u << 18) /* of fn_flags: ZEND_ACC_CALL_VIA_TRAMPOLINE */
/* zend_op */
#define SONDE_PHP_OP_LINE 24
#define SONDE_PHP_OP_BYTES 32
/* zend_string, zend_class_entry */
#define SONDE_PHP_STRING_LENGTH 16
#define SONDE_PHP_STRING_TEXT 24
#define SONDE_PHP_CLASS_NAME 8

#define SONDE_PHP_LINE_MASK 0xffffffffULL /* of `where` */
#define SONDE_PHP_WHERE_INCLUDED (1ULL << 32) /* a file's code, run by include or require */

#define SONDE_PHP_OP_ARRAY_BYTES 192      /* first bytes of zend_op_array, which hold what is read of it */

struct sonde_php { /* byte offsets */
	struct sonde_runtime_process process; /* root: EG(current_execute_data), a global pointer */
	__u64 sapi_pc;             /* sapi_module, whose first word points to its name; 0: not exported */
	struct sonde_code_range loops[SONDE_MAX_LOOPS]; /* of execute_ex, with its cold part; then `compiled` */
	struct sonde_code_range compiled; /* JIT code of opcache, which runs on execute_ex's frame; both 0: none */
	__u16 op_array_last;       /* in zend_op_array: number of opcodes */
	__u16 op_array_opcodes;
	__u16 op_array_filename;
	__u16 op_array_line_start;
	__u16 generator_execute_data; /* in zend_generator */
	__u16 generator_parent;    /* node.parent */
	__u16 generator_fake;      /* execute_fake */
	__u16 generator_flags;
	__u32 fn_closure;          /* of fn_flags: ZEND_ACC_CLOSURE; the next bit: ZEND_ACC_FAKE_CLOSURE, of a named one; 0: not known */
	__u8 opline_reg;           /* DWARF numbers of the registers where execute_ex keeps the opline and the execute_data; 0xff: none */
	__u8 frame_reg;
	__u8 is_one_request;       /* the process serves a single one: PHP's command line */
	__u8 pad;
};

/* Tells functions at the same address apart: by where their names are, and where they begin. */
static inline __u32 php_cookie(__u64 name, __u64 filename, __u32 line_start)
{
	__u64 hash = (name * 31 ^ filename) * 0x9e3779b97f4a7c15ULL;

	return (__u32)(hash >> 32) ^ line_start;
}
