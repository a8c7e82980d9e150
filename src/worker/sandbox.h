/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: what a worker gives up before it looks at the first byte of a stranger's file: its user (for one that nobody has), its
 * limits, and all system calls but those that read what it was given and use memory, with arguments that nobody else can notice. What it
 * opens by name (separate debug files; libdw opens some by itself) is opened by its owner, who gets a descriptor at which the kernel asks
 * him (seccomp_unotify(2)). */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

/* For good. `max_bytes`: of memory of its own. *ret_asked_fd: at which the owner is asked what may be opened; -1: another has that place (a
 * container's supervisor), and all opening is refused. 0 or a negative errno. */
MUST_CHECK int sandbox_enter(uint64_t max_bytes, int *ret_asked_fd);
