/* SPDX-License-Identifier: Apache-2.0 */
/* bpf_code: where the code of the BPF programs that are loaded now begins and ends. The kernel's list of its functions has no sizes, and
 * the code of several programs stands in one page: the address of one that is not loaded any more must not go to its neighbour, nor to one
 * that was loaded in its place. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "symbolize/symbolizer.h"

/* By start, for the caller to free: none when the kernel does not tell (CAP_SYS_ADMIN, CAP_SYSLOG). 0 or -ENOMEM. */
MUST_CHECK int bpf_code_read(struct kernel_code **ret_code, uint32_t *ret_nr);
