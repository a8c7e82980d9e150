// SPDX-License-Identifier: Apache-2.0
#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>

int diag_errno(struct diag *diag, int err, const char *fmt, ...)
{
	if (diag && !diag->err) {
		va_list args;

		va_start(args, fmt);
		vsnprintf(diag->text, sizeof(diag->text), fmt, args);
		va_end(args);
		diag->err = err;
	}
	return -err;
}
