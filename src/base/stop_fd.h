/* SPDX-License-Identifier: Apache-2.0 */
/* stop_fd: a descriptor that becomes readable when a stop is requested. Any thread or signal handler may request it; the receiver waits
 * with poll or epoll. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"

/* Returns a descriptor, which the caller closes, or a negative errno. */
MUST_CHECK int stop_fd_new(void);
/* Requests a stop. Async-signal-safe; keeps errno. Does nothing for -1. */
void stop_fd_set(int fd);
/* True if a stop was requested since the last call. */
bool stop_fd_take(int fd);
/* The same, but keeps the request for stop_fd_take. False for -1. */
bool stop_fd_is_set(int fd);
