/* SPDX-License-Identifier: Apache-2.0 */
/* checked: a library call that may not fail. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(err) check(err, __LINE__)

static inline void check(int err, int line)
{
	if (!err)
		return;
	printf("failed line %d: %s\n", line, strerror(-err));
	exit(1);
}
