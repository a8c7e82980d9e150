/* SPDX-License-Identifier: Apache-2.0 */
/* confine: takes from the process, for good, what writes and reaches out (landlock(7)): it creates, changes and removes files only where its outputs are, starts no connections and listens to none, and
 * neither traces nor signals what is not its own; nothing that it executes gains rights. Reading stays, and so do descriptors that are open. What the kernel does not know stays, too: files
 * since 5.13, TCP since 6.7, signals since 6.12. */
#pragma once
#include <stdint.h>

/* `outputs`: paths that reports will take ("-", and what is open, need not be among them). */
void confine_writing(const char *const *outputs, uint32_t nr_outputs);
