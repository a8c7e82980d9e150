/* SPDX-License-Identifier: Apache-2.0 */
/* pager: standard output through a pager, if it is a terminal: $SONDE_PAGER, else $PAGER, else less; none if that is "" or "cat". */
#pragma once
#include <sys/types.h>

struct pager {
	pid_t pid; /* 0: none */
};

/* Call it before anything is written, and after the terminal was asked for its width. Without a pager nothing changes. */
struct pager pager_start(void);
/* Waits until the user has left it. */
void pager_wait(const struct pager *pager);
