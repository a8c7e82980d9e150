/* SPDX-License-Identifier: Apache-2.0 */
/* own_tgid: the id of this process as BPF programs see it, which leave it out: that of the root PID namespace. */
#pragma once
#include <stdint.h>

/* Asks the kernel: in a container getpid() is another number there, and may be that of another process. Without rights getpid(). */
uint32_t own_tgid(void);
