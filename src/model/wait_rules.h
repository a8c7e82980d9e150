/* SPDX-License-Identifier: Apache-2.0 */
/* wait_rules: which functions and system calls of the kernel tell what a thread waits for. */
#pragma once
#include <stdint.h>

#include "model/wait_kind.h"

enum wait_rule_strength {
	WAIT_RULE_SURE,   /* who waits in it waits for that */
	WAIT_RULE_AROUND, /* asked when neither a sure one nor the system call says it: what is done, not where it waits */
	WAIT_RULE_GUESS,  /* ways to wait that many use */
	WAIT_RULE_LAST,   /* the same, where nothing else is said */
};

struct wait_rule {
	const char *function;
	enum wait_kind kind;
	enum wait_rule_strength strength;
};

/* A suffix that a compiler has put there (".isra.0") does not count. NULL: there is none. */
const struct wait_rule *wait_rule_of_function(const char *function);
enum wait_kind wait_rule_of_syscall(uint16_t syscall); /* WAIT_KIND_COUNT: it can wait for many things */
