/* SPDX-License-Identifier: Apache-2.0 */
/* rights: gives up a helper process's rights, for good, before it reads untrusted data. */
#pragma once
#include <stdint.h>
#include <sys/resource.h>

#include "base/cleanup.h"

/* Lowers a limit of getrlimit(2), soft and hard. A lower limit stays. 0 or a negative errno. */
MUST_CHECK int rights_limit(__rlimit_resource_t resource, rlim_t max);
#define RIGHT(capability) (UINT64_C(1) << (capability))
/* Gives up all capabilities but these (RIGHT of linux/capability.h), for the calling thread and all that it starts. Nothing is gained. 0
 * or a negative errno. */
MUST_CHECK int rights_keep(uint64_t kept);
/* Root changes to a uid that nobody else has, without groups. Other users keep their uid, but lose capabilities of the program's file
 * (setcap(8)). Executed programs gain no rights, and the process ends with its parent. 0 or a negative errno. */
MUST_CHECK int rights_give_up(void);
