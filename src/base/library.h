/* SPDX-License-Identifier: Apache-2.0 */
/* library: functions of shared libraries that are loaded on demand. If linked, each library and those that it needs would slow every start
 * of the program, and its workers are starts, too. */
#pragma once
#include <stddef.h>

struct library_function {
	const char *name;
	void *to; /* a pointer to a function of that type */
};

/* Looks up all of them in what dlopen(3) returned. NULL: all are there; else the name of one that is not. */
const char *library_functions(void *library, const struct library_function *functions, size_t nr);
