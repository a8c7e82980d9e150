/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: what a worker gives up before it reads the first byte of an untrusted file: its user (for an unused uid), its limits, and all
 * system calls except those that read what it was given and use memory, with arguments that nobody else can notice. Files that it opens by
 * name (separate debug files; libdw opens some by itself) are opened by its owner, which is notified by the kernel through a descriptor
 * (seccomp_unotify(2)). */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

/* Enters the sandbox, for good. `max_bytes`: limit of its own memory. *ret_asked_fd: the descriptor for the owner; -1: a container's
 * supervisor already has one, so no file can be opened by name. 0 or a negative errno. */
MUST_CHECK int sandbox_enter(uint64_t max_bytes, int *ret_asked_fd);
