/* SPDX-License-Identifier: Apache-2.0 */
/* stop_fd: a descriptor that is readable once somebody has asked for the end: from any thread or signal handler to whoever waits with poll
 * or epoll. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"

/* A descriptor, for the caller to close, or a negative errno. */
MUST_CHECK int stop_fd_new(void);
/* Async-signal-safe; errno stays. Of -1: nothing. */
void stop_fd_set(int fd);
/* Has somebody told since the last time? */
bool stop_fd_take(int fd);
/* The same, which whoever takes it will still see. Of -1: nobody has. */
bool stop_fd_is_set(int fd);
