/* SPDX-License-Identifier: Apache-2.0 */
/* readable: polls a descriptor for input. */
#pragma once
#include <poll.h>
#include <stdbool.h>

/* False for -1. */
static inline bool fd_is_readable(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) > 0;
}
