/* SPDX-License-Identifier: Apache-2.0 */
/* call_args: the kernel's names for the arguments of system calls, by tracefs: BTF seldom has them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

#define CALL_ARGS      6
#define CALL_ARG_BYTES 32

struct call_args {
	struct {
		char name[CALL_ARG_BYTES];
		char type[CALL_ARG_BYTES]; /* as C has it */
		bool is_text;		   /* the address of one */
	} list[CALL_ARGS];
	uint32_t nr;
};
/* None: tracefs does not have the call. */
void call_args_read(int tracefs_fd, const char *call, struct call_args *ret_args);
