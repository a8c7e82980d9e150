/* SPDX-License-Identifier: Apache-2.0 */
/* shell: runs commands for tests. Include cmocka.h before it. */
#pragma once
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs a command, which must succeed. */
__attribute__((format(printf, 1, 2))) static inline void run(const char *fmt, ...)
{
	char command[4 * PATH_MAX];
	va_list args;
	int size;

	va_start(args, fmt);
	size = vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	assert_in_range(size, 1, sizeof(command) - 1);
	assert_int_equal(system(command), 0);
}
