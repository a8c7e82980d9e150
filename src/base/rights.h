/* SPDX-License-Identifier: Apache-2.0 */
/* rights: what a process of ours gives up, for good, before it looks at what strangers wrote. */
#pragma once
#include <stdint.h>
#include <sys/resource.h>

#include "base/cleanup.h"

/* Lowers a limit of getrlimit(2), the hard one too; one that is lower stays. 0 or a negative errno. */
MUST_CHECK int rights_limit(__rlimit_resource_t resource, rlim_t max);
/* Root becomes a user that nobody else is, without groups. Others stay who they are, but what the program's file may give them (setcap(8))
 * goes. Nothing that is executed gives rights back, and the process ends with its parent. 0 or a negative errno. */
MUST_CHECK int rights_give_up(void);
