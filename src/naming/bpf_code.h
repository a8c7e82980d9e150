/* SPDX-License-Identifier: Apache-2.0 */
/* bpf_code: the address ranges of the BPF programs that are loaded now. The kernel's list of its functions has no sizes, and several
 * programs share a page. An address in an unloaded program must not resolve to its neighbour, nor to a program loaded at the same address
 * later. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "symbolize/symbolizer.h"

/* Returns them sorted by start; the caller frees the array. It is empty when the kernel does not report them (CAP_SYS_ADMIN, CAP_SYSLOG).
 * 0 or -ENOMEM. */
MUST_CHECK int bpf_code_read(struct kernel_code **ret_code, uint32_t *ret_nr);
