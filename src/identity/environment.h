/* SPDX-License-Identifier: Apache-2.0 */
/* environment: a process's environment as it was when the program started, and a choice of variables. Any thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

#define ENVIRONMENT_MAX_BYTES	(256u << 10) /* variables behind that are not found */
#define ENVIRONMENT_MAX_NAMES	16
#define ENVIRONMENT_NAME_BYTES	64  /* including the NUL */
#define ENVIRONMENT_VALUE_BYTES 256 /* likewise; a longer value ends with "..." */

struct environment {
	char *text; /* NAME=VALUE, each with a NUL behind; owned */
	uint32_t bytes;
};

/* Reads the file `environ` of a process's directory in /proc. That takes the lock of the process's memory, which others may hold for ever;
 * pages of files are not read (Linux 4.17, CVE-2018-1120). 0 or a negative errno. */
MUST_CHECK int environment_read(int proc_fd, struct environment *ret_environment);
void environment_done(struct environment *environment);
/* The value as it is, borrowed; of a name that is set twice the first one, as in getenv(3). NULL: not set. */
const char *environment_find(const struct environment *environment, const char *name);

/* The variables that may leave the reader. */
struct environment_names {
	uint32_t nr;
	char names[ENVIRONMENT_MAX_NAMES][ENVIRONMENT_NAME_BYTES];
};

/* By the number of the name; plain (base/plain_text.h). "": not set, or empty. */
struct environment_values {
	char values[ENVIRONMENT_MAX_NAMES][ENVIRONMENT_VALUE_BYTES];
};

/* Adds a name; one that is known is not added again. 0; -EINVAL: it is empty, too long, or has another character than [A-Za-z0-9_.-];
 * -E2BIG: there are ENVIRONMENT_MAX_NAMES. */
MUST_CHECK int environment_names_add(struct environment_names *names, const char *name);
void environment_values_find(const struct environment *environment, const struct environment_names *names,
			     struct environment_values *ret_values);
