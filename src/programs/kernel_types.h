/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_types: the arguments of tracepoints and functions of the running kernel and its modules, and values behind them, by BTF. One
 * thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/probe.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"

struct btf;
struct kernel_types;
/* 0; -EOPNOTSUPP: this kernel has no BTF of itself. */
MUST_CHECK int kernel_types_new(struct diag *diag, struct kernel_types **ret_types);
void kernel_types_free(struct kernel_types *types); /* takes NULL */

struct kernel_args {		/* borrows from the types */
	const struct btf *btf; /* the kernel's or a module's; NULL: they are a system call's or a program's */
	uint32_t nr;
	struct {
		const char *name;
		uint32_t type;	       /* in BTF */
		/* without BTF */
		const char *type_text; /* as C has it */
		uint8_t number, bytes; /* of the argument among all; of its value */
		bool is_signed;
		bool is_user_text; /* the address of a text in the program */
	} list[SONDE_PROBE_ARGS];
	uint32_t result; /* type of a function's result; 0: none */
};

/* 0; -ENOENT: there is no such tracepoint or function. */
MUST_CHECK int kernel_types_tracepoint(struct kernel_types *types, const char *name, struct kernel_args *ret_args);
MUST_CHECK int kernel_types_function(struct kernel_types *types, const char *name, struct kernel_args *ret_args);
/* The arguments of a system call, by tracefs; none: it has none, or there is no tracefs. */
void kernel_types_call(struct kernel_types *types, const char *call, struct kernel_args *ret_args);
/* Where they are from, in words; NULL: nobody has asked. */
const char *kernel_types_of_calls(const struct kernel_types *types);
/* Is a function with these arguments the handler of an interrupt? */
bool kernel_types_is_handler(const struct kernel_args *args);
/* Finds "prev", "prev.pid" or "prev->mm.start_stack", from an argument on. 0; -EINVAL with what there is; *ret_is_address: a number for
 * which hexadecimal is usual. */
MUST_CHECK int kernel_types_field(const struct kernel_args *args, const char *text, struct diag *diag, struct sonde_probe_field *ret_field,
				  bool *ret_is_address);
/* Of a function's result: its width and sign. Leaves the field as it is if they are not known, or it is no number. */
void kernel_types_result(const struct kernel_args *args, struct sonde_probe_field *field, bool *ret_is_address);
/* Is the argument the address of a text? */
bool kernel_types_is_text(const struct kernel_args *args, uint32_t i);
/* Appends "int pid, const char *name". */
void kernel_types_text(const struct kernel_args *args, struct buffer *text);

struct kernel_cursor { /* zeros at the begin */
	uint32_t btf, id;
};
/* The next tracepoint's name; borrowed. NULL: there are no more. */
const char *kernel_types_next_tracepoint(const struct kernel_types *types, struct kernel_cursor *cursor);
