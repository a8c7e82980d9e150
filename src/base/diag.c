// SPDX-License-Identifier: Apache-2.0
#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/plain_text.h"

int diag_errno(struct diag *diag, int err, const char *fmt, ...)
{
	if (diag && !diag->err) {
		va_list args;

		va_start(args, fmt);
		vsnprintf(diag->text, sizeof(diag->text), fmt, args);
		va_end(args);
		plain_make(diag->text); /* it may quote untrusted text */
		diag->err = err;
	}
	return -err;
}
