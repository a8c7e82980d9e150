/* SPDX-License-Identifier: Apache-2.0 */
/* process_names: the name of each sample's process, which is that of its main thread. */
#pragma once
#include "model/profile.h"

/* Returns, by sample, a string of the profile: of a main thread its own name; of another thread the name that its main thread has most; if
 * that has no sample, the name of its process's threads with the most, so a process has one name. NULL: no memory. Free it. */
uint32_t *process_names(const struct profile *profile);
