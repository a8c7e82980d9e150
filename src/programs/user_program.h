/* SPDX-License-Identifier: Apache-2.0 */
/* user_program: the file that a probe of a user function or a USDT probe is in. libbpf and libdw read it in this process, so what they do
 * not check is checked here first. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct user_program {
	const char *no_args; /* why arguments are not in the registers where C has them: "of 32-bit code", "of Go"; NULL: they are */
	bool may_throw;      /* C++, Rust: exceptions pass its functions, and one that meets a return probe ends the process */
	bool moves_stacks;   /* as Go does: a return address that a return probe has replaced ends the process */
};

/* `path`: without a '/', it is looked for in $PATH, and what is not there (a library) is left to libbpf. 0; -ENOENT or the error of
 * opening it; -ENOEXEC: no regular file, no ELF file, or a damaged one. */
MUST_CHECK int user_program_look(const char *path, struct diag *diag, struct user_program *ret_program);
