/* SPDX-License-Identifier: Apache-2.0 */
/* tracefs: the kernel's names for the arguments of system calls, which BTF seldom has. A mounted tracefs is used, else one is mounted that
 * no other process sees. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct tracefs {
	int fd;		   /* of its root; -1: there is none */
	const char *where; /* in words */
};

void tracefs_open(struct tracefs *ret_tracefs);
void tracefs_done(struct tracefs *tracefs);

#define CALL_ARGS      6
#define CALL_ARG_BYTES 32

struct call_args {
	struct {
		char name[CALL_ARG_BYTES];
		bool is_text; /* the address of one */
	} list[CALL_ARGS];
	uint32_t nr;
};
/* The arguments of a system call; none: no tracefs, or it does not have the call. */
void tracefs_call_args(const struct tracefs *tracefs, const char *call, struct call_args *ret_args);
