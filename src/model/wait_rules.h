/* SPDX-License-Identifier: Apache-2.0 */
/* wait_rules: which kernel functions and system calls tell what a thread waits for. */
#pragma once
#include <stdint.h>

#include "model/wait_kind.h"

enum wait_rule_strength {
	WAIT_RULE_SURE,   /* a thread that waits in it waits for that */
	WAIT_RULE_AROUND, /* used if neither a sure rule nor the system call decides: says what the thread does, not where it waits */
	WAIT_RULE_GUESS,  /* functions that many kinds of waits use */
	WAIT_RULE_LAST,   /* likewise, used if nothing else decides */
};

struct wait_rule {
	const char *function;
	enum wait_kind kind;
	enum wait_rule_strength strength;
};

/* Ignores a suffix that the compiler added (".isra.0"). NULL: there is no rule. */
const struct wait_rule *wait_rule_of_function(const char *function);
enum wait_kind wait_rule_of_syscall(uint16_t syscall); /* WAIT_KIND_COUNT: the system call can wait for many things */
