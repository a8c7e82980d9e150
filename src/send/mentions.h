/* SPDX-License-Identifier: Apache-2.0 */
/* mentions: servers say in words what their codes do not tell apart. */
#pragma once
#include <stdbool.h>
#include <string.h>

/* Does the text have one of these in it? NULL ends. */
static inline bool mentions(const char *text, const char *const *words)
{
	for (; *words; words++) {
		if (strstr(text, *words))
			return true;
	}
	return false;
}
