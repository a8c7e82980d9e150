/* SPDX-License-Identifier: Apache-2.0 */
/* readable: is there something to be read at once? */
#pragma once
#include <poll.h>
#include <stdbool.h>

/* Of -1: no. */
static inline bool fd_is_readable(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) > 0;
}
