/* SPDX-License-Identifier: Apache-2.0 */
/* confine: takes from the process, for good, what it does not need any more (landlock(7)). Descriptors that are open stay, and so does what
 * the kernel does not know: files since 5.13, TCP since 6.7, signals since 6.12. */
#pragma once
#include <stdint.h>

/* What writes and reaches out: files are created, changed and removed only where the outputs are, connections are neither started nor
 * taken, what is not its own is neither traced nor signalled, and nothing that is executed gains rights. `outputs`: paths that reports will
 * take ("-", and what is open, need not be among them). */
void confine_writing(const char *const *outputs, uint32_t nr_outputs);
/* What reads: no file is opened to be read any more but the inputs, no folder listed, no program started. */
void confine_reading(const char *const *inputs, uint32_t nr_inputs);
