/* SPDX-License-Identifier: Apache-2.0 */
/* diag: the text of a failure, carried from where it is found to where it is printed. Libraries fill it, only cli prints it. The innermost
 * message wins. A NULL diag is allowed everywhere. */
#pragma once

struct diag {
	int err;        /* positive errno of the first message; 0: no message */
	char text[512]; /* one line without newline, made plain by plain_make */
};

/* Records the message, unless there is one already, and returns -err. `err` is a positive errno. */
__attribute__((format(printf, 3, 4))) int diag_errno(struct diag *diag, int err, const char *fmt, ...);
