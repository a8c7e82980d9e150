/* SPDX-License-Identifier: Apache-2.0 */
/* made_up_profile: profiles that nobody took, for what writes and reads files. NULL: no memory. */
#pragma once
#include "model/profile.h"

/* Small, with one of everything: merges, missed sides, marks, the names that hostile programs give themselves. */
struct profile *made_up_profile(void);
/* A machine's worth: about `nr_stacks` different stacks of several programs. The same for the same number. */
struct profile *made_up_big_profile(uint32_t nr_stacks);
